// Runs a program of viz/program.py: forward from its leaves, and back by the rules of its steps, in float32 or double precision.
//
//     const machine = Evaluator(program);
//     if (machine.able) machine.run({x: {shape: [2], data: [1, 2]}}, {double: true}).gradients[machine.places.x];
//
// An array is {shape, data, kind}: its elements in row-major order, of the kind "f" (floating point), "i" (whole) or "b" (bool). Numbers are numbers.
const Evaluator = (() => {
  "use strict";
  let Float = Float32Array;

  // ── arrays ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  const count = shape => shape.reduce((a, b) => a * b, 1);
  const isArray = x => x !== null && typeof x === "object" && x.shape !== undefined;
  const array = (shape, data, kind = "f") => ({shape, data: kind === "f" && !(data instanceof Float) ? Float.from(data) : data, kind});
  const made = (shape, kind = "f") => array(shape, kind === "f" ? new Float(count(shape)) : new Float64Array(count(shape)), kind);
  const asArray = x => isArray(x) ? x : array([], [Number(x)], typeof x === "boolean" ? "b" : Number.isInteger(x) ? "i" : "f");
  const kindOf = x => isArray(x) ? x.kind : typeof x === "boolean" ? "b" : Number.isInteger(x) ? "i" : "f";
  const joint = (...parts) => parts.some(x => kindOf(x) === "f") ? "f" : parts.some(x => kindOf(x) === "i") ? "i" : "b";
  const NUMBERS = {inf: Infinity, "-inf": -Infinity, nan: NaN};
  const unpacked = a => array(a.shape, a.kind === "f" ? Float.from(a.data, number) : Float64Array.from(a.data, number), a.kind ?? "f");
  const number = x => typeof x === "string" ? NUMBERS[x] : Number(x);
  const constant = x => Array.isArray(x) ? x.map(constant) : x !== null && typeof x === "object" ? NUMBERS[x.number] : x;

  function joined(shapes) {
    const out = Array(Math.max(...shapes.map(s => s.length))).fill(1);
    for (const shape of shapes) {
      const lead = out.length - shape.length;
      shape.forEach((n, i) => {
        if (n !== 1 && out[i + lead] !== 1 && n !== out[i + lead]) throw new Error(`shapes ${shapes.map(s => `(${s})`).join(" and ")} do not fit`);
        if (n !== 1) out[i + lead] = n;
      });
    }
    return out;
  }

  // For each element of a shape, the place of the element of x that is broadcast to it.
  function spread(x, shape) {
    const total = count(shape), places = new Int32Array(total), lead = shape.length - x.shape.length;
    let step = 1, block = 1;
    for (let d = shape.length - 1; d >= 0; d--) {
      const n = d >= lead ? x.shape[d - lead] : 1, span = block * shape[d];
      if (n > 1) for (let i = 0; i < total; i++) places[i] += Math.floor(i % span / block) * step;
      step *= n;
      block = span;
    }
    return places;
  }

  function each(f, kind, ...parts) {
    if (!parts.some(isArray)) return kind === "b" ? Boolean(f(...parts)) : f(...parts);
    const arrays = parts.map(asArray), shape = joined(arrays.map(a => a.shape)), out = made(shape, kind), n = out.data.length;
    const places = arrays.map(a => a.data.length === n ? null : a.data.length === 1 ? 0 : spread(a, shape)), [a, b, c] = arrays.map(x => x.data);
    const at = (k, i) => places[k] === null ? i : places[k] === 0 ? 0 : places[k][i];
    for (let i = 0; i < n; i++)
      out.data[i] = parts.length === 1 ? f(a[at(0, i)]) : parts.length === 2 ? f(a[at(0, i)], b[at(1, i)]) : f(a[at(0, i)], b[at(1, i)], c[at(2, i)]);
    return out;
  }

  // ── functions of numbers ───────────────────────────────────────────────────────────────────────────────────────────

  function erfc(x) {          // the series near 0, the continued fraction beyond
    if (Number.isNaN(x)) return NaN;
    const z = Math.abs(x);
    if (z < 2) return 1 - erf(x);
    let f = 0;
    for (let k = 60; k > 0; k--) f = k / 2 / (z + f);
    const tail = Math.exp(-z * z) / Math.sqrt(Math.PI) / (z + f);
    return x > 0 ? tail : 2 - tail;
  }

  function erf(x) {
    if (Math.abs(x) >= 2) return 1 - erfc(x);
    let term = x, sum = x;
    for (let n = 1; n < 60; n++) sum += term *= 2 * x * x / (2 * n + 1);
    return 2 / Math.sqrt(Math.PI) * Math.exp(-x * x) * sum;
  }

  const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
                   -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  function lgamma(x) {
    if (x < 0.5) return Math.log(Math.PI / Math.abs(Math.sin(Math.PI * x))) - lgamma(1 - x);
    const t = x + 6.5, sum = LANCZOS.reduce((s, c, i) => s + (i ? c / (x - 1 + i) : c), 0);
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  }

  function digamma(x) {
    if (x <= 0 && Number.isInteger(x)) return NaN;
    if (x < 0) return digamma(1 - x) - Math.PI / Math.tan(Math.PI * x);
    let below = 0;
    for (; x < 10; x++) below -= 1 / x;
    const y = 1 / (x * x);
    return below + Math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * 691 / 32760)))));
  }

  const power = (a, b) => a === 1 || b === 0 ? 1 : a ** b;
  const modulo = (a, b) => { const r = a % b; return r !== 0 && (r < 0) !== (b < 0) ? r + b : r; };
  const round = x => { const r = Math.round(x); return Math.abs(x % 1) === 0.5 && r % 2 ? r - 1 : r; };
  const logaddexp = (a, b) => a === b ? a + Math.LN2 : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));
  const xlogy = (a, b) => Number.isNaN(b) ? NaN : a === 0 ? 0 : a * Math.log(b);
  const sigmoid = x => x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));

  const REAL = {       // functions whose results are floating point numbers
    arccos: Math.acos, arccosh: Math.acosh, arcsin: Math.asin, arcsinh: Math.asinh, arctan: Math.atan, arctan2: Math.atan2, arctanh: Math.atanh,
    copysign: (a, b) => (b < 0 || Object.is(b, -0) ? -1 : 1) * Math.abs(a), cos: Math.cos, cosh: Math.cosh, divide: (a, b) => a / b, erf, erfc,
    exp: Math.exp, exp2: x => 2 ** x, expm1: Math.expm1, hypot: Math.hypot, log: Math.log, log10: Math.log10, log1p: Math.log1p, log2: Math.log2,
    logaddexp, rsqrt: x => 1 / Math.sqrt(x), reciprocal: x => 1 / x, sigmoid, sin: Math.sin, sinh: Math.sinh, sqrt: Math.sqrt, tan: Math.tan,
    tanh: Math.tanh, xlogy, xlog1py: (a, b) => Number.isNaN(b) ? NaN : a === 0 ? 0 : a * Math.log1p(b), lgamma, digamma,
    sinc: x => x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x), entr: x => x > 0 ? -x * Math.log(x) : x === 0 ? 0 : x < 0 ? -Infinity : NaN,
    deg2rad: x => x * Math.PI / 180, rad2deg: x => x * 180 / Math.PI, ndtr: x => erfc(-x / Math.SQRT2) / 2,
    logit: x => Math.log(x / (1 - x)), logaddexp2: (a, b) => logaddexp(a * Math.LN2, b * Math.LN2) / Math.LN2,
  };
  const SAME = {       // functions whose results are of their arguments' kind
    absolute: Math.abs, add: (a, b) => a + b, ceil: Math.ceil, floor: Math.floor, floor_divide: (a, b) => Math.floor(a / b), fmod: (a, b) => a % b,
    fmax: (a, b) => Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.max(a, b), fmin: (a, b) => Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.min(a, b),
    maximum: Math.max, minimum: Math.min, multiply: (a, b) => a * b, negative: x => -x, power, remainder: modulo, sgn: Math.sign, sign: Math.sign,
    square: x => x * x, subtract: (a, b) => a - b, trunc: Math.trunc,
  };
  const TESTS = {
    equal: (a, b) => a === b, not_equal: (a, b) => a !== b, less: (a, b) => a < b, less_equal: (a, b) => a <= b, greater: (a, b) => a > b,
    greater_equal: (a, b) => a >= b, isfinite: Number.isFinite, isnan: Number.isNaN, isinf: x => Math.abs(x) === Infinity,
    logical_and: (a, b) => a && b ? 1 : 0, logical_or: (a, b) => a || b ? 1 : 0, logical_xor: (a, b) => !a !== !b, logical_not: x => !x,
  };
  const SIGNS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "remainder", "**": "power", "@": "matmul",
                 "==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"};
  const BITS = {"&": (a, b) => a & b, "|": (a, b) => a | b, "^": (a, b) => a ^ b};

  // ── functions of arrays ────────────────────────────────────────────────────────────────────────────────────────────

  const axesOf = (axis, ndim) => (axis === null || axis === undefined ? [...Array(ndim).keys()] : [axis].flat().map(a => a < 0 ? a + ndim : a));

  // f(out, at, value) for each element, where `at` is the place of what it is reduced to.
  function reduced(x, {axis = null, keepdims = false}, kind, first, f) {
    const axes = axesOf(axis, x.shape.length), kept = x.shape.map((n, d) => axes.includes(d) ? 1 : n), sums = new Float64Array(count(kept)).fill(first);
    const places = spread({shape: kept}, x.shape);
    x.data.forEach((value, i) => { sums[places[i]] = f(sums[places[i]], value); });
    const shape = keepdims ? kept : kept.filter((_, d) => !axes.includes(d));
    return array(shape, kind === "f" ? Float.from(sums) : sums, kind);
  }

  // An array as (outer, n, inner) around an axis.
  function around(shape, axis) {
    const d = axis < 0 ? axis + shape.length : axis;
    return {d, n: shape[d], outer: count(shape.slice(0, d)), inner: count(shape.slice(d + 1))};
  }

  function lines(x, axis, f) {
    const {n, outer, inner} = around(x.shape, axis);
    for (let o = 0; o < outer; o++) for (let i = 0; i < inner; i++) f(k => (o * n + k) * inner + i, n, o * inner + i);
  }

  function running(x, axis, kind, first, f) {
    const out = made(x.shape, kind);
    lines(x, axis, (at, n) => { for (let k = 0, sum = first; k < n; k++) out.data[at(k)] = sum = f(sum, x.data[at(k)]); });
    return out;
  }

  function runningExtreme(x, axis, better) {
    const values = made(x.shape, x.kind), places = made(x.shape, "i");
    lines(x, axis, (at, n) => {
      for (let k = 0, best = 0; k < n; k++) {
        const old = x.data[at(best)], value = x.data[at(k)];
        if (Number.isNaN(value) || better(value, old)) best = k;
        values.data[at(k)] = x.data[at(best)];
        places.data[at(k)] = best;
      }
    });
    return [values, places];
  }

  function recurrence(x, a, {axis, reverse = false}) {
    const out = made(x.shape, "f");
    lines(x, axis, (at, n) => {
      for (let k = 0, before = 0; k < n; k++) {
        const place = at(reverse ? n - 1 - k : k);
        out.data[place] = before = x.data[place] + a.data[place] * before;
      }
    });
    return out;
  }

  function argExtreme(x, {axis = null, keepdims = false}, better) {
    const flat = axis === null ? reshaped(x, [x.data.length]) : x, {d} = around(flat.shape, axis ?? 0);
    const out = made(flat.shape.filter((_, i) => i !== d), "i");
    lines(flat, d, (at, n, line) => {
      let best = 0;
      for (let k = 1; k < n; k++) {
        const old = flat.data[at(best)], value = flat.data[at(k)];
        if (!Number.isNaN(old) && (Number.isNaN(value) || better(value, old))) best = k;
      }
      out.data[line] = best;
    });
    return keepdims ? reshaped(out, axis === null ? x.shape.map(() => 1) : x.shape.map((n, i) => i === d ? 1 : n)) : out;
  }

  function reshaped(x, shape) {
    const known = count(shape.filter(n => n !== -1));
    return array(shape.map(n => n === -1 ? x.data.length / known : n), x.data, x.kind);
  }

  function matmul(a, b) {
    const left = a.shape.length === 1 ? [1, ...a.shape] : a.shape, right = b.shape.length === 1 ? [...b.shape, 1] : b.shape;
    const [rows, inner] = left.slice(-2), columns = right.at(-1), batch = joined([left.slice(0, -2), right.slice(0, -2)]);
    if (inner !== right.at(-2)) throw new Error(`matrices (${left}) and (${right}) do not fit`);
    const ofA = spread({shape: left.slice(0, -2)}, batch), ofB = spread({shape: right.slice(0, -2)}, batch);
    const out = made([...batch, rows, columns], joint(a, b));
    for (let m = 0, at = 0; m < count(batch); m++)
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) {
          let sum = 0;
          for (let k = 0; k < inner; k++) sum += a.data[(ofA[m] * rows + i) * inner + k] * b.data[(ofB[m] * inner + k) * columns + j];
          out.data[at++] = sum;
        }
    return reshaped(out, [...batch, ...(a.shape.length > 1 ? [rows] : []), ...(b.shape.length > 1 ? [columns] : [])]);
  }

  // ── matrices: each function takes one after the other out of stacks, and computes in double precision ──────────────

  // f(one matrix of each stack, its rows, its columns) for stacks that broadcast; returns results [[shape, kind, data], …] as stacks.
  function stacked(stacks, f) {
    const batch = joined(stacks.map(x => x.shape.slice(0, -2))), places = stacks.map(x => spread({shape: x.shape.slice(0, -2)}, batch));
    const sizes = stacks.map(x => x.shape.slice(-2)), whole = [];
    for (let m = 0; m < count(batch); m++)
      f(...stacks.map((x, k) => Float64Array.from(x.data.slice(places[k][m] * count(sizes[k]), (places[k][m] + 1) * count(sizes[k])))), ...sizes.flat())
        .forEach(([shape, kind, data], k) => (whole[k] ??= {shape, kind, data: []}).data.push(...data));
    return whole.map(({shape, kind, data}) => array([...batch, ...shape], kind === "f" ? data : Float64Array.from(data), kind));
  }

  const eye = n => Float64Array.from({length: n * n}, (_, i) => i % (n + 1) ? 0 : 1);
  const flipped = (a, m, n) => Float64Array.from({length: m * n}, (_, i) => a[i % m * n + Math.floor(i / m)]);
  const product = (a, b, m, k, n) => Float64Array.from({length: m * n}, (_, i) => {
    let sum = 0;
    for (let j = 0; j < k; j++) sum += a[Math.floor(i / n) * k + j] * b[j * n + i % n];
    return sum;
  });

  // P·L·U = a, with rows exchanged for the largest pivots: L below the diagonal, the order of rows, the sign of the exchanges.
  function lu(a, n) {
    const rows = [...Array(n).keys()];
    let sign = 1;
    a = a.slice();
    for (let k = 0; k < n; k++) {
      let best = k;
      for (let i = k + 1; i < n; i++) if (Math.abs(a[i * n + k]) > Math.abs(a[best * n + k])) best = i;
      if (best !== k) {
        for (let j = 0; j < n; j++) [a[k * n + j], a[best * n + j]] = [a[best * n + j], a[k * n + j]];
        [rows[k], rows[best], sign] = [rows[best], rows[k], -sign];
      }
      for (let i = k + 1; i < n && a[k * n + k] !== 0; i++) {
        a[i * n + k] /= a[k * n + k];
        for (let j = k + 1; j < n; j++) a[i * n + j] -= a[i * n + k] * a[k * n + j];
      }
    }
    return {a, rows, sign, pivots: rows.map((_, i) => a[i * n + i])};
  }

  function triangular(a, b, n, p, upper, unit) {
    const x = b.slice();
    for (let k = 0; k < n; k++) {
      const i = upper ? n - 1 - k : k;
      for (let j = upper ? i + 1 : 0; j < (upper ? n : i); j++) for (let c = 0; c < p; c++) x[i * p + c] -= a[i * n + j] * x[j * p + c];
      if (!unit) for (let c = 0; c < p; c++) x[i * p + c] /= a[i * n + i];
    }
    return x;
  }

  function solved(a, b, n, p) {
    const {a: factors, rows, pivots} = lu(a, n), turned = Float64Array.from({length: n * p}, (_, i) => b[rows[Math.floor(i / p)] * p + i % p]);
    return [triangular(factors, triangular(factors, turned, n, p, false, true), n, p, true, false), pivots.indexOf(0) + 1];
  }

  const determinant = (a, n) => { const {sign, pivots} = lu(a, n); return pivots.reduce((x, y) => x * y, sign); };
  const cofactors = (a, n) => Float64Array.from(a, (_, at) => {
    const [row, column] = [Math.floor(at / n), at % n], minor = a.filter((_, i) => Math.floor(i / n) !== row && i % n !== column);
    return ((row + column) % 2 ? -1 : 1) * determinant(minor, n - 1);
  });

  function cholesky(a, n) {
    const l = new Float64Array(n * n);
    for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) {
      let rest = a[i * n + j];
      for (let k = 0; k < j; k++) rest -= l[i * n + k] * l[j * n + k];
      if (i === j && !(rest > 0)) return [l, i + 1];
      l[i * n + j] = i === j ? Math.sqrt(rest) : rest / l[j * n + j];
    }
    return [l, 0];
  }

  // Reflections, whose signs are LAPACK's: Q of `width` columns, and R.
  function qr(a, m, n, width) {
    const r = a.slice(), vectors = [];
    const reflect = (x, columns, v, k) => {
      const length = v.reduce((s, y) => s + y * y, 0);
      for (let j = 0; j < columns && length; j++) {
        let dot = 0;
        for (let i = k; i < m; i++) dot += v[i - k] * x[i * columns + j];
        for (let i = k; i < m; i++) x[i * columns + j] -= 2 * dot / length * v[i - k];
      }
    };
    for (let k = 0; k < Math.min(m, n); k++) {
      const v = Array.from({length: m - k}, (_, i) => r[(i + k) * n + k]), below = Math.hypot(...v.slice(1));
      v[0] = below ? v[0] + (v[0] < 0 ? -1 : 1) * Math.hypot(v[0], below) : 0;
      vectors.push(v);
      reflect(r, n, v, k);
    }
    const q = Float64Array.from({length: m * width}, (_, i) => Math.floor(i / width) === i % width ? 1 : 0);
    for (let k = vectors.length - 1; k >= 0; k--) reflect(q, width, vectors[k], k);
    return [q, r.slice(0, width * n).map((x, i) => Math.floor(i / n) > i % n ? 0 : x)];
  }

  // Jacobi's rotations of columns, until all are at right angles: a·v, and v.
  function orthogonal(a, m, n) {
    const v = eye(n);
    a = a.slice();
    for (let sweep = 0, turned = true; turned && sweep < 60; sweep++) {
      turned = false;
      for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) {
        let [pp, qq, pq] = [0, 0, 0];
        for (let i = 0; i < m; i++) { pp += a[i * n + p] ** 2; qq += a[i * n + q] ** 2; pq += a[i * n + p] * a[i * n + q]; }
        if (Math.abs(pq) <= 1e-16 * Math.sqrt(pp * qq)) continue;
        turned = true;
        const tau = (qq - pp) / (2 * pq), t = (tau < 0 ? -1 : 1) / (Math.abs(tau) + Math.hypot(1, tau)), c = 1 / Math.hypot(1, t);
        for (const [x, rows] of [[a, m], [v, n]]) for (let i = 0; i < rows; i++)
          [x[i * n + p], x[i * n + q]] = [c * (x[i * n + p] - t * x[i * n + q]), c * (t * x[i * n + p] + x[i * n + q])];
      }
    }
    return [a, v];
  }

  // U, S, Vᴴ, from the greatest to the least; signs as those of the columns of `like`.
  function svd(a, m, n, like) {
    if (m < n) { const [u, s, vh] = svd(flipped(a, m, n), n, m, null), k = s.length; return signed(flipped(vh, k, m), s, flipped(u, n, k), m, n, like); }
    const [turned, v] = orthogonal(a, m, n), size = Array.from({length: n}, (_, j) => Math.hypot(...Array.from({length: m}, (_, i) => turned[i * n + j])));
    const order = [...size.keys()].sort((i, j) => size[j] - size[i]);
    const u = Float64Array.from({length: m * n}, (_, i) => turned[Math.floor(i / n) * n + order[i % n]] / size[order[i % n]]);
    return signed(u, order.map(j => size[j]), Float64Array.from({length: n * n}, (_, i) => v[i % n * n + order[Math.floor(i / n)]]), m, n, like);
  }

  function signed(u, s, vh, m, n, like) {
    const k = s.length;
    for (let j = 0; like && j < k; j++) {
      let dot = 0;
      for (let i = 0; i < m; i++) dot += u[i * k + j] * like[i * k + j];
      for (let i = 0; dot < 0 && i < m; i++) u[i * k + j] *= -1;
      for (let i = 0; dot < 0 && i < n; i++) vh[j * n + i] *= -1;
    }
    return [u, s, vh];
  }

  // λ, from the least to the greatest, and V of the symmetric matrix that has this triangle: the singular vectors of one moved to be positive.
  function eigh(a, n, uplo, like) {
    const whole = a.map((_, at) => { const [i, j] = [Math.floor(at / n), at % n]; return (uplo === "L") === i >= j ? a[i * n + j] : a[j * n + i]; });
    const shift = Math.max(0, ...Array.from({length: n}, (_, i) => whole.slice(i * n, i * n + n).reduce((x, y) => x + Math.abs(y), 0)));
    const [, v] = orthogonal(whole.map((x, i) => i % (n + 1) ? x : x + shift), n, n), av = product(whole, v, n, n, n);
    const values = Array.from({length: n}, (_, j) => { let sum = 0; for (let i = 0; i < n; i++) sum += v[i * n + j] * av[i * n + j]; return sum; });
    const order = [...values.keys()].sort((i, j) => values[i] - values[j]), vectors = v.map((_, i) => v[Math.floor(i / n) * n + order[i % n]]);
    return [order.map(j => values[j]), signed(vectors, values, eye(n), n, n, like)[0]];
  }

  function exponential(a, n) {
    const norm = Math.max(0, ...Array.from({length: n}, (_, i) => a.slice(i * n, i * n + n).reduce((x, y) => x + Math.abs(y), 0)));
    const squarings = norm > 0.5 ? Math.ceil(Math.log2(norm)) + 1 : 0, small = a.map(x => x / 2 ** squarings);
    let term = eye(n), out = eye(n);
    for (let k = 1; k < 20; k++) { term = product(term, small, n, n, n).map(x => x / k); out = out.map((x, i) => x + term[i]); }
    for (let k = 0; k < squarings; k++) out = product(out, out, n, n, n);
    return out;
  }

  const MATRICES = {
    solve_linear: ([a, b]) => stacked([a, b], (a, b, n, _, __, p) => { const [x, info] = solved(a, b, n, p); return [[[n, p], "f", x], [[], "i", [info]]]; }),
    inverse_matrix: ([a]) => stacked([a], (a, n) => { const [x, info] = solved(a, eye(n), n, n); return [[[n, n], "f", x], [[], "i", [info]]]; }),
    solve_triangular: ([a, b], {upper, unit = false}) => stacked([a, b], (a, b, n, _, __, p) => [[[n, p], "f", triangular(a, b, n, p, upper, unit)]])[0],
    determinant: ([a]) => stacked([a], (a, n) => [[[], "f", [determinant(a, n)]]])[0],
    cofactors: ([a]) => stacked([a], (a, n) => [[[n, n], "f", cofactors(a, n)]])[0],
    log_determinant: ([a]) => stacked([a], (a, n) => {
      const {sign, pivots} = lu(a, n);
      return [[[], "f", [pivots.reduce((x, y) => x * Math.sign(y), sign)]], [[], "f", [pivots.reduce((x, y) => x + Math.log(Math.abs(y)), 0)]]];
    }),
    cholesky_factor: ([a]) => stacked([a], (a, n) => { const [l, info] = cholesky(a, n); return [[[n, n], "f", l], [[], "i", [info]]]; }),
    qr_factor: ([a], {mode = "reduced"}) => stacked([a], (a, m, n) => {
      const width = mode === "complete" ? m : Math.min(m, n), [q, r] = qr(a, m, n, width);
      return [[[m, width], "f", q], [[width, n], "f", r]];
    }),
    eigh_values: ([a], {uplo = "L"}) => stacked([a], (a, n) => [[[n], "f", eigh(a, n, uplo)[0]]])[0],
    eigh_pairs: ([a, like], {uplo = "L"}) => stacked([a, like], (a, like, n) => {
      const [values, vectors] = eigh(a, n, uplo, like);
      return [[[n], "f", values], [[n, n], "f", vectors]];
    }),
    singular_values: ([a]) => stacked([a], (a, m, n) => [[[Math.min(m, n)], "f", svd(a, m, n, null)[1]]])[0],
    svd_factor: ([a, like]) => stacked([a, like], (a, like, m, n) => {
      const [u, s, vh] = svd(a, m, n, like), k = s.length;
      return [[[m, k], "f", u], [[k], "f", s], [[k, n], "f", vh]];
    }),
    matrix_exponential: ([a]) => stacked([a], (a, n) => [[[n, n], "f", exponential(a, n)]])[0],
  };

  function concat(parts, axis) {
    const {d} = around(parts[0].shape, axis), shape = parts[0].shape.map((n, i) => i === d ? parts.reduce((s, p) => s + p.shape[d], 0) : n);
    const out = made(shape, joint(...parts)), whole = around(shape, d);
    let before = 0;
    for (const part of parts) {
      const {n, outer, inner} = around(part.shape, d);
      for (let o = 0; o < outer; o++) for (let k = 0; k < n * inner; k++) out.data[(o * whole.n + before) * inner + k] = part.data[o * n * inner + k];
      before += n;
    }
    return out;
  }

  function inserted(x, axis) {
    const axes = axesOf(axis, x.shape.length + [axis].flat().length), rest = [...x.shape];
    return reshaped(x, Array.from({length: x.shape.length + axes.length}, (_, d) => axes.includes(d) ? 1 : rest.shift()));
  }

  // f(place in the index, place in an array of `shape`), where the index says where along an axis.
  function along(index, shape, axis, f) {
    const d = axis < 0 ? axis + shape.length : axis, steps = shape.map((_, k) => count(shape.slice(k + 1)));
    index.data.forEach((chosen, i) => {
      let rest = i, place = 0;
      for (let k = shape.length - 1; k >= 0; k--) {
        place += (k === d ? (chosen < 0 ? chosen + shape[d] : chosen) : rest % index.shape[k]) * steps[k];
        rest = Math.floor(rest / index.shape[k]);
      }
      f(i, place);
    });
  }

  function gather(x, index, axis) {
    const out = made(index.shape, x.kind);
    along(index, x.shape, axis, (i, place) => { out.data[i] = x.data[place]; });
    return out;
  }

  function scatter(x, value, index, axis, add) {
    const out = array(x.shape, x.data.slice(), x.kind), from = isArray(value) ? value : null;
    const steps = from && from.shape.map((_, k) => count(from.shape.slice(k + 1)));
    along(index, x.shape, axis, (i, place) => {
      let rest = i, at = 0;
      if (from && from.shape.length) for (let k = index.shape.length - 1; k >= 0; k--) {
        at += rest % index.shape[k] * steps[k];
        rest = Math.floor(rest / index.shape[k]);
      }
      out.data[place] = (add ? out.data[place] : 0) + (from ? from.data[at] : value);
    });
    return out;
  }

  function takeAlong(x, index, axis) {
    const d = axis < 0 ? axis + x.shape.length : axis, rest = joined([x.shape, index.shape].map(s => s.map((n, k) => k === d ? 1 : n)));
    const whole = (a, n) => FUNCTIONS.broadcast_to([a], {shape: rest.map((m, k) => k === d ? n : m)});
    return gather(whole(x, x.shape[d]), whole(index, index.shape[d]), d);
  }

  function order(x, {axis, descending = false}) {
    const out = made(x.shape, "i");
    lines(x, axis, (at, n) => {
      const compare = (a, b) => Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : a - b || 0;
      const sorted = [...Array(n).keys()].sort((i, j) => (descending ? -1 : 1) * compare(x.data[at(i)], x.data[at(j)]) || i - j);
      sorted.forEach((from, k) => { out.data[at(k)] = from; });
    });
    return out;
  }

  function windowMax(x, {kernel, stride, widths, dilation}) {
    const ndim = kernel.length, lead = x.shape.slice(0, -ndim), size = x.shape.slice(-ndim), plane = count(size);
    const length = size.map((n, d) => Math.floor((n + widths[d][0] + widths[d][1] - dilation[d] * (kernel[d] - 1) - 1) / stride[d]) + 1);
    const values = made([...lead, ...length], x.kind), places = made([...lead, ...length], "i"), windows = count(length), cells = count(kernel);
    for (let p = 0; p < count(lead); p++) for (let w = 0; w < windows; w++) {
      let best = -1;
      for (let c = 0; c < cells; c++) {
        let place = 0, step = 1, window = w, cell = c;
        for (let d = ndim - 1; d >= 0; d--) {
          const at = window % length[d] * stride[d] + cell % kernel[d] * dilation[d] - widths[d][0];
          place = at < 0 || at >= size[d] ? NaN : place + at * step;
          [window, cell, step] = [Math.floor(window / length[d]), Math.floor(cell / kernel[d]), step * size[d]];
        }
        const value = x.data[p * plane + place], old = best < 0 ? -Infinity : x.data[p * plane + best];
        if (!Number.isNaN(place) && (best < 0 || !Number.isNaN(old) && (value > old || Number.isNaN(value)))) best = place;
      }
      values.data[p * windows + w] = x.data[p * plane + best];
      places.data[p * windows + w] = best;
    }
    return [values, places];
  }

  const greatest = (a, b) => Number.isNaN(a) || Number.isNaN(b) ? NaN : Math.max(a, b);
  const least = (a, b) => Number.isNaN(a) || Number.isNaN(b) ? NaN : Math.min(a, b);
  const summed = x => x.kind === "f" ? "f" : "i";
  const full = (shape, value, kind) => { const out = made([shape].flat(), kind); out.data.fill(value); return out; };
  const like = (x, value) => isArray(x) ? full(x.shape, value, x.kind) : value;

  const FUNCTIONS = {
    ...MATRICES,
    sum: ([x], o) => reduced(asArray(x), o, summed(asArray(x)), 0, (a, b) => a + b), prod: ([x], o) => reduced(x, o, summed(x), 1, (a, b) => a * b),
    amax: ([x], o) => reduced(x, o, x.kind, -Infinity, greatest), amin: ([x], o) => reduced(x, o, x.kind, Infinity, least),
    any: ([x], o) => reduced(asArray(x), o, "b", 0, (a, b) => a || b ? 1 : 0), all: ([x], o) => reduced(asArray(x), o, "b", 1, (a, b) => a && b ? 1 : 0),
    argmax: ([x], o) => argExtreme(x, o, (a, b) => a > b), argmin: ([x], o) => argExtreme(x, o, (a, b) => a < b),
    matmul: ([a, b]) => matmul(a, b), reshape: ([x], {shape}) => reshaped(asArray(x), [shape].flat()),
    broadcast_to: ([x], {shape}) => { const from = asArray(x), places = spread(from, shape); return array(shape, from.data.constructor.from(places, p => from.data[p]), from.kind); },
    squeeze: ([x], {axis}) => { const axes = axesOf(axis, x.shape.length); return reshaped(x, x.shape.filter((n, d) => n !== 1 || !axes.includes(d))); },
    expand_dims: ([x], {axis}) => inserted(asArray(x), axis), concat: (parts, {axis = 0}) => concat(parts, axis),
    stack: (parts, {axis = 0}) => concat(parts.map(x => inserted(asArray(x), axis < 0 ? axis + parts[0].shape.length + 1 : axis)), axis),
    cumsum: ([x], {axis}) => running(x, axis, summed(x), 0, (a, b) => a + b), cumprod: ([x], {axis}) => running(x, axis, summed(x), 1, (a, b) => a * b),
    gather: ([x, index], {axis}) => gather(x, index, axis), scatter: ([x, value, index], {axis}) => scatter(x, value, index, axis, false),
    scatter_add: ([x, value, index], {axis}) => scatter(x, value, index, axis, true), take_along_axis: ([x, index], {axis}) => takeAlong(x, index, axis),
    place_along_axis: ([x, index], {shape, axis}) => scatter(full(shape, 0, x.kind), x, index, axis, false), order: ([x], o) => order(x, o),
    embedding: ([w, index]) => {
      const at = asArray(index), width = count(w.shape.slice(1)), out = made([...at.shape, ...w.shape.slice(1)], w.kind);
      at.data.forEach((row, i) => { for (let k = 0; k < width; k++) out.data[i * width + k] = w.data[row * width + k]; });
      return out;
    },
    recurrence: ([x, a], o) => recurrence(x, a, o), cummax: ([x], {axis}) => runningExtreme(x, axis, (a, b) => a >= b),
    cummin: ([x], {axis}) => runningExtreme(x, axis, (a, b) => a <= b),
    window_max: ([x], o) => windowMax(x, o), where: ([test, a, b]) => each((t, x, y) => t ? x : y, joint(a, b), asArray(test), a, b),
    round: ([x], {decimals = 0}) => each(v => decimals ? round(v * 10 ** decimals) / 10 ** decimals : round(v), kindOf(x), x),
    zeros: (_, {shape}) => full(shape, 0), ones: (_, {shape}) => full(shape, 1), full: (_, {shape, value}) => full(shape, value),
    zeros_like: ([x]) => like(x, 0), ones_like: ([x]) => like(x, 1), full_like: ([x], {value}) => like(x, value),
    cast: ([x], {kind}) => kindOf(x) === kind ? x : each(kind === "b" ? v => v !== 0 : kind === "i" ? Math.trunc : v => Number(v), kind, asArray(x)),
  };
  FUNCTIONS.max = FUNCTIONS.amax;
  FUNCTIONS.min = FUNCTIONS.amin;
  for (const [name, f] of Object.entries(REAL)) FUNCTIONS[name] = parts => each(f, "f", ...parts);
  for (const [name, f] of Object.entries(SAME)) FUNCTIONS[name] = parts => each(f, joint(...parts), ...parts);
  for (const [name, f] of Object.entries(TESTS)) FUNCTIONS[name] = parts => each(f, "b", ...parts);

  // ── trees ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  const truth = x => isArray(x) ? x.data[0] !== 0 : Boolean(x);

  function bits(sign, a, b) {
    return each(BITS[sign], joint(a, b), a, b);
  }

  function put(x, part, places, add) {
    const out = array(x.shape, x.data.slice(), x.kind);
    places.forEach((place, i) => { out.data[place] = (add ? out.data[place] : 0) + part.data[i]; });
    return out;
  }

  const TREES = {
    is: ([value]) => constant(value), name: ([name], names) => names[name], array: ([value]) => unpacked(value),
    op: ([sign, a, b], names) => { const parts = [value(a, names), value(b, names)]; return BITS[sign] ? bits(sign, ...parts) : FUNCTIONS[SIGNS[sign]](parts, {}); },
    negative: ([x], names) => FUNCTIONS.negative([value(x, names)]),
    not: ([x], names) => !truth(value(x, names)),
    invert: ([x], names) => { const found = value(x, names); return kindOf(found) === "b" ? FUNCTIONS.logical_not([found]) : each(v => ~v, "i", found); },
    and: (parts, names) => parts.reduce((found, part) => truth(found) ? value(part, names) : found, true),
    or: (parts, names) => parts.reduce((found, part) => truth(found) ? found : value(part, names), false),
    if: ([test, a, b], names) => value(truth(value(test, names)) ? a : b, names),
    call: ([name, parts, options], names) => FUNCTIONS[name](parts.map(part => value(part, names)), constants(options)),
    list: (parts, names) => parts.map(part => value(part, names)),
    item: ([x, position], names) => value(x, names).at(position),
    take: ([x, places, shape, border = 0], names) => {
      const from = asArray(value(x, names)), out = made(shape, from.kind);
      places.forEach((place, i) => { out.data[i] = place < 0 ? constant(border) : from.data[place]; });
      return out;
    },
    add: ([x, places, shape], names) => put(made(shape, "f"), asArray(value(x, names)), places, true),
    put: ([x, part, places, add], names) => put(asArray(value(x, names)), value(part, names), places, add),
    mix: ([x, rows, columns, weights, shape], names) => {
      const from = asArray(value(x, names)), sums = new Float64Array(count(shape));
      rows.forEach((row, i) => { sums[row] += weights[i] * from.data[columns[i]]; });
      return array(shape, sums);
    },
  };
  const value = ([what, ...parts], names) => TREES[what](parts, names);
  const constants = options => Object.fromEntries(Object.entries(options).map(([name, x]) => [name, constant(x)]));

  function formula({value: tree, locals}, names) {
    for (const [own, part] of locals) {
      const found = value(part, names);
      own.forEach((name, i) => { names[name] = own.length === 1 ? found : found[i]; });
    }
    return value(tree, names);
  }

  // ── programs ───────────────────────────────────────────────────────────────────────────────────────────────────────

  // A gradient in the shape of what it is the gradient of: summed over the axes that were broadcast.
  function fitted(g, shape) {
    const lead = g.shape.length - shape.length;
    if (lead < 0) return FUNCTIONS.broadcast_to([g], {shape});
    const axis = g.shape.map((_, d) => d).filter(d => d < lead || shape[d - lead] === 1 && g.shape[d] !== 1);
    const found = reshaped(axis.length ? reduced(g, {axis, keepdims: true}, "f", 0, (a, b) => a + b) : g, shape);
    return found.kind === "f" ? found : FUNCTIONS.cast([found], {kind: "f"});
  }

  function arguments_(step, values, constants) {
    const names = {};
    for (const [name, [what, x]] of step.inputs) names[name] = what === "place" ? values[x] : what === "constant" ? constants[x] : constant(x);
    return names;
  }

  function forward(program, values, constants) {
    for (const step of program.steps) {
      const found = formula(step, arguments_(step, values, constants)), results = step.several ? found : [found];
      step.results.forEach((place, i) => { values[place] = asArray(results[i]); });
    }
  }

  function back(program, values, constants, start) {
    const gradients = {[program.root]: start ? array(start.shape, Float.from(start.data)) : unpacked(program.start)}, given = [];
    for (const step of [...program.steps].reverse()) {
      if (!step.results.some(place => place in gradients)) continue;
      const incoming = step.results.map(place => gradients[place] ?? full(values[place].shape, 0));
      const shares = step.rules.map(rule => {
        const names = arguments_(step, values, constants);
        step.outputs.forEach((name, i) => { names[name] = values[step.results[i]]; });
        names.g = incoming[0];
        if (step.several) incoming.forEach((g, i) => { names[`g[${i}]`] = g; });
        return [rule.target, fitted(asArray(formula(rule, names)), rule.shape)];
      });
      for (const [place, g] of shares) {
        gradients[place] = place in gradients ? FUNCTIONS.add([gradients[place], g]) : g;
        given.push({number: step.number, target: place, gradient: g});
      }
    }
    return {gradients, shares: given};
  }

  // Values and gradients by places, and the shares in the gradients that each step gives, in the order of the way back.
  // `leaves` are arrays {shape, data} by the names or the places of leaves; those that are not named stay as they were.
  // The way back begins with the gradient `start`, or with that of the program.
  function run(program, leaves, {double = false, start = null} = {}) {
    const before = Float;
    Float = double ? Float64Array : Float32Array;
    try {
      const values = {}, constants = Object.fromEntries(Object.entries(program.constants).map(([key, x]) => [key, unpacked(x)]));
      for (const leaf of program.leaves) {
        const own = unpacked(leaf.value), given = leaves[leaf.place] ?? leaves[leaf.name];
        if (given !== undefined && given.data.length !== own.data.length) throw new Error(`${leaf.name} has ${own.data.length} elements, not ${given.data.length}`);
        values[leaf.place] = given === undefined ? own : array(own.shape, Float.from(given.data));
      }
      forward(program, values, constants);
      return {values, ...back(program, values, constants, start)};
    } finally {
      Float = before;
    }
  }

  return program => ({
    able: program.able, why: program.why ?? "", places: Object.fromEntries((program.leaves ?? []).map(leaf => [leaf.name, leaf.place])),
    run(leaves = {}, options = {}) {
      if (!program.able) throw new Error(`the program cannot be run: ${program.why}`);
      return run(program, leaves, options);
    },
    functions: Object.keys(FUNCTIONS),
  });
})();
