"use strict";
// Draws the groups of a graph, lets them be opened and closed, and tells of each box what is known.
// The ranks and orders, and where things lie while nothing is touched, come from layout.py; here they make room for what is opened.
const {groups, root, flip, border, header, line, pad, margin} = data;
const open = new Set(data.open);
const holder = document.getElementById("graph"), told = document.getElementById("told");
const SVG = "http://www.w3.org/2000/svg";
let scale = 1, chosen = null;
for (const key in groups)
  for (const box of groups[key].boxes) { box.w ??= 1; box.h ??= 0; box.w0 ??= box.w; }

const make = (name, attributes, ...children) => {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  element.append(...children);
  return element;
};
const text = (kind, x, y, words) => { const e = make("text", {class: kind, x, y}); e.textContent = words; return e; };
const isOpen = box => box.group && open.has(box.key);

// ── where things lie ──

function place(key) {
  const group = groups[key], {boxes, order, tall, tops} = group;
  const sizes = boxes.map(box => {
    if (!isOpen(box)) return [box.w, box.h];
    const inner = place(box.key);
    return [Math.max(inner.width + 2 * border, groups[box.key].head), inner.height + header + border];
  });
  const x = group.x.slice(), width = i => i < boxes.length ? sizes[i][0] : 1;
  for (const row of order) {                                  // what grew pushes its neighbours aside
    const grown = row.map(i => i < boxes.length ? sizes[i][0] - boxes[i].w0 : 0);
    const still = grown.reduce((most, n, k) => Math.abs(n) > Math.abs(grown[most]) ? k : most, 0);
    let push = grown[still] / 2;
    for (let k = still + 1; k < row.length; k++) { x[row[k]] += push + grown[k] / 2; push += grown[k]; }
    push = grown[still] / 2;
    for (let k = still - 1; k >= 0; k--) { x[row[k]] -= push + grown[k] / 2; push += grown[k]; }
  }
  const now = order.map((row, r) => Math.max(0, ...row.map(i => i < boxes.length ? sizes[i][1] : 0)));
  const starts = [];
  let top = 0;
  now.forEach((height, r) => { starts.push(top); top += height + (r + 1 < now.length ? tops[r + 1] - tops[r] - tall[r] : 0); });
  const left = x.reduce((least, value, i) => Math.min(least, value - width(i) / 2), Infinity);
  for (let i = 0; i < x.length; i++) x[i] -= left;
  const y = boxes.map((box, i) => { const r = group.rank[i]; return starts[r] + (box.low ? now[r] - sizes[i][1] / 2 : now[r] / 2); });
  group.now = {x, y, sizes, starts, now, width: x.reduce((most, value, i) => Math.max(most, value + width(i) / 2), 0), height: top};
  return group.now;
}

function port(box, key) {                                     // where a tensor passes the border of an open group
  const inner = groups[box.key], i = inner.boxes.findIndex(other => other.key === key);
  return i < 0 ? 0 : inner.now.x[i] - inner.now.width / 2;
}

function way(group, [s, t, source, off, bends]) {
  const {x, y, sizes, starts, now} = group.now, {boxes, rank} = group;
  const begin = x[s] + (isOpen(boxes[s]) ? port(boxes[s], "out:" + source) : 0);
  const end = x[t] + (isOpen(boxes[t]) ? port(boxes[t], "in:" + source) : off);
  const points = [];
  if (isOpen(boxes[s])) points.push([begin, y[s] + sizes[s][1] / 2 - (flip ? header : border)]);
  points.push([begin, y[s] + sizes[s][1] / 2], [begin, starts[rank[s]] + now[rank[s]]]);
  bends.forEach((b, k) => { const r = rank[s] + 1 + k; points.push([x[b], starts[r]], [x[b], starts[r] + now[r]]); });
  points.push([end, starts[rank[t]]], [end, y[t] - sizes[t][1] / 2]);
  if (isOpen(boxes[t])) points.push([end, y[t] - sizes[t][1] / 2 + (flip ? border : header)]);
  return points;
}

