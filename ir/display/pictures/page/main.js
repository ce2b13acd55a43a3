// What the page does when it is asked.
const $ = id => document.getElementById(id);

class App {
  constructor(data) {
    this.panes = [new Pane($("canvas"), new Model(data))];
    this.side = 0;
    this.step = null;
    if (data.step) {
      this.panes.push(new Pane($("canvas2"), new Model(data.step.other)));
      this.step = new Step(this, data.step);
      for (const pane of this.panes) pane.painter.resize();
      this.step.mirror();
    }
    this.panel = new Side($("side"), this);
    $("title").textContent = this.step ? data.step.title : this.m.name;
    $("paint").append(...["type", ...this.m.paints.map(p => p.name)].map((name, i) => make("option", { value: i - 1, textContent: name })));
    this.table = new Table(this);
    this.home();
    this.lookOf(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    this.listen();
    this.setPaint(data.paint ?? -1);
    this.activate(0);
    this.restore();
    this.panel.show(this.chosen, this.box);
    this.fill();
  }
  // The model that is looked at, of two in step.
  get pane() { return this.panes[this.side]; }
  get other() { return this.panes[1 - this.side]; }
  get m() { return this.pane.m; }
  get p() { return this.pane.p; }
  get painter() { return this.pane.painter; }
  get canvas() { return this.pane.canvas; }
  get chosen() { return this.painter.marks.chosen; }
  get box() { return this.painter.marks.box; }
  activate(side) {
    if (this.step) this.panes.forEach((pane, i) => pane.canvas.parentNode.classList.toggle("active", i === side));
    if (side === this.side) return;
    this.side = side;
    if (document.activeElement?.tagName === "CANVAS") this.canvas.focus();
    this.table.build();
    this.search($("query").value);
    this.panel.show(this.chosen, this.box);
    this.table.show();
    this.redraw();
  }
  lookOf(look) {
    for (const pane of this.panes) pane.painter.look = look;
    document.documentElement.dataset.look = look;
    this.legend();
    this.step?.tint();
    this.redraw();
  }
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      const began = performance.now();
      this.draw();
      const node = document.documentElement;
      node.dataset.drawn = this.painter.drawn;
      node.dataset.frame = (performance.now() - began).toFixed(2);
      if (!node.dataset.first) node.dataset.first = performance.now().toFixed(1);
    });
    clearTimeout(this.saving);
    this.saving = setTimeout(() => this.save(), 300);
  }
  // A canvas that changes its size is black until it is drawn: so at once, not with the next frame.
  fill() {
    for (const pane of this.panes) pane.painter.resize();
    this.draw();
    this.redraw();
  }
  draw() {
    this.step?.mirror();
    this.painter.draw();
    if (!this.step) return;
    this.step.follow();
    this.other.painter.draw();
  }
  // Views.
  home() {
    const size = this.p.measure(this.m.root), { w, h } = this.painter, v = this.painter.view;
    v.z = Math.max(Math.min(1, w / (size.left + size.right + 60)), 0.8);
    v.x = v.z * (size.left + size.right) > w ? 0 : (size.right - size.left) / 2;
    v.y = Math.min(h / 2 / v.z - 24, Math.max(size.height / 2, h / 2 / v.z - 24));
  }
  fit() {
    const size = this.p.measure(this.m.root), { w, h } = this.painter;
    this.painter.view = { x: (size.right - size.left) / 2, y: size.height / 2, z: Math.min(1.5, w / (size.left + size.right + 60), h / (size.height + 60)) };
    this.redraw();
  }
  zoom(by, px = this.painter.w / 2, py = this.painter.h / 2) {
    const v = this.painter.view, z = Math.min(Math.max(v.z * by, 1e-5), 6), { w, h } = this.painter;
    v.x += (px - w / 2) * (1 / v.z - 1 / z);
    v.y += (py - h / 2) * (1 / v.z - 1 / z);
    v.z = z;
    this.redraw();
  }
  center(e) {
    const at = this.p.find(e);
    if (!at) return;
    const v = this.painter.view, { w, h } = this.painter;
    if (v.z < 0.62) v.z = 0.9;
    const px = this.painter.sx(at.x), py = this.painter.sy(at.y), tall = Math.min(at.height * v.z, h * 0.6);
    if (px < 90 || px > w - 90) v.x = at.x;
    if (py < 50 || py + tall > h - 50) v.y = at.y + tall / 2 / v.z;
  }
  // Choosing.
  choose(l) {
    const box = this.m.box(l);
    this.p.reveal(box);
    this.select(l, box);
    this.center(box);
    this.redraw();
  }
  select(l, box) {
    const marks = this.painter.marks;
    marks.chosen = l;
    marks.box = box;
    this.step?.choose(l, box);
    this.panel.show(l, box);
    this.table.show();
    const what = l >= 0 ? this.m.type(l).name + " " + this.m.names[l] + " " + this.m.detail(l) : box >= 0 ? this.m.title(box) + ", " + this.m.detail(box) : "nothing chosen";
    $("spoken").textContent = what.slice(0, 300);
    this.redraw();
  }
  link(e) {
    return make("button", { className: "go", textContent: this.m.isGroup(e) ? this.m.title(e) : this.m.names[e], onclick: () => {
      if (!this.m.isGroup(e)) return this.choose(e);
      this.p.reveal(e);
      this.select(-1, e);
      this.center(e);
    } });
  }
  // Opening.
  turn(e) {
    const g = this.m.group(e), now = this.p.state.get(e) || CLOSED, before = this.p.find(e);
    const next = now === OPEN ? CLOSED : g.kind === "run" && now === CLOSED && this.m.isGroup(g.children[0]) ? SAMPLE : OPEN;
    // The first turn opens with its repetition.
    if (next === SAMPLE && !this.p.state.get(g.children[0])) this.p.set(g.children[0], OPEN);
    this.p.set(e, next);
    const after = this.p.find(e), v = this.painter.view;
    if (before && after) { v.x += after.x - before.x; v.y += after.y - before.y; }
    this.spotted();
    this.select(this.chosen, e);
  }
  levels(more) {
    const list = [], stack = [this.m.root];
    while (stack.length) {
      const e = stack.pop();
      for (const c of this.p.inside(e)) {
        if (!this.m.isGroup(c)) continue;
        if (this.p.isOpen(c)) stack.push(c);
        if (more ? !this.p.isOpen(c) : this.p.isOpen(c) && !this.p.inside(c).some(i => this.p.isOpen(i))) list.push(c);
      }
    }
    const v = this.painter.view, whole = this.p.measure(this.m.root).height, share = v.y / whole;
    for (const e of list) this.p.set(e, more ? (this.m.group(e).kind === "run" && this.m.isGroup(this.m.group(e).children[0]) ? SAMPLE : OPEN) : CLOSED);
    v.y = share * this.p.measure(this.m.root).height;
    this.spotted();
    this.redraw();
  }
  // Searching.
  search(text) {
    $("query").value = text;
    this.pane.hits = search(this.m, text);
    this.pane.hit = -1;
    const count = this.pane.hits.length;
    $("hits").textContent = !text.trim() ? "" : count ? `${count.toLocaleString("en")} found` : foundNone(text);
    this.spotted();
    this.table.only(text.trim() ? this.pane.hits : null);
    this.redraw();
  }
  spotted() {
    this.pane.spot(this.pane.hits);
    if (this.step) this.other.spot(this.step.others(this.pane.hits));
  }
  next(by) {
    const pane = this.pane, n = pane.hits.length;
    if (!n) return;
    pane.hit = (pane.hit + by + n) % n;
    this.choose(pane.hits[pane.hit]);
    this.spotted();
    $("hits").textContent = `${pane.hit + 1} of ${n.toLocaleString("en")}`;
  }
  // Paths.
  path(up, down) {
    const starts = this.layersOf();
    if (!starts.length) return;
    const found = new Set(starts);
    for (const go of [up && (l => this.m.before(l)), down && (l => this.m.after(l))])
      if (go) {
        const stack = starts.slice(), seen = new Set(starts);
        while (stack.length) for (const l of go(stack.pop())) if (!seen.has(l)) { seen.add(l); found.add(l); stack.push(l); }
      }
    this.pane.path(found);
    if (this.step) this.other.path(new Set(this.step.others([...found])));
    $("spoken").textContent = $("hits").textContent = `${found.size.toLocaleString("en")} on the path`;
    this.redraw();
  }
  layersOf() {
    if (this.chosen >= 0) return [this.chosen];
    if (this.box < 0) return [];
    const list = [], stack = [this.box];
    while (stack.length) {
      const e = stack.pop();
      if (this.m.isGroup(e)) stack.push(...this.m.group(e).children); else list.push(e);
    }
    return list;
  }
  clear() {
    const marks = this.painter.marks;
    if (marks.path) this.panes.forEach(pane => pane.path(null)); else this.select(-1, -1);
    $("keys").hidden = true;
    this.redraw();
  }
  // Along the values, to what is seen: a layer, or the closed group that holds it.
  walk(down) {
    const own = new Set(this.layersOf());
    if (!own.size) return this.select(...this.start());
    const here = this.p.find(this.box), best = { cost: Infinity };
    for (const l of own)
      for (const n of down ? this.m.readers(l) : this.m.inputs(l).map(i => i[0])) {
        if (own.has(n) || (!down && this.m.chip[n] >= 0)) continue;
        let e = this.m.box(n), layer = n;
        let at = this.p.find(e);
        while (!at && e >= 0) { e = this.m.parent[e]; layer = -1; at = e >= 0 ? this.p.find(e) : null; }
        if (!at || e === this.box) continue;
        const cost = here ? Math.abs(at.x - here.x) + 0.3 * Math.abs(at.y - here.y) : 0;
        if (cost < best.cost) Object.assign(best, { cost, layer: this.m.isGroup(e) ? -1 : layer, e });
      }
    if (best.e === undefined) return;
    this.select(best.layer, best.e);
    this.center(best.e);
  }
  start() {
    const e = this.p.inside(this.m.root)[0] ?? -1;
    return [this.m.isGroup(e) ? -1 : e, e];
  }
  aside(by) {
    if (this.box < 0) return;
    const chips = this.m.chips.get(this.box) || [], at = chips.indexOf(this.chosen);
    if (by > 0 && chips.length && at < chips.length - 1) return this.select(chips[at + 1], this.box);
    if (by < 0 && at >= 0) return at > 0 ? this.select(chips[at - 1], this.box) : this.select(this.m.isGroup(this.box) ? -1 : this.box, this.box);
    const up = this.m.parent[this.box], g = this.m.group(up), geo = g.geometry, i = g.children.indexOf(this.box);
    const row = geo.byRow[geo.row[i]].slice().sort((a, b) => geo.x[a] - geo.x[b]), next = row[row.indexOf(i) + by];
    if (next === undefined) return;
    const e = g.children[next];
    this.select(this.m.isGroup(e) ? -1 : e, e);
    this.center(e);
  }
  out() {
    if (this.box < 0) return;
    const up = this.m.parent[this.box];
    if (up >= 0 && up !== this.m.root) { this.select(-1, up); this.center(up); }
  }
  // Painting.
  setPaint(i) {
    for (const pane of this.panes) pane.painter.paint = i;
    this.rank = -1;
    $("paint").value = i;
    this.legend();
    this.redraw();
  }
  nextPaint(by) {
    const n = this.m.paints.length + 1;
    this.setPaint(((this.painter.paint + 1 + by + n) % n) - 1);
    $("spoken").textContent = "painted by " + $("paint").selectedOptions[0].textContent;
  }
  largest() {
    const p = this.m.paints[this.painter.paint];
    if (!p || p.kind !== "number") return;
    this.ranked ||= new Map();
    if (!this.ranked.has(p)) this.ranked.set(p, p.list.map((l, i) => [p.values[i], l]).sort((a, b) => b[0] - a[0]));
    const list = this.ranked.get(p);
    if (!list.length) return;
    this.rank = (this.rank + 1) % list.length;
    this.choose(list[this.rank][1]);
  }
  legend() {
    const node = $("legend"), dark = this.painter.look === "dark" ? 1 : 0;
    node.replaceChildren();
    const put = (text, colour) => {
      const mark = make("i");
      mark.style.background = colour;
      node.append(make("span", {}, mark, text));
    };
    const p = this.m.paints[this.painter.paint];
    if (!p) {
      const used = new Set(this.panes.flatMap(pane => pane.m.d.types.map(t => t.family)));
      this.m.d.families.forEach((f, i) => used.has(i) && put(f[0], f[1 + dark]));
    } else if (p.kind === "word") {
      const words = new Map();
      for (const { m } of this.panes) {
        const { values, colours, pairs } = m.paints[this.painter.paint];
        values.forEach((v, i) => words.has(v) || words.set(v, pairs[colours[i]][dark]));
      }
      [...words].slice(0, 14).forEach(([v, colour]) => put(v, colour));
    } else if (p.values.length) {
      const order = p.values.map((v, i) => [v, i]).sort((a, b) => a[0] - b[0]), marks = [0, 0.5, 0.9, 0.99, 1].map(s => order[Math.round(s * (order.length - 1))]);
      new Map(marks.map(m => [m[0], m[1]])).forEach((i, v) => put(short(v, p.unit), p.pairs[p.colours[i]][dark]));
      if (this.panes.some(({ m }) => m.paints[this.painter.paint].list.length < m.count)) put(p.without, LOOKS[this.painter.look].group);
    }
  }
  async copy() {
    const node = $("command");
    if (!node) return;
    try { await navigator.clipboard.writeText(node.textContent); $("spoken").textContent = "copied"; }
    catch { const range = document.createRange(); range.selectNode(node); getSelection().removeAllRanges(); getSelection().addRange(range); }
  }
  // The view in the fragment of the address.
  save() {
    const v = this.painter.view, changed = [];
    const { initial } = this.pane;
    for (const [e, s] of this.p.state) if (initial.get(e) !== s) changed.push(e + "." + s);
    for (const e of initial.keys()) if (!this.p.state.has(e)) changed.push(e + ".0");
    const parts = { ...(this.side ? { s: 1 } : {}), x: v.x.toFixed(0), y: v.y.toFixed(0), z: v.z.toPrecision(3) };
    if (changed.length && changed.length < 500) parts.o = changed.join("_");
    if (this.chosen >= 0) parts.l = this.chosen; else if (this.box >= 0) parts.b = this.box;
    if ($("query").value) parts.q = $("query").value;
    if (this.painter.paint >= 0) parts.p = this.m.paints[this.painter.paint].name;
    if (!$("table").hidden) parts.t = 1;
    this.written = "#" + new URLSearchParams(parts);
    if (location.hash !== this.written) history.replaceState(null, "", this.written);
  }
  restore() {
    const f = new URLSearchParams(location.hash.slice(1));
    if (this.step) this.activate(f.get("s") === "1" ? 1 : 0);
    const total = this.m.parent.length;
    const number = key => { const n = Number(f.get(key)); return f.has(key) && Number.isFinite(n) ? n : null; };
    for (const part of (f.get("o") || "").split("_")) {
      const [e, s] = part.split(".").map(Number);
      if (Number.isInteger(e) && e >= this.m.count && e < total && e !== this.m.root && [0, 1, 2].includes(s)) this.p.set(e, s);
    }
    if (f.has("p")) { const i = this.m.paints.findIndex(p => p.name === f.get("p")); if (i >= 0) this.setPaint(i); }
    if (f.has("q")) this.search(f.get("q"));
    const l = number("l"), b = number("b");
    if (Number.isInteger(l) && l >= 0 && l < this.m.count) this.choose(l);
    else if (Number.isInteger(b) && b >= this.m.count && b < this.m.root) this.select(-1, b);
    const v = this.painter.view, [x, y, z] = ["x", "y", "z"].map(number);
    if (x !== null && y !== null && z > 0) Object.assign(v, { x, y, z: Math.min(Math.max(z, 1e-5), 6) });
    if (f.get("t")) this.showTable(true);
    this.redraw();
  }
  showTable(on) {
    $("table").hidden = !on;
    $("stage").hidden = on;
    if (this.step) $("stage2").hidden = on;
    $("tabled").setAttribute("aria-pressed", on);
    if (on) { this.table.ordered(); $("rows").firstChild?.focus(); }
    else { this.fill(); this.canvas.focus(); }
  }
  listenTo(pane, side) {
    const canvas = pane.canvas, pointers = new Map();
    let moved = 0;
    canvas.addEventListener("focus", () => this.activate(side));
    canvas.addEventListener("pointerdown", e => { this.activate(side); canvas.setPointerCapture(e.pointerId); pointers.set(e.pointerId, [e.offsetX, e.offsetY]); moved = 0; canvas.focus(); });
    canvas.addEventListener("pointermove", e => {
      const last = pointers.get(e.pointerId);
      if (!last) return;
      const v = this.painter.view;
      if (pointers.size === 2) {
        const [other] = [...pointers].filter(p => p[0] !== e.pointerId).map(p => p[1]);
        const far = p => Math.hypot(p[0] - other[0], p[1] - other[1]);
        this.zoom(far([e.offsetX, e.offsetY]) / Math.max(far(last), 1), other[0], other[1]);
      } else {
        v.x -= (e.offsetX - last[0]) / v.z;
        v.y -= (e.offsetY - last[1]) / v.z;
      }
      moved += Math.abs(e.offsetX - last[0]) + Math.abs(e.offsetY - last[1]);
      pointers.set(e.pointerId, [e.offsetX, e.offsetY]);
      this.redraw();
    });
    const up = e => {
      if (pointers.delete(e.pointerId) && moved < 5 && e.type === "pointerup") {
        const at = this.painter.at(e.offsetX, e.offsetY);
        this.select(at ? at.layer : -1, at ? at.box : -1);
      }
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("dblclick", e => {
      const at = this.painter.at(e.offsetX, e.offsetY);
      if (at && this.m.isGroup(at.box)) this.turn(at.box); else this.zoom(1.6, e.offsetX, e.offsetY);
    });
    canvas.addEventListener("wheel", e => {
      e.preventDefault();
      this.activate(side);
      const v = this.painter.view, unit = e.deltaMode === 1 ? 32 : 1;
      if (e.ctrlKey || e.metaKey) this.zoom(Math.exp(-e.deltaY * unit * 0.004), e.offsetX, e.offsetY);
      else { v.x += ((e.shiftKey ? e.deltaY : e.deltaX) * unit) / v.z; v.y += ((e.shiftKey ? 0 : e.deltaY) * unit) / v.z; this.redraw(); }
    }, { passive: false });
    new ResizeObserver(() => this.fill()).observe(canvas.parentNode);
  }
  listen() {
    this.panes.forEach((pane, side) => this.listenTo(pane, side));
    addEventListener("keydown", e => this.key(e));
    addEventListener("hashchange", () => { if (location.hash !== this.written) this.restore(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", e => this.lookOf(e.matches ? "dark" : "light"));
    let screen = null;
    addEventListener("beforeprint", () => { screen = this.painter.look; this.lookOf("light"); this.draw(); });
    addEventListener("afterprint", () => screen && this.lookOf(screen));
    $("query").addEventListener("input", () => this.search($("query").value));
    $("query").addEventListener("keydown", e => {
      if (e.key === "Enter") { this.next(e.shiftKey ? -1 : 1); e.preventDefault(); }
      if (e.key === "Escape") { this.canvas.focus(); e.preventDefault(); }
      e.stopPropagation();
    });
    const click = { previous: () => this.next(-1), next: () => this.next(1), open: () => this.levels(true), close: () => this.levels(false), fit: () => this.fit(), dark: () => this.lookOf(this.painter.look === "dark" ? "light" : "dark"), help: () => ($("keys").hidden = !$("keys").hidden), tabled: () => this.showTable($("table").hidden) };
    for (const [id, act] of Object.entries(click)) $(id).onclick = act;
    if (this.step) Object.entries({ before: -1, after: 1 }).forEach(([id, by]) => ($(id).onclick = () => this.step.next(by)));
    $("more").onclick = () => this.step.more();
    $("paint").onchange = () => this.setPaint(Number($("paint").value));
  }
  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT)$/.test(e.target.tagName)) return;
    const onButton = e.target.tagName === "BUTTON" || e.target.tagName === "TR";
    if (onButton && (e.key === "Enter" || e.key === " ")) return;
    const acts = {
      ArrowDown: () => this.walk(true), ArrowUp: () => this.walk(false), ArrowLeft: () => this.aside(-1), ArrowRight: () => this.aside(1),
      Enter: () => this.m.isGroup(this.box) && this.turn(this.box), Backspace: () => this.out(), Escape: () => this.clear(),
      "/": () => $("query").select() || $("query").focus(), n: () => this.next(1), N: () => this.next(-1),
      u: () => this.path(true, false), j: () => this.path(false, true), p: () => this.path(true, true),
      "+": () => this.levels(true), "=": () => this.levels(true), "-": () => this.levels(false), z: () => this.zoom(1.25), x: () => this.zoom(0.8),
      0: () => this.fit(), 1: () => { this.home(); this.redraw(); }, b: () => this.largest(), t: () => this.showTable($("table").hidden), v: () => this.nextPaint(1), V: () => this.nextPaint(-1),
      c: () => this.copy(), d: () => $("dark").click(), "?": () => $("help").click(),
      ".": () => this.step?.next(1), ",": () => this.step?.next(-1), w: () => this.swap(), PageDown: () => this.scroll(0.85), PageUp: () => this.scroll(-0.85),
    };
    if (!(e.key in acts)) return;
    if (onButton && e.key.startsWith("Arrow")) return;
    acts[e.key]();
    e.preventDefault();
  }
  // To the other of two models in step, at what is chosen there.
  swap() {
    if (!this.step) return;
    this.activate(1 - this.side);
    this.canvas.focus();
  }
  scroll(by) { const v = this.painter.view; v.y += (by * this.painter.h) / v.z; this.redraw(); }
}

unpack($("data").textContent).then(data => {
  const app = new App(data);
  document.documentElement.dataset.ready = "yes";
  app.canvas.focus();
}, error => {
  $("title").textContent = "The data of this page cannot be read: " + error;
});
