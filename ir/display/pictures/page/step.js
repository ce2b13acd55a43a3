// A model in its own part of the screen.
class Pane {
  constructor(canvas, model) {
    this.canvas = canvas;
    this.m = model;
    this.p = new Places(model);
    this.painter = new Painter(canvas, model, this.p);
    this.hits = [];
    this.hit = -1;
    const [list, states] = model.d.initial;
    this.initial = new Map(list.map((e, i) => [e, states[i]]));
    this.initial.forEach((s, e) => this.p.set(e, s));
    this.painter.resize();
  }
  // Layers, and the boxes around them, as what all else is paler than.
  path(found) {
    const marks = this.painter.marks;
    marks.path = found;
    marks.around = found && new Set();
    for (const l of found || []) for (let e = this.m.box(l); e >= 0 && !marks.around.has(e); e = this.m.parent[e]) marks.around.add(e);
  }
  // The boxes in which layers are to be seen: where one is not, the closed group that holds it.
  spot(layers) {
    const found = new Set();
    for (const l of layers) {
      const e = this.m.box(l);
      for (let up = e; up >= 0; up = this.m.parent[up]) {
        found.add(up);
        if (up !== e && this.p.isOpen(up)) found.delete(up);
      }
    }
    this.painter.marks.hits = found;
  }
}