function curve(points) {
  let [x, y] = points[0], d = `M${x.toFixed(1)} ${y.toFixed(1)}`;
  for (const [nx, ny] of points.slice(1)) {
    const middle = ((y + ny) / 2).toFixed(1);
    if (Math.abs(nx - x) >= 0.5) d += `C${x.toFixed(1)} ${middle} ${nx.toFixed(1)} ${middle} ${nx.toFixed(1)} ${ny.toFixed(1)}`;
    else if (Math.abs(ny - y) > 0.05) d += `L${nx.toFixed(1)} ${ny.toFixed(1)}`;
    [x, y] = [nx, ny];
  }
  return d;
}

// ── drawing ──

function draw() {
  const whole = place(root), below = make("g", {}), above = make("g", {});
  const todo = [[root, margin, margin]];
  while (todo.length) todo.push(...drawGroup(...todo.pop(), below, above));
  const [w, h] = [whole.width + 2 * margin, whole.height + 2 * margin];
  const svg = make("svg", {class: "tensorgrad-graph", viewBox: `0 0 ${w} ${h}`, width: w * scale, height: h * scale, "aria-label": data.title});
  const marker = make("marker", {id: "tg-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4,
                                 markerUnits: "userSpaceOnUse", markerWidth: 9, markerHeight: 9, orient: "auto-start-reverse"},
                      make("path", {class: "tip", d: "M0 0.5L8 4L0 7.5z"}));
  svg.append(make("defs", {}, marker), below, above);
  holder.replaceChildren(svg);
  light();
}

function drawGroup(key, x0, y0, below, above) {
  const group = groups[key], {x, y, sizes, height} = group.now, opened = [];
  const turned = value => flip ? height - value : value;
  group.boxes.forEach((box, i) => {
    const [w, h] = sizes[i], cx = x0 + x[i], cy = y0 + turned(y[i]);
    if (box.kind === "port") return;
    if (isOpen(box)) {
      opened.push([box.key, cx - groups[box.key].now.width / 2, cy - h / 2 + header]);
      const [frame, head] = drawFrame(box, cx - w / 2, cy - h / 2, w, h);
      below.append(frame);
      above.append(head);
    } else above.append(drawBox(box, cx - w / 2, cy - h / 2, w, h));
  });
  for (const edge of group.edges) {
    let [a, b] = [group.boxes[edge[0]], group.boxes[edge[1]]];
    let points = way(group, edge).map(([px, py]) => [x0 + px, y0 + turned(py)]);
    if (flip) { [a, b] = [b, a]; points.reverse(); }
    const path = make("path", {class: b.kind === "failed" ? "edge broken" : "edge", "data-from": edge[2], "data-to": b.key, "data-at": a.key, d: curve(points)});
    if (b.kind !== "port" && b.kind !== "label" && !isOpen(b)) path.setAttribute("marker-end", "url(#tg-arrow)");
    below.append(path);
  }
  return opened;
}

function lines(box, cx, top) {
  return box.lines.map(([kind, words], k) => text(kind, cx, top + line * (k + 0.75), words));
}

function button(element, box) {
  element.setAttribute("tabindex", 0);
  element.setAttribute("role", "button");
  element.setAttribute("aria-expanded", isOpen(box));
  element.setAttribute("aria-label", `${groups[box.key].title} ${groups[box.key].count}, ${isOpen(box) ? "open" : "closed"} group`);
  element.addEventListener("click", event => { event.stopPropagation(); toggle(box.key); });
}

function drawFrame(box, x, y, w, h) {
  const {title, count} = groups[box.key];
  const head = make("g", {class: "handle", "data-of": box.key}, make("rect", {class: "grip", x, y, width: w, height: header, rx: 9}),
                    text("head", x + 10, y + 17, "▾ " + title), text("head count", x + w - 10, y + 17, count));
  button(head, box);
  return [make("g", {class: "group open", "data-id": box.key}, make("rect", {x, y, width: w, height: h, rx: 9})), head];
}

