"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const SIDE = 1000, MOST = 12;               // of a drawing; values that a tip shows
const state = {x: "step", log: false, smooth: 0, shown: data.runs.map(() => true)};
const PLACE = {step: 1, epoch: 2, time: 3};  // of an axis in a curve: [run, steps, epochs, times, values]
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

function make(tag, classes, text) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text !== undefined) element.textContent = text;
  return element;
}

function drawn(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== "") element.setAttribute(name, value);
  return element;
}

const dash = run => data.dashes[Math.floor(run / data.colours) % data.dashes.length];
const colour = run => `c${run % data.colours}`;
const stroke = (run, path, extra = "") => drawn("path", {class: colour(run) + extra, d: path, "stroke-dasharray": extra ? "" : dash(run)});

// ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const minus = text => text.replace(/-/g, "−");
const figure = value => value === null ? "not finite" : minus(String(Number(value.toPrecision(4))));

function tick(value) {
  const size = Math.abs(value);
  if (size > 0 && size < 1e-3) return minus(String(Number(value.toPrecision(6)).toExponential()));
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= unit && size < 1e12 && (size >= 1e4 || unit > 1e3)) return minus(Number((value / unit).toPrecision(6)) + letter);
  return minus(String(Number(value.toPrecision(6))));
}

function ticks(low, high, most) {
  const rough = high / most - low / most;
  if (!(rough > 1e-300 && rough < Infinity)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => s >= rough * 0.999999) || 10 * power;
  const found = [];
  for (let k = Math.ceil(low / size - 1e-9); k <= Math.floor(high / size + 1e-9); k++) found.push(k * size);
  return found;
}

function powers(low, high) {                  // ticks of a logarithmic scale, from and to exponents
  const steps = high - low > 6 ? Math.ceil((high - low) / 6) : 1, found = [];
  for (let k = Math.ceil(low - 1e-9); k <= high + 1e-9; k += steps) found.push(k);
  if (found.length > 2) return found;
  const more = [];
  for (let k = Math.floor(low); k <= high; k++) for (const m of [1, 2, 5]) {
    const at = k + Math.log10(m);
    if (at >= low && at <= high) more.push(at);
  }
  return more.length > 1 ? more : ticks(10 ** low, 10 ** high, 5).filter(v => v > 0).map(Math.log10);
}

function units(seconds) {
  return seconds > 3 * 86400 ? [86400, "days"] : seconds > 7200 ? [3600, "hours"] : seconds > 120 ? [60, "minutes"] : [1, "seconds"];
}

// A running mean of which each value keeps a part; weights make up for its beginning at zero.
function smoothed(values, keep) {
  let mean = 0, weight = 0;
  return values.map(value => {
    if (value === null) return null;
    mean = keep * mean + (1 - keep) * value;
    weight = keep * weight + (1 - keep);
    return mean / weight;
  });
}

function reach(lists) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (const v of list) if (v !== null) { low = Math.min(low, v); high = Math.max(high, v); }
  return [low, high];
}

function widened([low, high]) {               // a scale needs two different ends
  if (high / 2 - low / 2 > 1e-300) return [low, high];
  if (low > high) return [0, 1];
  const half = Math.abs(low) / 2 || 0.5;
  return [low - half, high + half];
}

const part = (value, [low, high]) => (value / 2 - low / 2) / (high / 2 - low / 2);      // halves, whose difference is finite

// ── charts ───────────────────────────────────────────────────────────────────────────────────────────────────────────

class Chart {
  constructor(element) {
    this.element = element;
    this.index = Number(element.dataset.metric);
    this.curves = data.charts[this.index];
    this.plot = element.querySelector(".plot");
    this.lines = element.querySelector(".lines");
    this.cross = make("div", "cross");
    this.tip = make("div", "tip");
    this.marks = make("div", "marks");
    this.heard = make("div", "heard");
    this.heard.setAttribute("aria-live", "polite");
    this.cross.hidden = this.tip.hidden = true;
    this.plot.append(this.cross, this.marks, this.tip, this.heard);
    this.plot.tabIndex = 0;
    this.plot.addEventListener("pointermove", event => this.point(event));
    this.plot.addEventListener("pointerdown", event => this.point(event));
    this.plot.addEventListener("pointerleave", () => this.leave());
    this.plot.addEventListener("focus", () => {
      if (this.at === undefined && this.plot.matches(":focus-visible")) this.show(this.xs.length - 1, true);
    });
    this.plot.addEventListener("blur", () => this.leave());
    this.plot.addEventListener("keydown", event => this.key(event));
  }

