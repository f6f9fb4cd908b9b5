// The arrays of the page, by keys, and how they are written. `Arrays.now(key)` is {shape, kind, data}.
const Arrays = (() => {
  const stored = JSON.parse(document.getElementById("numbers").textContent), found = new Map();
  let changed = new Map();                    // what takes the place of the arrays that were explained

  function unpacked([shape, kind, size, text]) {
    const raw = atob(text), bytes = new Uint8Array(raw.length / size * 4);
    for (let i = 0, at = 0; i < raw.length; at += 4) for (let k = 4 - size; k < 4; k++) bytes[at + k] = raw.charCodeAt(i++);
    const view = new DataView(bytes.buffer);
    return {shape, kind, data: Float32Array.from({length: bytes.length / 4}, (_, i) => view.getFloat32(4 * i, true))};
  }

  function first(key) {
    const array = stored[key];                // or the key of another that is alike
    if (!found.has(key)) found.set(key, typeof array === "string" ? first(array) : array ? unpacked(array) : null);
    return found.get(key);
  }

  const now = key => changed.get(key) ?? first(key);
  const change = arrays => { changed = arrays; };

  // ── numbers as text: as text.py writes them ─────────────────────────────────────────────────────────────────────────

  function short(x, kind = "f") {
    if (kind === "b") return x ? "True" : "False";
    if (Number.isNaN(x)) return "nan";
    if (!Number.isFinite(x)) return x > 0 ? "inf" : "−inf";
    if (kind === "i" || Number.isInteger(x) && Math.abs(x) < 1e6) return String(x === 0 ? 0 : x).replace("-", "−");
    const [digits, power] = x.toExponential(3).split("e"), e = Number(power), strip = text => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
    const text = e < -4 || e >= 4 ? `${strip(digits)}e${e < 0 ? "-" : "+"}${String(Math.abs(e)).padStart(2, "0")}` : strip(x.toFixed(3 - e));
    return text.replaceAll("-", "−");
  }

  function text({shape, kind, data}, width = 60) {
    const size = data.length;
    if (shape.length < 2 && size === 1) return short(data[0], kind);
    const listed = (axis, from, length, corner) => {
      if (axis === shape.length) return short(data[from], kind);
      const n = shape[axis], step = length / n, at = i => listed(axis + 1, from + i * step, step, corner);
      const whole = corner === null || n <= 2 * corner, places = Array.from({length: whole ? n : corner}, (_, i) => i);
      return `[${(whole ? places.map(at) : [...places.map(at), "…", ...places.map(i => at(n - corner + i))]).join(", ")}]`;
    };
    for (const corner of size > 256 ? [3, 2, 1] : [null, 3, 2, 1]) {
      const found = listed(0, 0, size, corner);
      if (found.length <= width) return found;
    }
    const deep = shape.length, line = size ? `${"[".repeat(deep)}${short(data[0], kind)}, …, ${short(data[size - 1], kind)}${"]".repeat(deep)}` : "[]";
    return line.length <= width && deep <= 2 ? line : `${shape.join(" × ")} numbers`;
  }

  // ── numbers on the page ─────────────────────────────────────────────────────────────────────────────────────────────

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // A matrix in numbers, less its middle if it has more than `most` rows or columns.
  function table({shape, kind, data}, most = 6) {
    const ends = n => n > most ? [...Array(most / 2).keys(), null, ...Array.from({length: most / 2}, (_, i) => n - most / 2 + i)] : [...Array(n).keys()];
    const [rows, columns] = shape;
    return element("table", {class: "matrix"}, element("tbody", {}, ...ends(rows).map(r => element("tr", {}, ...ends(columns).map(c =>
      element("td", {}, r === null ? "⋮" : c === null ? "…" : short(data[r * columns + c], kind)))))));
  }

  // Write what is shown of arrays within an element anew; returns those whose text is another now.
  function refresh(root) {
    const fresh = [];
    for (const shown of root.querySelectorAll("[data-show]")) {
      const array = now(shown.dataset.show), before = shown.textContent;
      if (!array) continue;
      if (shown.dataset.heat !== undefined) Heat.draw(shown, array);
      else if (array.shape.length === 2 && array.data.length > 1) shown.replaceChildren(table(array));
      else shown.textContent = text(array, 100);
      if (shown.textContent !== before && shown.dataset.heat === undefined) fresh.push(shown);
    }
    for (const shown of root.querySelectorAll("[data-number]")) {
      const array = now(shown.dataset.number), said = short(array.data[0], array.kind);
      shown.textContent = said.startsWith("−") && shown.dataset.alone === undefined ? `(${said})` : said;
    }
    for (const shown of root.querySelectorAll("[data-when]")) shown.hidden = !shown.dataset.when.split(" & ").every(holds);
    return fresh;
  }

  const TESTS = {"=": (a, b) => a === b, "≠": (a, b) => a !== b, "<": (a, b) => a < b, ">": (a, b) => a > b, "≤": (a, b) => a <= b, "≥": (a, b) => a >= b};
  function holds(condition) {
    const parts = condition.split(" "), wanted = parts[0] !== "not", [what, sign, bound] = wanted ? parts : parts.slice(1);
    return TESTS[sign](now(what)?.data[0] ?? Number(what), Number(bound)) === wanted;
  }

  return {now, first, change, short, text, table, refresh, element};
})();