function drawBox(box, x, y, w, h) {
  const cx = x + w / 2;
  const whole = {x, y, width: w, height: h};
  if (box.kind === "group") {
    const element = make("g", {class: "group closed", "data-id": box.key});
    if (box.stack) element.append(make("rect", {...whole, x: x + 4, y: y + 4, rx: 7}));
    element.append(make("rect", {...whole, rx: 7}), make("rect", {...whole, rx: 7, class: "front"}), ...lines(box, cx, y + pad));
    if (box.group) button(element, box);
    else element.addEventListener("click", () => choose(box));
    return element;
  }
  const kind = {value: "output", label: "note"}[box.kind] || box.kind;
  const element = make("g", {class: "node " + kind, "data-id": box.key},
                       make("rect", {...whole, rx: {step: 9, failed: 9, value: 9}[box.kind] || 2}), ...lines(box, cx, y + (box.kind === "label" ? 0 : pad)));
  if (box.kind !== "label") {
    element.setAttribute("tabindex", 0);
    element.addEventListener("click", event => { event.stopPropagation(); choose(box); });
  }
  return element;
}

// ── what the reader does ──

function choose(box) {
  chosen = box && box.key;
  told.textContent = box ? box.tip : "";
  told.hidden = !box;
  light();
}

function light() {                                            // the box that was chosen, and the ways to it and from it
  for (const element of holder.querySelectorAll("[data-id]")) element.classList.toggle("lit", element.dataset.id === chosen);
  for (const path of holder.querySelectorAll(".edge"))
    path.classList.toggle("lit", chosen !== null && [path.dataset.from, path.dataset.to, path.dataset.at].includes(chosen));
}

function toggle(key) {
  const find = () => holder.querySelector(`[data-id="${key}"]`), before = find().getBoundingClientRect();
  if (open.has(key)) open.delete(key); else open.add(key);
  draw();
  const after = find().getBoundingClientRect();               // what was clicked stays where it is
  holder.scrollBy(after.left + after.width / 2 - before.left - before.width / 2, after.top - before.top);
  (holder.querySelector(`[data-of="${key}"]`) || find()).focus({preventScroll: true});
}

function zoom(next) { scale = Math.min(3, Math.max(0.05, next)); draw(); }
const whole = () => groups[root].now;
const fitted = least => Math.max(least, Math.min(1, (holder.clientWidth - 4) / (whole().width + 2 * margin)));
function begin(keys) {
  open.clear();
  keys.forEach(key => open.add(key));
  place(root);
  zoom(fitted(0.7));
  holder.scrollTo((holder.scrollWidth - holder.clientWidth) / 2, 0);
}

const actions = {
  all() {
    Object.keys(groups).slice(0, 3000).forEach(key => open.add(key));
    draw();
  },
  none() { begin([root]); },
  first() { begin(data.open); },
  in() { zoom(scale * 1.25); },
  out() { zoom(scale / 1.25); },
  fit() { zoom(Math.min(fitted(0), (holder.clientHeight - 4) / (whole().height + 2 * margin))); },
};
for (const element of document.querySelectorAll("button[data-do]")) element.addEventListener("click", () => actions[element.dataset.do]());
document.addEventListener("keydown", event => {
  const box = event.target.closest?.("[data-id], [data-of]");
  if (event.key === "Escape") choose(null);
  else if (box && (event.key === "Enter" || event.key === " ")) {
    event.preventDefault();
    box.dispatchEvent(new MouseEvent("click", {bubbles: true}));
  } else if (!event.ctrlKey && !event.metaKey && !event.altKey) ({"+": actions.in, "-": actions.out, "0": actions.fit}[event.key] || (() => {}))();
});
holder.addEventListener("click", () => choose(null));

begin(data.open);
