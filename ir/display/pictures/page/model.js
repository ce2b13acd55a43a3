// The model: what the data say, unpacked.
const sums = (a, start = 0) => { let s = start; return a.map(d => (s += d)); };
const typed = (a, kind = Int32Array) => kind.from(a);

async function unpack(text) {
  const raw = Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

class Model {
  constructor(d) {
    this.d = d;
    this.name = d.title;
    [this.kind, this.tensor, this.attribute, this.id, this.chip] = d.layers.map(a => typed(a));
    this.id = sums(d.layers[3]);
    this.count = this.kind.length;
    this.body = sums(d.body);
    let before = "";
    this.names = d.names[1].map((rest, i) => (before = before.slice(0, d.names[0][i]) + rest));
    // Inputs as ranges of one list, and readers the other way round.
    const n = this.count;
    this.first = new Int32Array(n + 1);
    d.inputs.forEach((c, i) => (this.first[i + 1] = this.first[i] + c));
    this.source = typed(d.sources);
    this.output = typed(d.outputs);
    const uses = new Int32Array(n + 1);
    for (let i = 0; i < n; i++)
      for (let k = this.first[i]; k < this.first[i + 1]; k++) uses[(this.source[k] = i - this.source[k]) + 1]++;
    for (let i = 0; i < n; i++) uses[i + 1] += uses[i];
    this.uses = uses;
    this.reader = new Int32Array(this.source.length);
    const fill = uses.slice();
    for (let i = 0; i < n; i++)
      for (let k = this.first[i]; k < this.first[i + 1]; k++) this.reader[fill[this.source[k]]++] = i;
    this.entering = new Map();
    this.leaving = new Map();
    d.walls[0].forEach((t, i) => {
      for (const [map, a, b] of [[this.entering, t, d.walls[1][i]], [this.leaving, d.walls[1][i], t]]) map.has(a) ? map.get(a).push(b) : map.set(a, [b]);
    });
    this.cut = new Set(d.cut);
    this.valueLayer = sums(d.values[0]);
    this.geometries = d.geometries.map(g => new Geometry(g));
    this.groups = d.groups.map((g, i) => ({
      label: g[0], kind: g[1], children: sums(g[2]), geometry: this.geometries[g[3]],
      values: sums(g[4]), detail: d.counts[i],
    }));
    this.root = n + this.groups.length - 1;
    this.parent = new Int32Array(n + this.groups.length).fill(-1);
    this.groups.forEach((g, i) => g.children.forEach(c => (this.parent[c] = n + i)));
    this.owner = new Map(d.owners[1].map((g, i) => [g, d.owners[0][i]]));
    this.groupOf = new Map(d.owners[0].map((l, i) => [l, d.owners[1][i]]));
    this.chips = new Map(d.chips[0].map((k, i) => [k, d.chips[1][i]]));
    this.chipReader = new Map();
    for (const [reader, list] of this.chips) for (const c of list) if (!this.chipReader.has(c)) this.chipReader.set(c, reader);
    const numbers = sums(d.chipTexts[1]);
    this.chipText = new Map(numbers.map((k, i) => [k, d.chipTexts[0][d.chipTexts[2][i]]]));
    this.paints = d.paints.map(p => {
      const layers = sums(p.layers);
      return { ...p, at: new Map(layers.map((l, i) => [l, i])), list: layers };
    });
  }
  isGroup(e) { return e >= this.count; }
  group(e) { return this.groups[e - this.count]; }
  type(l) { return this.d.types[this.kind[l]]; }
  tensors(l) { return this.d.tensors[this.tensor[l]]; }
  attributes(l) {
    const flat = this.d.attributes[this.attribute[l]], pairs = [];
    for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i], flat[i + 1]]);
    return pairs;
  }
  inputs(l) {
    const found = [];
    for (let k = this.first[l]; k < this.first[l + 1]; k++) found.push([this.source[k], this.output[k]]);
    return found;
  }
  readers(l) { return [...new Set(this.reader.subarray(this.uses[l], this.uses[l + 1]))]; }
  // The same, through the walls of bodies too.
  before(l) { return [...this.inputs(l).map(i => i[0]), ...(this.entering.get(l) || [])]; }
  after(l) { return [...this.readers(l), ...(this.leaving.get(l) || [])]; }
  // What stands in the picture for a layer: itself, the group that it is, or the reader of its chip.
  box(l) {
    const root = this.chip[l];
    const shown = root < 0 ? l : this.chipReader.get(root) ?? l;
    return this.groupOf.get(shown) ?? shown;
  }
  title(e) {
    if (!this.isGroup(e)) return this.type(e).name;
    return this.group(e).label;
  }
  detail(e) {
    if (this.isGroup(e)) return this.group(e).detail;
    const t = this.tensors(e);
    if (!t.length) {
      const i = this.inputs(e);
      return i.length ? spell(this.tensors(i[0][0])[i[0][1]] || "") : "";
    }
    return spell(t[0]) + (t.length > 1 ? " +" + (t.length - 1) : "");
  }
}

const KINDS = { FP32: "f32", FP16: "f16", BF16: "bf16", FP64: "f64", BOOL: "boolean", BIN: "u1" };
function kindOf(tensor) {
  const word = tensor.split(" ")[0];
  return KINDS[word] || word.toLowerCase();
}
const sizesOf = tensor => tensor.split(" ")[1] || "";
const spell = tensor => (kindOf(tensor) + " " + sizesOf(tensor).replaceAll(",", "×")).trim();

class Geometry {
  constructor(g) {
    this.n = g.n;
    this.row = typed(sums(g.row));
    this.x = Float64Array.from(g.x);
    this.ports = g.ports;
    this.s = typed(sums(g.s));
    this.t = typed(sums(g.t));
    this.v = typed(sums(g.v));
    this.out = g.o; this.into = g.i;
    this.rail = Float64Array.from(g.r);
    this.railed = g.k;
    this.gaps = g.gaps;
    this.left = g.left; this.right = g.right;
    // Edges by the rows that they pass, so that only those in view are looked at.
    this.step = 64;
    this.strips = [];
    if (this.s.length > 400)
      for (let e = 0; e < this.s.length; e++)
        for (let b = this.row[this.s[e]] >> 6; b <= this.row[this.t[e]] >> 6; b++)
          (this.strips[b] ||= []).push(e);
    this.byRow = Array.from({ length: this.gaps.length }, () => []);
    for (let i = 0; i < this.n; i++) this.byRow[this.row[i]].push(i);
  }
}
