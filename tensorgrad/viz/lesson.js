"use strict";
(() => {
  const lesson = document.querySelector(".lesson"), graph = lesson.querySelector(".graph");
  const frames = JSON.parse(document.getElementById("frames").textContent);
  const sections = [...lesson.querySelectorAll(".frame")];
  const [slider, play, back, next, where] = ["step", "play", "back", "next", "where"].map(id => document.getElementById(id));
  const nodes = new Map([...graph.querySelectorAll(".node")].map(node => [node.dataset.id, node]));
  const edges = [...graph.querySelectorAll(".edge")];
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const found = new Set();          // blanks that are filled in
  let at = 0, timer = null;

  // ── the slider ──────────────────────────────────────────────────────────────────────────────────────────────────────

  function show(to) {
    sections[at].hidden = true;
    at = Math.max(0, Math.min(frames.length - 1, to));
    sections[at].hidden = false;
    const frame = frames[at];
    lesson.dataset.phase = frame.phase;
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${at + 1} of ${frames.length}: ${frame.label}`);
    where.textContent = `${at + 1} / ${frames.length}  ${frame.label}`;
    back.disabled = at === 0;
    next.disabled = at === frames.length - 1;
    if (next.disabled) pause();
    light(frame);
  }

  function light(frame) {
    for (const node of nodes.values()) node.classList.remove("lit", "reached", "done", "has-value", "has-gradient");
    for (const past of frames.slice(0, at + 1)) {
      if (past.phase !== "back") for (const id of past.nodes) nodes.get(id)?.classList.add("done");
      for (const [id] of past.values) nodes.get(id)?.classList.add("has-value");
      for (const [id, text, blank] of past.gradients) {
        const node = nodes.get(id), line = node?.querySelector(".gradient");
        if (line) line.textContent = blank && !found.has(blank) ? "grad ?" : `grad ${text}`;
        node?.classList.add("has-gradient");
      }
    }
    for (const [id] of frame.gradients) nodes.get(id)?.classList.add("reached");
    for (const id of frame.nodes) nodes.get(id)?.classList.add("lit");
    const ways = new Set(frame.ways.map(way => way.join(" ")));
    for (const edge of edges) edge.classList.toggle("lit", ways.has(`${edge.dataset.from} ${edge.dataset.to}`));
    follow(frame.nodes.map(id => nodes.get(id)).filter(Boolean));
  }

  function follow(lit) {
    if (lit.length !== 1) return;
    const box = lit[0].getBoundingClientRect(), view = graph.getBoundingClientRect();
    const left = box.left + box.width / 2 - view.left - view.width / 2, top = box.top + box.height / 2 - view.top - view.height / 2;
    graph.scrollBy({left, top, behavior: still.matches || Math.abs(top) > 2 * view.height ? "instant" : "smooth"});
  }

  function fit() {
    const svg = graph.querySelector("svg"), {width, height} = svg.viewBox.baseVal;
    const scale = Math.max(0.75, Math.min(1.6, (graph.clientWidth - 4) / width, (graph.clientHeight - 4) / height));
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play");
  }

  function toggle() {
    if (timer !== null) return pause();
    if (at === frames.length - 1) show(0);
    timer = setInterval(() => show(at + 1), 1600);
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Pause");
  }

  const go = to => { pause(); show(to); };
  const keys = {ArrowRight: () => go(at + 1), ArrowUp: () => go(at + 1), ArrowLeft: () => go(at - 1), ArrowDown: () => go(at - 1),
                PageDown: () => go(at + 10), PageUp: () => go(at - 10), Home: () => go(0), End: () => go(frames.length - 1), " ": toggle};
  document.addEventListener("keydown", event => {
    const act = keys[event.key], on = event.target;
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    if (on.matches("input[type=text], textarea, select") || event.key === " " && on.matches("button, summary")) return;
    if (graph.contains(on) && graph.scrollHeight > graph.clientHeight && event.key.startsWith("Page")) return;
    event.preventDefault();
    act();
  });
  slider.addEventListener("input", () => go(Number(slider.value)));
  back.addEventListener("click", () => go(at - 1));
  next.addEventListener("click", () => go(at + 1));
  play.addEventListener("click", toggle);
  new ResizeObserver(() => { fit(); light(frames[at]); }).observe(graph);

  // ── the exercise ────────────────────────────────────────────────────────────────────────────────────────────────────

  const blanks = [...lesson.querySelectorAll(".blank")], inputs = blanks.flatMap(blank => [...blank.querySelectorAll("input")]);

  // What a text may mean as a number: 0.5, 0,5, 1,234.5, −2, 1/3, 2e-3. A comma may be either.
  function readings(text) {
    text = text.replace(/[\s_']/g, "").replace(/[−–‒﹣-]/g, "-").replace(/^\+/, "").replace(/∞|infinity/i, "inf");
    const forms = [];
    if (!text.includes(",") || /^-?\d{1,3}(,\d{3})+(\.\d*)?$/.test(text)) forms.push(text.replace(/,/g, ""));
    if (text.split(",").length === 2 && !text.includes(".")) forms.push(text.replace(",", "."));
    return forms.map(form => {
      const parts = form.split("/");
      if (parts.length === 2 && parts.every(part => /^-?[\d.]+$/.test(part))) return {value: parts[0] / parts[1], step: 0};
      if (/^-?inf$/i.test(form)) return {value: form.startsWith("-") ? -Infinity : Infinity, step: 0};
      if (/^nan$/i.test(form)) return {value: NaN, step: 0};
      const match = /^-?(?:\d+\.?(\d*)|\.(\d+))(?:e([+-]?\d+))?$/i.exec(form);
      if (!match) return null;
      return {value: Number(form), step: 10 ** (Number(match[3] || 0) - (match[1] || match[2] || "").length)};
    }).filter(Boolean);
  }

  // Right to the four digits that are shown; or to fewer, if it is rounded well and not off by more than half a percent.
  function right(text, answer) {
    const target = readings(answer)[0];
    if (!target) return text.replace(/\s/g, "").toLowerCase() === answer.replace(/\s/g, "").toLowerCase();
    return readings(text).some(({value, step}) => {
      if (!Number.isFinite(target.value)) return Object.is(value, target.value);
      const size = Math.abs(target.value), digit = size > 0 ? 10 ** (Math.floor(Math.log10(size)) - 3) : 1e-6;
      return Math.abs(value - target.value) <= Math.max(0.51 * digit, Math.min(0.5 * step, 0.005 * size));
    });
  }

  function mark(input, state) {
    input.classList.remove("right", "wrong");
    input.classList.add(state);
    input.setAttribute("aria-invalid", state === "wrong");
    input.readOnly = state === "right";
  }

  function check(section) {
    const asked = [...section.querySelectorAll(".blank input")];
    for (const input of asked)
      if (!input.classList.contains("right") && input.value.trim()) mark(input, right(input.value, input.dataset.answer) ? "right" : "wrong");
    const wrong = asked.filter(input => input.classList.contains("wrong")).length, open = asked.filter(input => !input.value.trim()).length;
    verdict(section, wrong ? `✗ not right${asked.length > 1 ? `: ${wrong} of ${asked.length}` : ""}` : open ? "go on …" : "✓ right");
    tell();
  }

  function reveal(section) {
    for (const input of section.querySelectorAll(".blank input"))
      if (!input.classList.contains("right")) {
        input.value = input.dataset.shown;
        input.classList.add("revealed");
        mark(input, "right");
      }
    verdict(section, "revealed");
    tell();
  }

  function verdict(section, text) { section.querySelector(".verdict").textContent = text; }

  function tell() {
    for (const blank of blanks)
      if ([...blank.querySelectorAll("input")].every(input => input.classList.contains("right"))) found.add(blank.dataset.blank);
    for (const span of lesson.querySelectorAll(".hidden")) span.classList.toggle("found", found.has(span.dataset.needs));
    const revealed = inputs.filter(input => input.classList.contains("revealed")).length;
    const done = inputs.filter(input => input.classList.contains("right")).length - revealed;
    lesson.querySelector(".score").textContent = `${done} of ${inputs.length} right` + (revealed ? `, ${revealed} revealed` : "");
    light(frames[at]);
  }

  for (const section of sections.filter(section => section.querySelector(".check"))) {
    section.querySelector(".check").addEventListener("click", () => check(section));
    section.querySelector(".reveal").addEventListener("click", () => reveal(section));
    section.addEventListener("keydown", event => event.key === "Enter" && event.target.matches("input") && check(section));
    section.addEventListener("input", event => {
      event.target.classList.remove("wrong");
      event.target.removeAttribute("aria-invalid");
      verdict(section, "");
    });
  }

  pause();
  show(0);
  if (lesson.classList.contains("exercise")) tell();
  fit();
})();
