// The panel of what is chosen, and the table of all layers. All text goes in as text.
const make = (tag, props = {}, ...inside) => {
  const node = document.createElement(tag);
  for (const [k, v] of Object.entries(props)) k in node ? (node[k] = v) : node.setAttribute(k, v);
  node.append(...inside.filter(x => x !== null && x !== undefined));
  return node;
};
const short = (n, unit) => {
  if (typeof n !== "number") return n;
  if (unit === "s") return n >= 1 ? n.toFixed(2) + " s" : n >= 1e-3 ? (n * 1e3).toFixed(2) + " ms" : (n * 1e6).toFixed(1) + " µs";
  for (const [size, mark] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (Math.abs(n) >= size) return (n / size).toFixed(1) + " " + mark + unit;
  return Number.isInteger(n) ? n + " " + unit : n.toPrecision(4) + " " + unit;
};

class Side {
  constructor(node, app) { this.node = node; this.app = app; }
  get m() { return this.app.m; }
  rows(title, rows) {
    if (!rows.length) return;
    this.node.append(make("h3", { textContent: title }), make("table", {}, ...rows.map(([k, v]) => make("tr", {}, make("td", { textContent: k }), make("td", {}, v)))));
  }
  go(layer, text) {
    return make("button", { className: "go", textContent: text, onclick: () => this.app.choose(layer) });
  }
  partner(l) {
    const { app } = this, to = app.step.layers[app.side].get(l);
    return to === undefined ? "has it not" : make("button", { className: "go", textContent: app.other.m.names[to], onclick: () => { app.activate(1 - app.side); app.choose(to); } });
  }
  show(layer, box) {
    this.node.replaceChildren();
    if (layer >= 0) this.layer(layer);
    else if (box >= 0 && box !== this.m.root) this.group(box);
    else this.model();
  }
  model() {
    const m = this.m, counts = new Map();
    for (let l = 0; l < m.count; l++) counts.set(m.type(l).name, (counts.get(m.type(l).name) || 0) + 1);
    this.node.append(make("h2", { textContent: m.name }), make("p", { textContent: m.count.toLocaleString("en") + " layers" }));
    const ends = kind => [...m.kind.keys()].filter(l => m.body[l] === 0 && m.type(l).name === kind).slice(0, 30);
    this.rows("inputs", ends("Parameter").map(l => [m.detail(l), this.go(l, m.names[l])]));
    this.rows("outputs", ends("Result").map(l => [m.detail(l), this.go(l, m.names[l])]));
    this.rows("layers by type", [...counts].sort((a, b) => b[1] - a[1]).slice(0, 40).map(([k, n]) => [String(n), make("button", { className: "go", textContent: k, onclick: () => this.app.search("type:" + (/[\s"]/.test(k) ? '"' + k.replaceAll('"', "*") + '"' : k)) })]));
  }
  group(e) {
    const m = this.m, g = m.group(e);
    this.node.append(make("h2", { textContent: g.label || g.kind }), make("p", { textContent: g.detail }));
    const owner = m.owner.get(e);
    if (owner !== undefined) this.layer(owner);
    else if (g.kind === "run") this.node.append(make("p", { textContent: "The same block " + g.children.length + " times, one after the other. Enter opens the first; Enter again opens all." }));
    const inside = g.children.slice(0, 60);
    this.rows("inside", inside.map(c => [m.isGroup(c) ? m.detail(c) : m.type(c).name, this.app.link(c)]));
  }
  layer(l) {
    const m = this.m, t = m.type(l);
    this.node.append(make("h2", { textContent: t.name }), make("div", { className: "name", textContent: m.names[l] }), make("p", { textContent: t.spec + " · id " + m.id[l] }));
    if (t.about) this.node.append(make("p", { textContent: t.about }));
    if (this.app.step) this.rows("in step", [[this.app.other.m.name, this.partner(l)]]);
    m.paints.forEach(p => {
      const i = p.at.get(l);
      const note = p.notes[l];
      if (i !== undefined) this.rows(p.name, [[short(p.values[i], p.unit), note || ""]]);
      else if (note) this.rows(p.name, [["", note]]);
    });
    this.rows("attributes", m.attributes(l));
    this.rows("inputs", m.inputs(l).map(([s, o], i) => [t.inputs[i] || String(i), make("span", {}, spell(m.tensors(s)[o] || "") + " ", this.go(s, m.names[s] || m.type(s).name))]));
    this.rows("outputs", m.tensors(l).map((x, i) => [String(i), spell(x)]));
    this.rows("read by", m.readers(l).slice(0, 40).map(r => [m.type(r).name, this.go(r, m.names[r])]));
    const c = m.d.constants[l];
    if (c) this.constant(c);
    this.node.append(make("h3", { textContent: "path" }), ...[["before", true, false], ["after", false, true], ["both", true, true]].flatMap(([name, up, down]) => [make("button", { id: "path-" + name, textContent: name, onclick: () => this.app.path(up, down) }), " "]));
    // A name that is not shown as it is would not be found.
    if (m.body[l] === 0 && !m.cut.has(l)) {
      const text = "vinoir extract MODEL --to " + quoted(m.names[l]);
      this.node.append(make("h3", { textContent: "the part that ends here" }), make("code", { id: "command", textContent: text }), " ", make("button", { textContent: "Copy", onclick: () => this.app.copy() }));
    }
  }
  constant(c) {
    this.node.append(make("h3", { textContent: "values" }), make("code", { id: "values", textContent: c[0].join(", ") + (c.length > 1 ? ", …" : "") }));
    if (c.length < 2) return;
    const bars = make("div", { className: "bars", role: "img", ariaLabel: "Histogram from " + c[1] + " to " + c[2] });
    for (const h of c[4]) {
      const bar = make("i");
      bar.style.height = Math.round((parseInt(h, 36) / 35) * 100) + "%";
      bars.append(bar);
    }
    if (c[6]) this.node.append(make("p", { textContent: `of a sample of ${c[6].toLocaleString("en")} of its ${c[5].toLocaleString("en")} values:` }));
    this.node.append(bars, make("div", { className: "ends" }, make("span", { textContent: c[1] }), make("span", { textContent: "mean " + c[3] }), make("span", { textContent: c[2] })));
  }
}
const quoted = s => "'" + s.replaceAll("'", "'\\''") + "'";

class Table {
  constructor(app) {
    this.app = app;
    this.page = 0;
    this.each = 200;
    this.key = 0;
    this.down = false;
    document.getElementById("back").onclick = () => this.turn(-1);
    document.getElementById("forth").onclick = () => this.turn(1);
    this.build();
  }
  get m() { return this.app.m; }
  // The columns of the model that is looked at.
  build() {
    const m = this.m;
    this.columns = [
      ["id", l => m.id[l], true], ["name", l => m.names[l]], ["type", l => m.type(l).name],
      ["output", l => m.tensors(l).map(spell).join("; ")],
      ...m.paints.filter(p => p.kind === "number" || p.name !== "precision").map(p => [p.name, l => { const i = p.at.get(l); return i === undefined ? "" : p.values[i]; }, p.kind === "number", p.unit]),
    ];
    this.all = Array.from({ length: m.count }, (_, l) => l);
    this.list = this.all;
    document.getElementById("head").replaceChildren(...this.columns.map(([name], i) => make("th", { scope: "col" }, make("button", { textContent: name, onclick: () => this.sort(i) }))));
  }
  only(list) { this.list = list ? list.slice() : this.all.slice(); this.page = 0; this.ordered(); }
  sort(i) {
    this.down = this.key === i ? !this.down : this.columns[i][2] && i > 0;
    this.key = i;
    this.page = 0;
    this.ordered();
  }
  ordered() {
    const [, get, number] = this.columns[this.key], keys = new Map(this.list.map(l => [l, get(l)])), way = this.down ? -1 : 1;
    this.list.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      return (number ? x - y : x < y ? -1 : x > y ? 1 : 0) * way || a - b;
    });
    this.show();
  }
  turn(by) { this.page = Math.max(0, Math.min(this.page + by, Math.ceil(this.list.length / this.each) - 1)); this.show(); }
  show() {
    if (document.getElementById("table").hidden) return;
    const part = this.list.slice(this.page * this.each, (this.page + 1) * this.each);
    document.getElementById("rows").replaceChildren(...part.map(l => {
      const row = make("tr", { ariaSelected: String(l === this.app.chosen), onclick: () => this.app.choose(l), onkeydown: event => { if (event.key === "Enter") this.app.choose(l); } }, ...this.columns.map(([, get, number, unit]) => make("td", { className: number ? "n" : "", textContent: unit === undefined ? get(l) : short(get(l), unit) })));
      row.tabIndex = 0;
      return row;
    }));
    [...document.getElementById("head").children].forEach((th, i) => th.setAttribute("aria-sort", i !== this.key ? "none" : this.down ? "descending" : "ascending"));
    document.getElementById("page").textContent = this.list.length ? `${this.page * this.each + 1} to ${this.page * this.each + part.length} of ${this.list.length}` : "none";
  }
}
