// Steps: the slider, the keys, the list, the boxes of the graph. One frame is shown at a time, and its step lights up.
const Stepping = (() => {
  const page = document.querySelector(".explorer"), graph = page.querySelector(".graph"), list = page.querySelector(".steps");
  const {frames, keys} = JSON.parse(document.getElementById("data").textContent);
  const sections = [...page.querySelectorAll(".frame")], items = [...list.querySelectorAll("[data-frame]")];
  const [slider, play, back, next, where] = ["step", "play", "back", "next", "where"].map(id => document.getElementById(id));
  const nodes = new Map([...graph.querySelectorAll(".node")].map(node => [node.dataset.id, node]));
  const edges = [...graph.querySelectorAll(".edge")];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const stale = new Set(sections.filter(section => section.querySelector("[data-heat]")));       // sections to be written anew when they are shown
  const opened = new Set();                   // folds of the list that were opened for a step, and close after it
  const onBox = [];                           // called with the id of a box that is clicked
  let at = 0, live = false;

  function write(section, mark = false) {
    const fresh = Arrays.refresh(section);
    stale.delete(section);
    if (!mark) return;
    for (const shown of fresh) shown.classList.add("fresh");
    setTimeout(() => { for (const shown of fresh) shown.classList.remove("fresh"); }, 900);
  }

  function show(to) {
    sections[at].hidden = true;
    items[at].removeAttribute("aria-current");
    items[at].tabIndex = -1;
    at = Math.max(0, Math.min(frames.length - 1, to));
    sections[at].hidden = false;
    if (stale.has(sections[at])) write(sections[at]);
    const frame = frames[at];
    page.dataset.phase = frame.phase;
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${at + 1} of ${frames.length}: ${frame.label}`);
    where.textContent = `${at + 1} / ${frames.length}  ${frame.label}`;
    back.disabled = at === 0;
    next.disabled = at === frames.length - 1;
    if (next.disabled) pause();
    point();
    light(at);
    follow(frame.nodes.map(id => nodes.get(id)).filter(Boolean));
  }

  // The list: the step is marked, and the folds around it are open.
  function point() {
    const item = items[at], around = new Set();
    item.setAttribute("aria-current", "step");
    item.tabIndex = 0;
    for (let fold = item.closest("details"); fold && fold !== list; fold = fold.parentElement.closest("details")) around.add(fold);
    for (const fold of opened) if (!around.has(fold)) { fold.open = false; opened.delete(fold); }
    for (const fold of around) if (!fold.open) { fold.open = true; opened.add(fold); }
    if (!list.open) return;
    const box = item.getBoundingClientRect(), view = list.getBoundingClientRect();
    if (box.top < view.top + 40 || box.bottom > view.bottom) list.scrollBy({top: box.top - view.top - view.height / 2, behavior: "instant"});
  }

  // The graph as it is after so many frames.
  function light(count) {
    const lines = new Map();
    for (const node of nodes.values()) {
      node.classList.remove("lit", "reached", "done", "has-value", "has-gradient");
      if (node.hasAttribute("tabindex")) node.setAttribute("tabindex", -1);
    }
    for (const past of frames.slice(0, count + 1)) {
      if (past.phase !== "back") for (const id of past.nodes) nodes.get(id)?.classList.add("done");
      for (const id of past.values) nodes.get(id)?.classList.add("has-value");
      for (const [id, result, text, key] of past.gradients) {
        if (!lines.has(id)) lines.set(id, []);
        lines.get(id)[result] = live && key && Arrays.now(key) ? Arrays.text(Arrays.now(key), 18) : text;
      }
    }
    for (const [id, texts] of lines) {
      const node = nodes.get(id), line = node?.querySelector(".gradient");
      if (line) written(line, `grad ${together(texts, keys[id]?.length ?? 1)}`);
      node?.classList.add("has-gradient");
    }
    const frame = frames[count];
    for (const [id] of frame.gradients) nodes.get(id)?.classList.add("reached");
    for (const id of frame.nodes) {
      nodes.get(id)?.classList.add("lit");
      if (count === at) nodes.get(id)?.setAttribute("tabindex", 0);             // the tab key goes to what is shown; the arrow keys show others
    }
    const ways = new Set(frame.ways.map(way => way.join(" ")));
    for (const edge of edges) edge.classList.toggle("lit", ways.has(`${edge.dataset.from} ${edge.dataset.to}`));
  }

  // The texts of a step's results in one line: of the first two.
  function together(texts, count) {
    const first = Array.from({length: Math.min(count, 2)}, (_, i) => texts[i] ?? "?");
    return first.join(", ") + (count > 2 ? ", …" : "");
  }

  // Other arrays are shown now: in the graph, in this frame, and later in the others.
  function changed() {
    live = true;
    for (const [id, places] of Object.entries(keys)) {
      const line = nodes.get(id)?.querySelector(".value"), arrays = places.map(place => Arrays.now(`v:${place}`));
      if (line && arrays.every(Boolean)) written(line, `= ${together(arrays.map(array => Arrays.text(array, 18)), places.length)}`);
    }
    for (const section of sections) stale.add(section);
    write(sections[at], true);
    light(at);
  }

  function all() { for (const section of [...stale]) write(section); }

  function follow(lit) {
    if (lit.length !== 1) return;
    const box = lit[0].getBoundingClientRect(), view = graph.getBoundingClientRect();
    const left = box.left + box.width / 2 - view.left - view.width / 2, top = box.top + box.height / 2 - view.top - view.height / 2;
    graph.scrollBy({left, top, behavior: still.matches || Math.abs(top) > 2 * view.height ? "instant" : "smooth"});
  }

  // A line of a box, narrower where it would not fit into the box.
  function written(line, text) {
    line.textContent = text;
    line.removeAttribute("textLength");
    const room = line.closest(".node").querySelector("rect").width.baseVal.value - 8;
    if (line.getComputedTextLength() <= room) return;
    line.setAttribute("textLength", room);
    line.setAttribute("lengthAdjust", "spacingAndGlyphs");
  }

  function fit() {
    const svg = graph.querySelector("svg"), {width, height} = svg.viewBox.baseVal;
    const scale = Math.max(0.75, Math.min(1.6, (graph.clientWidth - 4) / width, (graph.clientHeight - 4) / height));
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
  }

  const {pause, toggle} = Player(play, () => { if (at === frames.length - 1) show(0); }, () => show(at + 1), 1600);

  // A box: its step forward, or, if that is shown or the way back is, its step back.
  function box(id) {
    const own = frames.map((frame, i) => i).filter(i => frames[i].nodes.length === 1 && frames[i].nodes[0] === id);
    for (const f of onBox) f(id);
    if (own.length) go(frames[at].phase === "back" || own.includes(at) ? own.find(i => i > at && frames[i].phase === "back") ?? own.find(i => i !== at) ?? own[0] : own[0]);
    else go(0);
  }

  // A step of the list: where the list is above the step, it makes room for it.
  function chosen(to) {
    go(to);
    if (!narrow.matches) return;
    list.open = false;
    sections[at].scrollIntoView({block: "start", behavior: still.matches ? "instant" : "smooth"});
  }

  const narrow = matchMedia("(max-width: 760px)");
  const go = to => { pause(); show(to); };
  const keysOf = {ArrowRight: () => go(at + 1), ArrowUp: () => go(at + 1), ArrowLeft: () => go(at - 1), ArrowDown: () => go(at - 1),
                  PageDown: () => go(at + 10), PageUp: () => go(at - 10), Home: () => go(0), End: () => go(frames.length - 1), " ": toggle};
  document.addEventListener("keydown", event => {
    const act = keysOf[event.key], on = event.target;
    if (!act || event.ctrlKey || event.metaKey || event.altKey || on.closest(".leaves")) return;
    if (on.matches("input[type=text], textarea, select") || event.key === " " && on.matches("button, summary, [role=button]")) return;
    if (graph.contains(on) && graph.scrollHeight > graph.clientHeight && event.key.startsWith("Page")) return;
    event.preventDefault();
    act();
  });
  slider.addEventListener("input", () => go(Number(slider.value)));
  back.addEventListener("click", () => go(at - 1));
  next.addEventListener("click", () => go(at + 1));
  list.addEventListener("click", event => { const item = event.target.closest("[data-frame]"); if (item) chosen(Number(item.dataset.frame)); });
  for (const [id, node] of nodes) if (frames.some(frame => frame.nodes.includes(id))) {
    node.setAttribute("role", "button");
    node.setAttribute("tabindex", -1);
    node.setAttribute("aria-label", [...node.querySelectorAll(".title, .name")].map(line => line.textContent).join(", "));
    node.addEventListener("click", () => box(id));
    node.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); box(id); } });
  }
  new ResizeObserver(() => { fit(); follow(frames[at].nodes.map(id => nodes.get(id)).filter(Boolean)); }).observe(graph);
  Heat.dark.addEventListener("change", () => { for (const section of sections) if (section.querySelector("canvas")) write(section); });
  if (narrow.matches) list.open = false;
  for (const item of items) item.tabIndex = -1;
  show(0);
  fit();
  return {page, graph, frames, sections, onBox, show, light, changed, all, at: () => at};
})();
