// Formulas as students type them, read and computed: the same grammar as that of grammar.py.
const Grammar = (() => {
  "use strict";
  const count = shape => shape.reduce((a, b) => a * b, 1);
  const all = f => x => ({shape: x.shape, data: Array.from(x.data, f)});
  const one = value => ({shape: [], data: [value]});
  const total = x => Array.from(x.data).reduce((a, b) => a + b, 0);

  function transpose(x) {
    if (x.shape.length < 2) return x;
    const [n, m] = x.shape.slice(-2), out = {shape: [...x.shape.slice(0, -2), m, n], data: Array(x.data.length)};
    for (let p = 0; p < x.data.length / (n * m); p++) for (let i = 0; i < n; i++) for (let j = 0; j < m; j++)
      out.data[p * n * m + j * n + i] = x.data[p * n * m + i * m + j];
    return out;
  }

  const FUNCTIONS = {exp: all(Math.exp), log: all(Math.log), ln: all(Math.log), sqrt: all(Math.sqrt), tanh: all(Math.tanh), sin: all(Math.sin), cos: all(Math.cos),
    abs: all(Math.abs), sign: all(Math.sign), relu: all(x => Math.max(x, 0)), sigmoid: all(x => 1 / (1 + Math.exp(-x))), sum: x => one(total(x)),
    mean: x => one(total(x) / x.data.length), size: x => one(x.data.length), transpose};
  const BINARY = {"+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "^": (a, b) => a ** b};
  const COMPARISONS = {">": (a, b) => Number(a > b), "<": (a, b) => Number(a < b), ">=": (a, b) => Number(a >= b), "<=": (a, b) => Number(a <= b),
                       "≥": (a, b) => Number(a >= b), "≤": (a, b) => Number(a <= b)};
  const SAME = {"−": "-", "–": "-", "·": "*", "×": "*", "∗": "*", "÷": "/", "Σ": "sum"};
  const OTHER = /^(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)|([a-z_]\w*)|(\*\*|>=|<=|\.T(?!\w)|[-+*/@^(),|²³ᵀ<>≥≤]))/i;
  const within = letter => letter !== undefined && !"²³ᵀ".includes(letter) && /[\p{L}\p{N}_]/u.test(letter);

  function tokens(text, names) {
    text = text.replace(/[−–·×∗÷Σ]/g, sign => SAME[sign]);
    const known = [...names].sort((a, b) => b.length - a.length), found = [];
    for (let at = 0; at < text.length;) {
      if (/\s/.test(text[at])) { at++; continue; }
      const own = known.find(name => text.startsWith(name, at) && !within(text[at + name.length]));
      if (own !== undefined) { found.push(["name", own]); at += own.length; continue; }
      const match = OTHER.exec(text.slice(at));
      if (!match) throw new Error(`${text[at]} cannot be read`);
      const [whole, number, word, sign] = match;
      if (word && !(word.toLowerCase() in FUNCTIONS)) throw new Error(`${word} is not known here`);
      found.push(number ? ["number", number] : word ? ["function", word.toLowerCase()] : ["sign", sign]);
      at += whole.length;
    }
    return found;
  }

  function parsed(text, names) {
    if (text.length > 200) throw new Error("it is longer than 200 letters");
    const rest = tokens(text, names);
    let depth = 0;
    const next = (...signs) => rest.length && rest[0][0] === "sign" && signs.includes(rest[0][1]) ? rest.shift()[1] : null;
    const expect = sign => { if (!next(sign)) throw new Error(`${sign} is missing`); };
    function comparison() {
      const left = sum(), sign = next(...Object.keys(COMPARISONS));
      return sign ? [sign, left, sum()] : left;
    }
    function sum() {
      let tree = product();
      for (let sign; (sign = next("+", "-"));) tree = [sign, tree, product()];
      return tree;
    }
    function product() {
      let tree = signed();
      for (let sign; (sign = next("*", "/", "@"));) tree = [sign, tree, signed()];
      return tree;
    }
    function signed() {
      if (++depth > 40) throw new Error("it has too many brackets and signs");
      const tree = next("-") ? ["minus", signed()] : power();
      depth--;
      return tree;
    }
    function power() {
      let tree = atom();
      for (let sign; (sign = next("^", "**", "²", "³", "ᵀ", ".T"));)
        tree = sign === "ᵀ" || sign === ".T" ? ["call", "transpose", tree] : ["^", tree, "²³".includes(sign) ? ["number", "²³".indexOf(sign) + 2] : signed()];
      return tree;
    }
    function atom() {
      if (!rest.length) throw new Error("it ends too early");
      if (next("(")) { const tree = comparison(); expect(")"); return tree; }
      if (next("|")) { const tree = sum(); expect("|"); return ["call", "abs", tree]; }
      const [kind, text] = rest.shift();
      if (kind === "number") return ["number", Number(text)];
      if (kind === "name") return ["name", text];
      if (kind === "function") { expect("("); const tree = comparison(); expect(")"); return ["call", text, tree]; }
      throw new Error(`${text} is not expected there`);
    }
    const tree = comparison();
    if (rest.length) throw new Error(`${rest[0][1]} is not expected there`);
    return tree;
  }

  function each(f, a, b) {
    const n = Math.max(a.shape.length, b.shape.length), [s, t] = [a, b].map(x => [...Array(n - x.shape.length).fill(1), ...x.shape]);
    const shape = s.map((m, i) => { if (m !== t[i] && m !== 1 && t[i] !== 1) throw new Error("the shapes do not fit"); return m === 1 ? t[i] : m; });
    const at = (own, place) => { let k = 0, rest = place, step = 1; for (let d = n - 1; d >= 0; d--) { k += own[d] === 1 ? 0 : rest % shape[d] * step; rest = Math.floor(rest / shape[d]); step *= own[d]; } return k; };
    return {shape, data: Array.from({length: count(shape)}, (_, i) => f(a.data[at(s, i)], b.data[at(t, i)]))};
  }

  function matmul(a, b) {
    if (!a.shape.length || !b.shape.length || a.shape.length > 2 || b.shape.length > 2) throw new Error("the shapes do not fit");
    const [n, k] = a.shape.length === 1 ? [1, a.shape[0]] : a.shape, [l, m] = b.shape.length === 1 ? [b.shape[0], 1] : b.shape;
    if (k !== l) throw new Error("the shapes do not fit");
    const data = Array.from({length: n * m}, (_, at) => { let sum = 0; for (let i = 0; i < k; i++) sum += a.data[Math.floor(at / m) * k + i] * b.data[i * m + at % m]; return sum; });
    return {shape: [...a.shape.slice(0, -1), ...b.shape.slice(1)], data};
  }

  function computed([kind, ...parts], values) {
    if (kind === "number") return one(parts[0]);
    if (kind === "name") return values[parts[0]];
    if (kind === "call") return FUNCTIONS[parts[0]](computed(parts[1], values));
    const [a, b] = parts.map(part => computed(part, values));
    return kind === "minus" ? all(x => -x)(a) : kind === "@" ? matmul(a, b) : each(BINARY[kind] ?? COMPARISONS[kind], a, b);
  }

  // What a formula gives, in the shape of the tensor whose gradient it is: summed over axes that this lacks; null if it does not fit.
  function broadcast(x, shape) {
    const lead = x.shape.length - shape.length, zero = {shape, data: Array(count(shape)).fill(0)};
    try {
      if (lead <= 0 && x.shape.every((n, i) => n === shape[i - lead] || n === 1)) return each((a, b) => a + b, x, zero);
      const out = {shape, data: Array(count(shape)).fill(0)};
      each((a, place) => { out.data[place] += a; return 0; }, x, {shape, data: [...zero.data.keys()]});
      return shape.every((n, i) => n === 1 || lead < 0 || x.shape[i + lead] === n || x.shape[i + lead] === 1) ? out : null;
    } catch { return null; }
  }

  return {parsed, computed, broadcast};
})();