  prepare() {                                 // the visible curves as the scales have them
    const place = PLACE[state.x];
    const visible = this.curves.filter(curve => state.shown[curve[0]] && curve[place]);
    this.unit = [1, state.x];
    if (state.x === "time") {
      const [size, name] = units(visible.reduce((most, curve) => curve[3].reduce((m, t) => Math.max(m, t), most), 0));
      this.unit = [size, `time in ${name}`];
    }
    this.shown = visible.map(curve => {
      const values = state.smooth ? smoothed(curve[4], state.smooth) : curve[4];
      const scale = value => value === null || (state.log && value <= 0) ? null : state.log ? Math.log10(value) : value;
      const xs = curve[place].map(x => x === null ? null : x / this.unit[0]);
      return {run: curve[0], xs, reach: reach([xs]), values, raw: curve[4], ys: values.map(scale),
        faint: state.smooth ? curve[4].map(scale) : null};
    });
  }

  draw() {
    this.prepare();
    this.x = widened(reach(this.shown.map(c => c.xs)));
    const [low, high] = widened(reach(this.shown.flatMap(c => c.faint ? [c.ys, c.faint] : [c.ys]))), room = (high / 2 - low / 2) * 0.08;
    this.y = [Math.max(low - room, -1e308), Math.min(high + room, 1e308)];
    this.lines.replaceChildren();
    for (const c of this.shown) if (c.faint) this.lines.append(stroke(c.run, this.path(c.xs, c.faint), " raw"));
    for (const c of this.shown) this.lines.append(stroke(c.run, this.path(c.xs, c.ys)));
    this.label();
    this.xs = [...new Set(this.shown.flatMap(c => c.xs.filter((x, i) => x !== null && c.values[i] !== null)))].sort((a, b) => a - b);
    this.leave();
  }

  across(x) { return part(x, this.x); }
  down(y) { return 1 - part(y, this.y); }

  path(xs, ys) {
    let text = "", before = false;
    for (let i = 0; i < xs.length; i++) {
      const here = xs[i] !== null && ys[i] !== null;
      if (here) {
        const next = i + 1 < xs.length && xs[i + 1] !== null && ys[i + 1] !== null;
        text += `${before ? "L" : "M"}${(this.across(xs[i]) * SIDE).toFixed(1)} ${(this.down(ys[i]) * SIDE).toFixed(1)}`;
        if (!before && !next) text += "h.01";
      }
      before = here;
    }
    return text;
  }

  label() {
    const labels = this.element.querySelector(".labels");
    labels.replaceChildren();
    const put = (kind, at, text) => {
      const span = make("span", kind, text);
      span.style[kind === "x" ? "left" : "top"] = `${at * 100}%`;
      labels.append(span);
    };
    const ys = state.log ? powers(...this.y) : ticks(...this.y, 5);
    let grid = "";
    for (const y of ys) {
      put("y", this.down(y), tick(state.log ? 10 ** y : y));
      grid += `M0 ${(this.down(y) * SIDE).toFixed(1)}H${SIDE}`;
    }
    this.element.querySelector(".grid").setAttribute("d", grid);
    for (const x of ticks(...this.x, 5)) put("x", this.across(x), tick(x));
    this.element.querySelector(".axis").textContent = this.unit[1];
    this.plot.setAttribute("aria-label", `${data.metrics[this.index]} over ${this.unit[1]}. The left and right arrow keys read values.`);
    if (this.shown.some(c => c.ys.some(y => y !== null))) return;
    const hidden = !this.curves.some(c => state.shown[c[0]]);
    const why = hidden ? "All runs are hidden" : state.log && this.shown.length ? "No values above 0" : "No values";
    labels.append(make("div", "empty", why));
  }

  point(event) {
    if (!this.xs.length) return;
    const box = this.plot.getBoundingClientRect();
    this.show(this.nearest(this.xs, this.x[0] + (event.clientX - box.left) / box.width * (this.x[1] - this.x[0])), false);
  }

