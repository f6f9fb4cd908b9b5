// What is right, found by differences: no answer is in the page. And what people type as numbers (reading.py reads the same).
const Numbers = program => {
  "use strict";
  const SELF = "~";           // the place of a tensor that is changed by itself
  const step = x => 1e-4 * Math.max(1, Math.abs(x));
  const start = program.start;
  const now = Evaluator(program).run({}, {double: true}).values;

  // The program with one more leaf: what the steps of `numbers` (null: all) take from `place`.
  function cut(numbers, place) {
    const steps = program.steps.map(s => numbers && !numbers.includes(s.number) ? s :
      {...s, inputs: s.inputs.map(([name, ref]) => [name, ref[0] === "place" && ref[1] === place ? ["place", SELF] : ref])});
    return {...program, steps, root: !numbers && program.root === place ? SELF : program.root,
            leaves: [...program.leaves, {name: SELF, place: SELF, value: packed(now[place])}]};
  }

  const packed = x => ({shape: x.shape, kind: "f", data: [...x.data]});
  const weighed = (weights, x) => weights.data.reduce((sum, w, i) => sum + w * x.data[i], 0);

  // d loss(x) / dx at x. Where the slopes on both sides differ, as at a corner of relu, `low` and `high` are these.
  function slope(x, loss) {
    const found = {shape: x.shape, data: [], low: [], high: []}, middle = loss([...x.data]);
    [...x.data].forEach((value, i) => {
      const h = step(value), at = d => { const moved = [...x.data]; moved[i] = value + d; return loss(moved); };
      const up = at(h), down = at(-h), [right, left] = [(up - middle) / h, (middle - down) / h];
      const corner = Math.abs(right - left) > 0.02 * (Math.abs(right) + Math.abs(left)) && Math.abs(right - left) > 1e-6;
      found.data.push((up - down) / (2 * h));
      found.low.push(corner ? Math.min(left, right) : (up - down) / (2 * h));
      found.high.push(corner ? Math.max(left, right) : (up - down) / (2 * h));
    });
    return found;
  }

  // What the steps of `numbers` give to a place; with null, all that reaches it.
  function given(numbers, place) {
    const own = cut(numbers, place), machine = Evaluator(own);
    return slope(now[place], data => weighed(start, machine.run({[SELF]: {shape: now[place].shape, data}}, {double: true}).values[own.root]));
  }

  function sum(parts) {
    const [first, ...rest] = parts, out = {shape: first.shape, data: [...first.data], low: [...first.low], high: [...first.high]};
    for (const part of rest) for (const key of ["data", "low", "high"]) part[key].forEach((x, i) => { out[key][i] += x; });
    return out;
  }

  const total = (place, through) => through.length ? sum(through.map(numbers => given(numbers, place))) : given(null, place);

  // A step by itself, for other numbers: `values` are those of its inputs by name, `g` weighs its result. Gives [the gradient of an input, the result].
  function alone(number, values, place, g) {
    const steps = program.steps.filter(s => s.number === number), places = {}, constants = {...program.constants};
    const own = steps.map(s => ({...s, inputs: s.inputs.map(([name, ref]) => [name, ref])})), [first] = own, root = first.results[0];
    const asked = new Set(first.inputs.filter(([, ref]) => ref[0] === "place" && ref[1] === place).map(([name]) => name));
    const target = [...asked][0];
    first.inputs = first.inputs.map(([name, ref]) => {
      if (!(name in values)) return [name, ref];
      places[name] = {name: `${SELF}${name}`, place: `${SELF}${name}`, value: packed(values[name])};
      return [name, ["place", `${SELF}${name}`]];
    });
    const machine = Evaluator({...program, steps: [first], root, constants, leaves: Object.values(places)});
    const out = data => machine.run(data ? {[`${SELF}${target}`]: {shape: values[target].shape, data}} : {}, {double: true}).values[root];
    return [slope(values[target], data => weighed(g, out(data))), out(null)];
  }

  // What the steps of `numbers` give to `place` when `incoming` arrives at their results.
  function local(numbers, place, incoming) {
    const steps = program.steps.filter(s => numbers.includes(s.number)), made = new Set(steps.flatMap(s => s.results));
    const needed = new Set(steps.flatMap(s => s.inputs.filter(([, ref]) => ref[0] === "place" && !made.has(ref[1])).map(([, ref]) => ref[1])));
    const leaves = [...needed].map(key => ({name: key, place: key, value: packed(now[key])})), [root] = Object.keys(incoming);
    const machine = Evaluator({...program, steps, root, leaves});
    return slope(now[place], data => {
      const values = machine.run({[place]: {shape: now[place].shape, data}}, {double: true}).values;
      return Object.entries(incoming).reduce((sum, [key, g]) => sum + weighed(g, values[key]), 0);
    });
  }

  return {now, given, total, alone, local, sum};
};

// ── what is typed in ────────────────────────────────────────────────────────────────────────────────────────────────────

// What a text may mean as a number: 0.5, 0,5, 1,234.5, −2, 1/3, 2e-3. A comma may be either.
function readings(text) {
  if (text.length > 60) return [];
  text = text.replace(/[\s_']/g, "").replace(/[−–‒﹣-]/g, "-").replace(/^\+/, "").replace(/∞|infinity/gi, "inf");
  const forms = [];
  if (!text.includes(",") || /^-?\d{1,3}(,\d{3})+(\.\d*)?$/.test(text)) forms.push(text.replace(/,/g, ""));
  if (text.split(",").length === 2 && !text.includes(".")) forms.push(text.replace(",", "."));
  return forms.map(form => {
    const fraction = /^(-?\d+\.?\d*|-?\.\d+)\/(-?\d+\.?\d*|-?\.\d+)$/.exec(form);
    if (fraction) return {value: Number(fraction[2]) ? fraction[1] / fraction[2] : NaN, step: 0, fraction: true};
    if (/^-?inf$/i.test(form)) return {value: form.startsWith("-") ? -Infinity : Infinity, step: 0};
    if (/^-?nan$/i.test(form)) return {value: NaN, step: 0};
    const match = /^-?(?:\d+\.?(\d*)|\.(\d+))(?:e([+-]?\d{1,3}))?$/i.exec(form);
    return match && {value: Number(form), step: 10 ** (Number(match[3] || 0) - (match[1] || match[2] || "").length)};
  }).filter(Boolean);
}

// Right to the four digits that are shown; or to fewer, if it is rounded well and not off by more than half a percent. Below a millionth of `scale` numbers are 0.
function right(text, answer, scale = 0, low = answer, high = answer) {
  return readings(text).some(({value, step, fraction}) => {
    if (!Number.isFinite(answer) || !Number.isFinite(value)) return value === answer || Number.isNaN(answer) && Number.isNaN(value) && !fraction;
    const size = Math.abs(answer), digit = size > 1e-9 * scale && size > 0 ? 10 ** (Math.floor(Math.log10(size)) - 3) : 1e-6;
    const room = Math.max(0.51 * digit, Math.min(0.5 * step, 0.005 * size), 1e-6 * scale);
    return value >= Math.min(low, answer) - room && value <= Math.max(high, answer) + room;
  });
}

// A number with four digits; whole numbers with up to six.
function short(x, scale = 0) {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "−inf";
  if (Math.abs(x) < 1e-8 * scale) return "0";
  const near = Math.round(x), text = Math.abs(x - near) < 1e-6 * Math.max(1, Math.abs(x)) && Math.abs(near) < 1e6 ? String(near) : String(Number(x.toPrecision(4)));
  return text.replace(/-/g, "−");
}
