// The query line: words, and conditions such as type:MaxPool shape:1,?,56,56 attr.kernel=3.
const KEYS = ["type", "name", "shape", "dtype", "id", "op", "in"];
const CONDITION = new RegExp(`^(${KEYS.join("|")}|attr\\.[^=:]+)[:=](.*)$`, "i");
function parseQuery(text) {
  const terms = [];
  for (const [, not, quoted, key, value, plain] of text.matchAll(/(-?)(?:"([^"]*)"|([a-z]+(?:\.[^=:\s"]+)?[:=])"([^"]*)"|(\S+))/gi)) {
    const word = quoted ?? (key ? key + value : plain), found = quoted === undefined && CONDITION.exec(word);
    terms.push({ not: !!not, key: found ? (found[1].startsWith("attr.") ? found[1] : found[1].toLowerCase()) : "", value: found ? found[2] : word, odd: found === null && /^[a-z][\w.]*[:=<>]/i.test(word) });
  }
  return terms;
}
const sizesFit = (wanted, sizes) => {
  const a = wanted.replace(/[[\]]/g, "").split(/[,×x]/).map(s => s.trim()), b = sizes.split(",");
  return (sizes || wanted === "" ? a.length === b.length : false) && a.every((s, i) => s === "?" || s === "*" || s === b[i]);
};
// A number that stands for each axis fits all: kernel=3 and kernel="3,3".
const valuesFit = (wanted, value) => {
  const low = wanted.toLowerCase(), have = value.toLowerCase();
  if (low === have) return true;
  const parts = have.split(",").map(s => s.trim()), asked = low.split(",").map(s => s.trim());
  if (asked.length === 1) return parts.every(p => p === low);
  return asked.length === parts.length && asked.every((s, i) => s === "?" || s === parts[i]);
};
function fits(m, l, t) {
  const v = t.value.toLowerCase();
  switch (t.key) {
    case "": return m.names[l].toLowerCase().includes(v) || m.type(l).name.toLowerCase().includes(v);
    case "type": return v.includes("*") ? starFits(v, m.type(l).name.toLowerCase()) : m.type(l).name.toLowerCase() === v;
    case "op": return m.type(l).spec.toLowerCase() === v;
    case "name": return v.includes("*") ? starFits(v, m.names[l].toLowerCase()) : m.names[l].toLowerCase().includes(v);
    case "id": return String(m.id[l]) === v;
    case "dtype": return m.tensors(l).some(x => kindOf(x) === v);
    case "shape": return m.tensors(l).some(x => sizesFit(v, sizesOf(x)));
    case "in": return m.inputs(l).some(([s, o]) => sizesFit(v, sizesOf(m.tensors(s)[o] || "")));
    default: return m.attributes(l).some(([k, x]) => k.toLowerCase() === t.key.slice(5).toLowerCase() && valuesFit(t.value, x));
  }
}
// A pattern with stars, without the cost of a regular expression that goes back and forth.
function starFits(pattern, text) {
  const parts = pattern.split("*");
  if (!text.startsWith(parts[0])) return false;
  let at = parts[0].length;
  for (const part of parts.slice(1, -1)) {
    at = text.indexOf(part, at);
    if (at < 0) return false;
    at += part.length;
  }
  const end = parts[parts.length - 1];
  return text.length - end.length >= at && text.endsWith(end);
}
// What to say where nothing was found: a word may have been meant as a condition that there is not.
function foundNone(text) {
  const odd = parseQuery(text).find(t => t.odd);
  return odd ? `0 found; ${odd.value.slice(0, 40)} is no condition, these are: ${KEYS.map(k => k + ":").join(" ")} attr.NAME=` : "0 found";
}
function search(m, text) {
  const terms = parseQuery(text), found = [];
  if (terms.length)
    for (let l = 0; l < m.count; l++) if (terms.every(t => fits(m, l, t) !== t.not)) found.push(l);
  return found;
}