// Two models in step: which layer and which group of one is which of the other; what changed.
class Step {
  constructor(app, d) {
    this.app = app;
    const [a, b] = d.pairs.map(x => sums(x));
    this.layers = [new Map(a.map((l, i) => [l, b[i]])), new Map(b.map((l, i) => [l, a[i]]))];
    [this.words, this.word, this.one, this.two, this.text, this.following] = d.changes;
    this.at = -1;
    this.shown = 0;
    this.pairGroups();
    this.heads();
    this.more();
    this.version = -1;
    $("changes").hidden = $("stage2").hidden = false;
    document.body.classList.add("two");
  }
  // The groups that hold the same layers; either is the smallest that has all of the other.
  pairGroups() {
    const panes = this.app.panes;
    const least = panes.map(({ m }, side) => {
      const other = panes[1 - side].m, depth = new Int32Array(other.parent.length), found = new Int32Array(m.parent.length).fill(-1);
      for (let e = depth.length - 1; e >= 0; e--) if (other.parent[e] >= 0) depth[e] = depth[other.parent[e]] + 1;
      const join = (x, y) => {
        if (x < 0 || y < 0) return Math.max(x, y);
        while (x !== y) if (depth[x] >= depth[y]) x = other.parent[x]; else y = other.parent[y];
        return x;
      };
      for (let g = m.count; g < m.parent.length; g++)
        for (const c of m.group(g).children) {
          const to = m.isGroup(c) ? -1 : this.layers[side].get(c);
          found[g] = join(found[g], m.isGroup(c) ? found[c] : to === undefined ? -1 : other.parent[other.box(to)]);
        }
      return found;
    });
    this.groups = [new Map(), new Map()];
    const [one, two] = panes.map(pane => pane.m), pair = (g, h) => { this.groups[0].set(g, h); this.groups[1].set(h, g); };
    for (let g = one.count; g < one.parent.length; g++) {
      const h = least[0][g];
      if (h >= 0 && least[1][h] === g) pair(g, h);
      else if (one.group(g).children.length === 1) {
        // A box around one box, as of a layer with a body.
        const inner = this.groups[0].get(one.group(g).children[0]), up = inner === undefined ? -1 : two.parent[inner];
        if (up >= 0 && two.group(up).children.length === 1) pair(g, up);
      }
    }
    pair(one.root, two.root);
  }
  // What stands in the other picture for a box of one side; -1: nothing.
  entity(e, side) {
    const { m } = this.app.panes[side];
    if (m.isGroup(e)) return this.groups[side].get(e) ?? -1;
    const l = this.layers[side].get(e);
    return l === undefined ? -1 : this.app.panes[1 - side].m.box(l);
  }
  // What is opened here is opened there.
  mirror() {
    const { side, panes } = this.app, from = panes[side].p, to = panes[1 - side].p;
    if (this.version === from.version && this.side === side) return;
    for (const [g, h] of this.groups[side]) {
      const state = from.state.get(g) || CLOSED;
      if ((to.state.get(h) || CLOSED) !== state) to.set(h, state);
    }
    this.version = from.version;
    this.side = side;
  }
  choose(l, box) {
    const { side, panes } = this.app, marks = panes[1 - side].painter.marks;
    marks.chosen = l >= 0 ? this.layers[side].get(l) ?? -1 : -1;
    marks.box = marks.chosen >= 0 ? panes[1 - side].m.box(marks.chosen) : box >= 0 ? this.entity(box, side) : -1;
  }
  others(layers) {
    const to = this.layers[this.app.side];
    return layers.map(l => to.get(l)).filter(l => l !== undefined);
  }
  // The other picture moves so that what is paired lies at the same height.
  follow() {
    const { side, panes } = this.app, from = panes[side], to = panes[1 - side], v = from.painter.view, w = to.painter.view;
    const best = [null, null];
    for (const [e, x, y] of from.painter.seen) {
      const i = y <= v.y ? 0 : 1, cost = Math.abs(y - v.y) + 0.2 * Math.abs(x - v.x);
      if (best[i] && best[i].cost <= cost) continue;
      const other = this.entity(e, side);
      if (other >= 0) best[i] = { cost, x, y, other };
    }
    const ends = [];
    for (const at of best) {
      const there = at && to.p.find(at.other);
      if (there) ends.push({ ...at, dx: there.x - at.x, dy: there.y + there.height / 2 - at.y });
    }
    w.z = v.z;
    if (!ends.length) return;
    const [a, b] = ends.length > 1 ? ends : [ends[0], ends[0]], t = b.y > a.y ? (v.y - a.y) / (b.y - a.y) : 0;
    w.x = v.x + a.dx + t * (b.dx - a.dx);
    w.y = v.y + a.dy + t * (b.dy - a.dy);
  }
  // The list of changes.
  colour(word) {
    const dark = this.app.painter.look === "dark" ? 1 : 0;
    for (const { m } of this.app.panes) {
      const p = m.paints[m.d.paint], i = p.values.indexOf(word);
      if (i >= 0) return p.pairs[p.colours[i]][dark];
    }
    return "transparent";
  }
  heads() {
    const n = this.word.length;
    $("changed").textContent = n ? n.toLocaleString("en") + (n === 1 ? " change" : " changes") : "no difference";
    $("following").textContent = this.following ? this.following.toLocaleString("en") + " more follow from these" : "";
    this.app.panes.forEach((pane, i) => { $(i ? "which2" : "which").textContent = pane.m.name; pane.painter.head = 24; });
  }
  more() {
    const end = Math.min(this.shown + 300, this.word.length), list = $("list");
    for (; this.shown < end; this.shown++) {
      const i = this.shown, word = this.words[this.word[i]], side = this.one[i] >= 0 ? 0 : 1, l = side ? this.two[i] : this.one[i], { m } = this.app.panes[side];
      const mark = make("i");
      mark.dataset.word = word;
      list.append(make("li", {}, make("button", { onclick: () => this.jump(i) }, mark, make("b", { textContent: l < 0 ? "the model" : m.type(l).name }), " ", make("span", { className: "name", textContent: l < 0 ? "" : m.names[l] }), make("small", { textContent: word + " " + this.text[i] }))));
    }
    $("more").hidden = this.shown >= this.word.length;
    this.tint();
  }
  tint() { for (const mark of $("list").querySelectorAll("i")) mark.style.background = this.colour(mark.dataset.word); }
  next(by) {
    const n = this.word.length;
    if (n) this.jump(this.at < 0 ? (by > 0 ? 0 : n - 1) : (this.at + by + n) % n);
  }
  jump(i) {
    while (this.shown <= i) this.more();
    $("list").children[this.at]?.removeAttribute("aria-current");
    this.at = i;
    const item = $("list").children[i], ends = [this.one[i], this.two[i]];
    item.setAttribute("aria-current", "true");
    item.scrollIntoView({ block: "nearest" });
    if (ends[this.app.side] < 0 && ends[1 - this.app.side] >= 0) this.app.activate(1 - this.app.side);
    const l = ends[this.app.side];
    if (l >= 0) this.app.choose(l); else this.app.select(-1, -1);
    $("spoken").textContent = ("change " + (i + 1) + " of " + this.word.length + ": " + item.textContent).slice(0, 400);
  }
}
