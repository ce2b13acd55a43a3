// Where everything is, given which groups are open. The same rules as in Python (scene.py):
// rows as high as their highest child, distances stretched by the widest that is open there.
const TITLE = 26, PAD = 14, CLOSED = 0, SAMPLE = 1, OPEN = 2;

class Places {
  constructor(model) {
    this.m = model;
    this.state = new Map();
    this.size = new Map();
    this.version = 0;
  }
  isOpen(e) { return this.m.isGroup(e) && !!this.state.get(e); }
  // Of a repetition that is shown by its first turn, that turn.
  shownAs(e) {
    while (this.m.isGroup(e) && this.state.get(e) === SAMPLE) {
      const first = this.m.group(e).children[0];
      if (!this.m.isGroup(first)) break;
      e = first;
    }
    return e;
  }
  inside(e) { return this.m.group(this.shownAs(e)).children; }
  set(e, state) {
    this.version++;
    if (state) this.state.set(e, state); else this.state.delete(e);
    for (let up = e; up >= 0; up = this.m.parent[up]) this.size.delete(up);
  }
  // Open what is around until a box is to be seen.
  reveal(e) {
    let inner = e;
    for (let up = this.m.parent[e]; up >= 0; inner = up, up = this.m.parent[up]) {
      const g = this.m.group(up);
      const state = g.kind === "run" && g.children[0] === inner && this.m.isGroup(inner) && this.state.get(up) !== OPEN ? SAMPLE : OPEN;
      if (this.state.get(up) !== state && this.state.get(up) !== OPEN) this.set(up, state);
    }
  }
  measure(e) {
    const known = this.size.get(e);
    if (known) return known;
    const m = this.m, half = m.d.half[e], height = m.d.height[e];
    let found = { left: half, right: half, height };
    if (this.isOpen(e)) found = this.measureOpen(e);
    this.size.set(e, found);
    return found;
  }
  measureOpen(e) {
    const m = this.m, shown = this.shownAs(e), g = m.group(shown), geo = g.geometry;
    const heights = new Float64Array(geo.gaps.length), wide = [];
    for (let i = 0; i < geo.n; i++) {
      const c = g.children[i], size = this.measure(c), row = geo.row[i];
      heights[row] = Math.max(heights[row], size.height, m.d.height[c]);
      if (this.isOpen(c)) {
        const x = geo.x[i], half = m.d.half[c];
        wide.push([x - half, x, size.left / half], [x, x + half, size.right / half]);
      }
    }
    const stretch = stretching(wide), root = e === m.root, pad = root ? 0 : PAD;
    const tops = new Float64Array(heights.length + 1);
    tops[0] = root ? 0 : TITLE;
    for (let r = 0; r < heights.length; r++) tops[r + 1] = tops[r] + heights[r] + geo.gaps[r];
    const last = heights.length - 1;
    return {
      left: Math.max(pad - stretch(-geo.left), m.d.half[e]),
      right: Math.max(pad + stretch(geo.right), m.d.half[e]),
      height: (last < 0 ? tops[0] : tops[last] + heights[last]) + pad,
      heights, tops, stretch, x: geo.x.map(stretch), rail: geo.rail.map(stretch),
    };
  }
  // The middle and the top of a box that is seen; null where it is not.
  find(e) {
    const chain = [];
    for (let at = e; at !== this.m.root; ) {
      const up = this.m.parent[at];
      if (!(up >= 0)) return null;
      chain.push(at);
      at = up;
    }
    let x = 0, y = 0, around = this.m.root, turn = around;
    for (const c of chain.reverse()) {
      if (!this.isOpen(around)) return null;
      const shown = this.shownAs(around);
      if (turn !== shown) {
        // The first turn of a repetition stands where the repetition does.
        if (c !== this.m.group(turn).children[0]) return null;
        turn = c;
        continue;
      }
      const i = this.m.group(shown).children.indexOf(c), row = this.m.group(shown).geometry.row[i];
      const size = this.measure(around), own = this.measure(c);
      x += size.x[i];
      y += size.tops[row] + (size.heights[row] - own.height) / 2;
      around = turn = c;
    }
    return { x, y, box: around, ...this.measure(around) };
  }
}

function stretching(wide) {
  wide = wide.filter(w => w[2] > 1);
  if (!wide.length) return x => x;
  const points = Float64Array.from(new Set([0, ...wide.flatMap(w => [w[0], w[1]])])).sort();
  const slopes = new Float64Array(points.length - 1).fill(1);
  const index = new Map(Array.from(points, (p, i) => [p, i]));
  // The steepest first; what is covered is passed over at once.
  const after = Int32Array.from({ length: points.length + 1 }, (_, i) => i);
  const free = i => { while (after[i] !== i) i = after[i] = after[after[i]]; return i; };
  for (const [a, b, s] of wide.sort((p, q) => q[2] - p[2]))
    for (let i = free(index.get(a)), end = index.get(b); i < end; i = free(i)) { slopes[i] = s; after[i] = i + 1; }
  const moved = new Float64Array(points.length);
  for (let i = 1; i < points.length; i++) moved[i] = moved[i - 1] + (points[i] - points[i - 1]) * slopes[i - 1];
  const zero = moved[index.get(0)];
  const end = points.length - 1;
  return x => {
    if (x <= points[0]) return moved[0] - zero + x - points[0];
    if (x >= points[end]) return moved[end] - zero + x - points[end];
    let low = 0, high = end;
    while (high - low > 1) { const mid = (low + high) >> 1; if (points[mid] <= x) low = mid; else high = mid; }
    return moved[low] - zero + (x - points[low]) * slopes[low];
  };
}