  nearest(xs, x) {                            // in order: the place of the nearest
    let low = 0, high = xs.length - 1;
    while (low < high) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle + 1; else high = middle; }
    return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
  }

  key(event) {
    const last = this.xs.length - 1, at = this.at ?? last, far = Math.max(1, Math.round(last / 10));
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, PageUp: at - far, PageDown: at + far, Home: 0, End: last}[event.key];
    if (event.key === "Escape") this.leave();
    if (to === undefined || last < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.show(Math.min(last, Math.max(0, to)), true);
  }

  show(at, aloud) {
    if (!(at >= 0)) return;
    this.at = at;
    const x = this.xs[at], near = (this.x[1] - this.x[0]) / 50, found = [];
    for (const c of this.shown) {
      let best = -1;
      for (let i = 0; i < c.xs.length; i++)
        if (c.xs[i] !== null && c.values[i] !== null && (best < 0 || Math.abs(c.xs[i] - x) < Math.abs(c.xs[best] - x))) best = i;
      // nothing where the run was not yet, or no more
      if (best >= 0 && x >= c.reach[0] - near && x <= c.reach[1] + near) found.push({c, i: best});
    }
    found.sort((a, b) => b.c.values[b.i] - a.c.values[a.i]);
    const where = state.x === "time" ? `${figure4(x)} ${this.unit[1].slice(8)}` : `${state.x} ${figure4(x)}`;
    this.tip.style.left = "0";                // where it is as wide as it wants to be
    this.tip.replaceChildren(make("b", "", where));
    this.marks.replaceChildren();
    for (const {c, i} of found.slice(0, MOST)) {
      const row = make("div"), value = make("span", "figure", figure(c.values[i]));
      const swatch = drawn("svg", {class: "swatch", viewBox: "0 0 26 10"});
      swatch.append(stroke(c.run, "M1 5H25"));
      if (state.smooth) value.append(make("small", "", ` (${figure(c.raw[i])})`));
      row.append(swatch, make("span", "name", data.runs[c.run]), value);
      this.tip.append(row);
    }
    if (found.length > MOST) this.tip.append(make("div", "muted", `and ${found.length - MOST} more`));
    for (const {c, i} of found) {
      if (c.ys[i] === null) continue;
      const dot = make("span", "dot");
      dot.style.left = `${this.across(c.xs[i]) * 100}%`;
      dot.style.top = `${this.down(c.ys[i]) * 100}%`;
      dot.style.background = `var(--${colour(c.run)})`;
      this.marks.append(dot);
    }
    const part = this.across(x);
    this.cross.style.left = `${part * 100}%`;
    this.cross.hidden = this.tip.hidden = false;
    this.place(part);
    const told = found.slice(0, MOST).map(({c, i}) => `${data.runs[c.run]} ${figure(c.values[i])}`);
    if (aloud) this.heard.textContent = `${where}: ${told.join(", ")}`;
  }

  place(part) {                               // the tip beside the line, and inside of the window
    const box = this.plot.getBoundingClientRect(), wide = this.tip.offsetWidth, at = box.left + part * box.width;
    this.tip.style.top = box.width < 420 ? "calc(100% + 6px)" : "";         // on a phone below the curves
    const left = at + 12 + wide < innerWidth - 8 && part < 0.6 ? at + 12 : at - 12 - wide;
    this.tip.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - wide - 8)) - box.left}px`;
  }

  leave() {
    this.cross.hidden = this.tip.hidden = true;
    this.marks.replaceChildren();
    this.heard.textContent = "";
    this.at = undefined;
  }
}

const figure4 = x => minus(Number.isInteger(x) ? x.toLocaleString("en") : String(Number(x.toPrecision(4))));
const charts = all("figure[data-metric]").map(element => new Chart(element));
let waiting = false;

function redraw() {                           // once a frame, however fast the slider moves
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; for (const chart of charts) chart.draw(); });
}

// ── controls ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const keys = all(".key");

function reveal(run, shown) {
  state.shown[run] = shown;
  keys[run].setAttribute("aria-pressed", shown);
}

for (const controls of all(".controls")) {
  controls.hidden = false;
  const smooth = controls.querySelector("#smooth");
  smooth.addEventListener("input", () => {
    state.smooth = Number(smooth.value);
    controls.querySelector("output").textContent = smooth.value;
    redraw();
  });
  controls.querySelector("#log").addEventListener("change", event => { state.log = event.target.checked; redraw(); });
  for (const radio of all("[name=x]", controls)) radio.addEventListener("change", () => { state.x = radio.value; redraw(); });
  for (const button of all("[data-all]", controls)) button.addEventListener("click", () => {
    keys.forEach((_, run) => reveal(run, button.dataset.all === "true"));
    redraw();
  });
}
for (const key of keys) {
  key.disabled = false;
  key.addEventListener("click", () => { const run = Number(key.dataset.run); reveal(run, !state.shown[run]); redraw(); });
}

// ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function sort(head) {
  const table = head.closest("table"), at = head.cellIndex, body = table.tBodies[0];
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const value = ({cells: {[at]: cell}}) => cell.classList.contains("none") ? null : cell.dataset.v ?? cell.textContent;
  const order = (a, b) => a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b, "en", {numeric: true});
  const rows = [...body.rows].map(row => [value(row), row]);
  rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : down ? order(b, a) : order(a, b));
  body.append(...rows.map(([, row]) => row));
}
for (const button of all(".sort")) {
  button.disabled = false;
  button.addEventListener("click", () => sort(button.closest("th")));
}
for (const chart of charts) chart.draw();
