// The canvas: only what is in view, and of that only what can be told apart.
const LOOKS = {
  light: { bg: "#fff", fg: "#1b2027", dim: "#4a5361", edge: "#8b93a1", frame: "#c9ced6", group: "#f1f3f6", open: "rgba(10,42,90,.035)", border: "rgba(0,0,0,.2)", chip: "#fff", accent: "#2f6fde", hit: "#e8a400" },
  dark: { bg: "#15181d", fg: "#eef1f5", dim: "#c8ced8", edge: "#78818f", frame: "#3d4551", group: "#262c34", open: "rgba(255,255,255,.03)", border: "rgba(255,255,255,.16)", chip: "#1b2026", accent: "#6ea2ff", hit: "#ffc74a" },
};
const LETTER = 6.7, CHIP = 17, MOST_CHIPS = 6, LAYER = 40, GROUP = 46;

class Painter {
  constructor(canvas, model, places) {
    this.canvas = canvas;
    this.c = canvas.getContext("2d", { alpha: false });
    this.m = model;
    this.p = places;
    this.view = { x: 0, y: 0, z: 1 };
    this.marks = { chosen: -1, box: -1, hits: new Set(), path: null, around: null };
    this.paint = -1;
    this.look = "light";
    this.drawn = 0;
    this.seen = [];
    // What stands above the picture takes so much of it.
    this.head = 0;
  }
  resize() {
    const d = window.devicePixelRatio || 1, { clientWidth: w, clientHeight: h } = this.canvas;
    this.w = w; this.h = h; this.ratio = d;
    const wide = Math.round(w * d), tall = Math.round(h * d);
    if (wide === this.canvas.width && tall === this.canvas.height) return;
    this.canvas.width = wide;
    this.canvas.height = tall;
  }
  sx(x) { return (x - this.view.x) * this.view.z + this.w / 2; }
  sy(y) { return (y - this.view.y) * this.view.z + this.h / 2; }
  draw() {
    const c = this.c, k = LOOKS[this.look];
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = k.bg;
    c.fillRect(0, 0, this.w, this.h);
    this.drawn = 0;
    this.seen = [];
    this.k = k;
    c.textBaseline = "alphabetic";
    this.inside(this.m.root, 0, 0, 0);
    const { x, y, z } = this.view;
    this.canvas.dataset.view = [x, y, z].map(n => Number(n.toPrecision(6))).join(" ");
    this.canvas.dataset.boxes = this.drawn;
  }
  // The fill of a box or chip, and the ink on it where the usual ones are not legible.
  colours(e) {
    const dark = this.look === "dark" ? 1 : 0, group = this.m.isGroup(e);
    if (this.paint < 0) return [group ? this.k.group : this.m.d.families[this.m.type(e).family][1 + dark]];
    const paint = this.m.paints[this.paint], i = group ? this.mostOf(e) : paint.at.get(e);
    if (i === undefined) return [this.k.group];
    const pair = paint.pairs[paint.colours[i]];
    return [pair[dark], pair[2 + dark]];
  }
  rows(size, y) {
    // The first and last row in view, and how many to pass over where rows are thinner than a pixel.
    const z = this.view.z, top = this.view.y - this.h / 2 / z - y, bottom = this.view.y + this.h / 2 / z - y;
    const tops = size.tops, n = size.heights.length;
    let low = 0, high = n;
    while (low < high) { const mid = (low + high) >> 1; if (tops[mid + 1] < top) low = mid + 1; else high = mid; }
    let end = low;
    high = n;
    while (end < high) { const mid = (end + high) >> 1; if (tops[mid] <= bottom) end = mid + 1; else high = mid; }
    return [low, end, Math.max(1, Math.floor((end - low) / (this.h * 1.5 + 1)))];
  }
  inside(e, x, y, depth) {
    const m = this.m, shown = this.p.shownAs(e), g = m.group(shown), geo = g.geometry, size = this.p.measure(e), z = this.view.z;
    const [from, to, step] = this.rows(size, y);
    // Open groups lie below the edges, all else above.
    const later = [];
    for (let r = from; r < to; r += step)
      for (const i of geo.byRow[r]) {
        const child = g.children[i], own = this.p.measure(child);
        const cx = x + size.x[i], cy = y + size.tops[r] + (size.heights[r] - own.height) / 2;
        const left = this.sx(cx - own.left), right = this.sx(cx + own.right + m.d.chipWidth[child]);
        if (right < 0 || left > this.w) continue;
        if (this.p.isOpen(child) && own.height * z > 24) this.frame(child, cx, cy, own);
        later.push([child, cx, cy, own]);
      }
    if (z > 0.035 || geo.s.length < 3000) this.edges(e, g, geo, size, x, y, from, to);
    if (e !== m.root) this.heading(e, x, y, size, depth - 1);
    for (const [child, cx, cy, own] of later) {
      if (this.p.isOpen(child) && own.height * z > 24) { this.inside(child, cx, cy, depth + 1); this.beside(child, cx, cy, own); }
      else this.box(child, cx, cy, own);
    }
  }
  alpha(e) {
    const path = this.marks.around;
    return path && !path.has(e) ? 0.22 : 1;
  }
  frame(e, x, y, own) {
    const c = this.c, k = this.k, z = this.view.z;
    const left = this.sx(x - own.left), top = this.sy(y), w = (own.left + own.right) * z, h = own.height * z;
    c.globalAlpha = this.alpha(e);
    c.fillStyle = k.open;
    c.strokeStyle = e === this.marks.box ? k.accent : this.marks.hits.has(e) ? k.hit : k.frame;
    c.lineWidth = e === this.marks.box ? 2.5 : 1;
    c.beginPath();
    c.roundRect(left, top, w, h, Math.min(8 * z, 10));
    c.fill();
    c.stroke();
    c.globalAlpha = 1;
    this.drawn++;
  }
  // The title of an open group, over the edges that enter it.
  heading(e, x, y, own, depth) {
    const c = this.c, k = this.k, z = this.view.z;
    if (z <= 0.3) return;
    const left = this.sx(x - own.left), top = this.sy(y), w = (own.left + own.right) * z, h = own.height * z;
    c.globalAlpha = this.alpha(e);
    c.fillStyle = k.fg;
    c.strokeStyle = k.group;
    c.lineWidth = 5 * z;
    c.lineJoin = "round";
    c.textAlign = "left";
    // The title of what is larger than the screen stays in sight.
    const low = h > this.h * 0.8 ? Math.min(14 + this.head + 15 * depth * Math.min(z, 1), top + h - 6) : -1e9;
    const ty = Math.max(top + (TITLE - 9) * z, low), tx = Math.max(left + 10 * z, 6);
    this.font(600, 12.5);
    this.text(this.m.title(e) + this.turns(e), tx, ty, left + w - tx, true);
    c.globalAlpha = 1;
  }
  turns(e) {
    return this.m.isGroup(e) && this.m.group(e).kind === "run" && this.p.state.get(e) === SAMPLE ? "  (the first of them)" : "";
  }
  font(weight, size) {
    this.c.font = `${weight} ${(size * this.view.z).toFixed(2)}px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif`;
    this.letter = LETTER * this.view.z * (size / 12.5) * (weight > 500 ? 1.07 : 1);
  }
  text(s, x, y, room, apart = false) {
    const most = Math.floor(room / this.letter);
    if (most < 2) return;
    const cut = s.length > most ? s.slice(0, most - 1) + "…" : s;
    if (apart) this.c.strokeText(cut, x, y, room);
    this.c.fillText(cut, x, y, room);
  }
  box(e, x, y, own) {
    const c = this.c, k = this.k, m = this.m, z = this.view.z, group = m.isGroup(e);
    const h = group ? Math.max(GROUP, this.p.isOpen(e) ? own.height : 0) : LAYER;
    const top = this.sy(y + (own.height - h) / 2), left = this.sx(x - own.left), w = (own.left + own.right) * z, high = h * z;
    if (top > this.h || top + high < 0) return;
    this.drawn++;
    this.seen.push([e, x, y + own.height / 2]);
    const hit = this.marks.hits.has(e), chosen = e === this.marks.box;
    c.globalAlpha = this.alpha(e);
    const [fill, ink] = this.colours(e);
    c.fillStyle = fill;
    if (high < 5) {
      c.fillRect(left, top, Math.max(w, 1), Math.max(high, 1));
      if (chosen || hit) { c.fillStyle = chosen ? k.accent : k.hit; c.fillRect(left - 3, top - 2, Math.max(w, 1) + 6, Math.max(high, 1) + 4); }
      c.globalAlpha = 1;
      return;
    }
    c.strokeStyle = group ? k.frame : k.border;
    c.lineWidth = 1;
    if (group && m.group(e).kind === "run")
      for (const d of [6, 3]) { c.beginPath(); c.roundRect(left + d * z, top + d * z, w, high, 5 * z); c.fill(); c.stroke(); }
    c.beginPath();
    c.roundRect(left, top, w, high, 5 * z);
    c.fill();
    c.stroke();
    if (chosen || hit) {
      c.strokeStyle = chosen ? k.accent : k.hit;
      c.lineWidth = 2.5;
      c.stroke();
    }
    if (z > 0.42) {
      c.textAlign = "center";
      c.fillStyle = ink || k.fg;
      this.font(600, 12.5);
      this.text((group ? "▸ " : "") + m.title(e), this.sx(x), top + 17 * z, w - 6 * z);
      if (z > 0.55) {
        c.fillStyle = ink || k.dim;
        this.font(400, 10.5);
        this.text(m.detail(e), this.sx(x), top + 31 * z, w - 6 * z);
      }
    }
    c.globalAlpha = 1;
    this.beside(e, x, y, own);
  }
  // The constants that a box reads, be it closed or open.
  beside(e, x, y, own) {
    const chips = this.m.chips.get(e);
    if (!chips || this.view.z <= 0.3) return;
    this.c.globalAlpha = this.alpha(e);
    this.chips(e, chips, x + own.right + 8, y, own);
    this.c.globalAlpha = 1;
  }
  chips(e, list, x, y, own) {
    const c = this.c, k = this.k, z = this.view.z, n = Math.min(list.length, MOST_CHIPS), more = list.length > n;
    const w = this.m.d.chipWidth[e] - 8, top = y + (own.height - CHIP * (n + more)) / 2;
    c.lineWidth = 1;
    c.textAlign = "center";
    for (let i = 0; i < n + more; i++) {
      const at = top + CHIP * i;
      const [fill, ink] = this.paint < 0 || i === n ? [k.chip] : this.colours(list[i]);
      c.fillStyle = fill;
      c.strokeStyle = list[i] === this.marks.chosen && i < n ? k.accent : k.frame;
      c.beginPath();
      c.roundRect(this.sx(x), this.sy(at + 1), w * z, (CHIP - 2) * z, 7 * z);
      c.fill();
      c.stroke();
      if (z > 0.6) {
        c.fillStyle = ink || k.dim;
        this.font(400, 9.5);
        this.text(i < n ? this.m.chipText.get(list[i]).replaceAll(",", "×") : "+" + (list.length - n), this.sx(x + w / 2), this.sy(at + 12), (w - 4) * z);
      }
    }
  }
  // Which value a closed group is painted by: that of the layer inside that stands out most.
  mostOf(e) {
    const key = this.paint + " " + e;
    this.most ||= new Map();
    if (!this.most.has(key)) {
      const paint = this.m.paints[this.paint];
      let best;
      const stack = [e];
      while (stack.length) {
        const at = stack.pop();
        if (this.m.isGroup(at)) { stack.push(...this.m.group(at).children); if (!this.m.owner.has(at)) continue; }
        const i = paint.at.get(this.m.owner.get(at) ?? at);
        // Of words, what says most has the first colour.
        if (i !== undefined && (best === undefined || (paint.kind === "number" ? paint.values[i] > paint.values[best] : paint.colours[i] < paint.colours[best]))) best = i;
      }
      this.most.set(key, best);
    }
    return this.most.get(key);
  }
  edges(e, g, geo, size, x, y, from, to) {
    const c = this.c, k = this.k, total = this.m.parent.length;
    let list = null;
    if (geo.strips.length) {
      const seen = new Set();
      for (let b = from >> 6; b <= to >> 6; b++) for (const i of geo.strips[b] || []) seen.add(i);
      list = [...seen];
    }
    const marked = [];
    c.strokeStyle = k.edge;
    c.fillStyle = k.edge;
    c.lineWidth = Math.min(1.3, Math.max(0.5, this.view.z * 1.6));
    c.globalAlpha = this.marks.around ? 0.3 : 1;
    c.beginPath();
    const n = list ? list.length : geo.s.length;
    for (let j = 0; j < n; j++) {
      const i = list ? list[j] : j, s = geo.s[i], t = geo.t[i];
      if (geo.row[t] < from - 1 || geo.row[s] > to) continue;
      if (this.stands(g, geo, i)) { marked.push(i); continue; }
      this.edge(g, geo, size, x, y, i);
    }
    c.stroke();
    c.globalAlpha = 1;
    if (marked.length) {
      c.strokeStyle = k.accent;
      c.lineWidth = 2;
      c.beginPath();
      for (const i of marked) this.edge(g, geo, size, x, y, i);
      c.stroke();
    }
  }
  // Whether an edge is joined with what is chosen, or lies on the path.
  stands(g, geo, i) {
    const { chosen, box, path, around } = this.marks, from = this.m.valueLayer[g.values[geo.v[i]]];
    const s = geo.s[i] < geo.n ? g.children[geo.s[i]] : -1, t = geo.t[i] < geo.n ? g.children[geo.t[i]] : -1;
    if (path) return path.has(from) && (t < 0 || around.has(t));
    return chosen >= 0 && from === chosen ? true : box >= 0 && (s === box || t === box);
  }
  end(child, offset, value, enters, x) {
    // Where an open group shows its port, the edge goes on there.
    if (this.p.isOpen(child) && this.p.shownAs(child) === child) {
      const g = this.m.group(child), geo = g.geometry;
      for (let i = 0; i < geo.ports.length; i++)
        if (g.values[geo.ports[i]] === value && (geo.row[geo.n + i] === 0) === enters) return x + this.p.measure(child).x[geo.n + i];
    }
    return x + offset;
  }
  edge(g, geo, size, x, y, i) {
    const c = this.c, s = geo.s[i], t = geo.t[i], a = geo.row[s], b = geo.row[t], value = g.values[geo.v[i]], z = this.view.z;
    let x0 = x + size.x[s], x1 = x + size.x[t], y0 = y, y1 = y + size.height;
    const bottom = y + size.tops[a] + size.heights[a], top = y + size.tops[b];
    if (s < geo.n) {
      const own = this.p.measure(g.children[s]);
      x0 = this.end(g.children[s], geo.out[i], value, false, x0);
      y0 = bottom - (size.heights[a] - this.tall(g.children[s], own)) / 2;
    }
    let arrow = false;
    if (t < geo.n) {
      const own = this.p.measure(g.children[t]);
      x1 = this.end(g.children[t], geo.into[i], value, true, x1);
      y1 = top + (size.heights[b] - this.tall(g.children[t], own)) / 2;
      arrow = !this.p.isOpen(g.children[t]) && z > 0.45;
    }
    let px = this.sx(x0);
    const last = this.sx(x1);
    c.moveTo(px, this.sy(y0));
    let py = this.sy(bottom);
    c.lineTo(px, py);
    if (b - a > 1) {
      const rail = this.sx(x + size.rail[i]), ny = this.sy(y + size.tops[a + 1]);
      this.bend(px, py, rail, ny);
      px = rail;
      py = this.sy(y + size.tops[b - 1] + size.heights[b - 1]);
      c.lineTo(px, py);
    }
    this.bend(px, py, last, this.sy(top));
    const end = this.sy(y1);
    c.lineTo(last, end);
    if (arrow) { c.moveTo(last - 3 * z, end - 5 * z); c.lineTo(last, end); c.lineTo(last + 3 * z, end - 5 * z); }
  }
  tall(e, own) { return this.p.isOpen(e) ? own.height : this.m.isGroup(e) ? GROUP : LAYER; }
  bend(x0, y0, x1, y1) {
    if (Math.abs(x1 - x0) < 0.6) this.c.lineTo(x1, y1);
    else { const h = (y0 + y1) / 2; this.c.bezierCurveTo(x0, h, x1, h, x1, y1); }
  }
  // What lies at a place of the screen: a box, or a chip of it.
  at(px, py) {
    const x = (px - this.w / 2) / this.view.z + this.view.x, y = (py - this.h / 2) / this.view.z + this.view.y;
    let e = this.m.root, bx = 0, by = 0, found = null;
    for (;;) {
      const shown = this.p.shownAs(e), g = this.m.group(shown), geo = g.geometry, size = this.p.measure(e);
      let next = null;
      for (let r = 0; r < size.heights.length; r++) {
        if (y < by + size.tops[r] || y > by + size.tops[r] + size.heights[r]) continue;
        for (const i of geo.byRow[r]) {
          const child = g.children[i], own = this.p.measure(child), cx = bx + size.x[i], cy = by + size.tops[r] + (size.heights[r] - own.height) / 2;
          const tall = this.tall(child, own), top = cy + (own.height - tall) / 2;
          if (x >= cx - own.left && x <= cx + own.right && y >= top && y <= top + tall) next = [child, cx, cy];
          const chips = this.m.chips.get(child), w = this.m.d.chipWidth[child];
          if (chips && x > cx + own.right && x <= cx + own.right + w) {
            const n = Math.min(chips.length, MOST_CHIPS), k = Math.floor((y - cy - (own.height - CHIP * (n + (chips.length > n))) / 2) / CHIP);
            if (k >= 0 && k < n) return { box: child, layer: chips[k] };
          }
        }
      }
      if (!next) return found;
      found = { box: next[0], layer: this.m.isGroup(next[0]) ? -1 : next[0] };
      if (!this.p.isOpen(next[0])) return found;
      [e, bx, by] = next;
    }
  }
}
