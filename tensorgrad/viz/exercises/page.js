(() => {
  "use strict";
  const numbers = Numbers(exercise.program), main = document.querySelector(".exercise"), byKey = key => document.getElementById(key);
  const store = `tensorgrad exercise ${exercise.fingerprint}`;
  let state = {answers: {}, done: {}, wrong: {}, hints: {}, revealed: [], name: ""};
  const fields = card => [...card.querySelectorAll(".blanks input")];
  const texts = card => [...(card.querySelector("[type=radio]") ? [card.querySelector("[type=radio]:checked")?.value ?? ""] : []), ...fields(card).map(f => f.value)];
  const array = x => ({shape: x.shape, data: [...x.data]});
  const largest = data => data.reduce((most, x) => Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most, 0);
  const told = new Map();

  // ── what is right ──────────────────────────────────────────────────────────────────────────────────────────────────

  // The numbers that are right, computed when they are needed and not kept in the document.
  function truth(question) {
    if (!told.has(question.key))
      told.set(question.key, question.kind === "share" ? numbers.given(question.numbers, question.place)
        : question.kind === "total" ? numbers.total(question.place, question.through) : question.kind === "wrong" ? mistake(question) : null);
    return told.get(question.key);
  }

  // The line that does not follow from those above it, and what should be there.
  function mistake(question) {
    const start = varied(unpacked(exercise.program.start), x => x * question.times);
    const arrived = {[exercise.program.root]: array(start)}, found = {line: 0, sum: 0, scale: 0};
    question.lines.forEach((line, i) => {
      const incoming = {};
      for (const step of exercise.program.steps.filter(s => line.numbers.includes(s.number)))
        for (const key of step.results) if (arrived[key]) incoming[key] = arrived[key];
      const share = numbers.local(line.numbers, line.place, incoming), before = arrived[line.place], shown = unpacked(line.shown);
      const right = share.data.map((x, k) => x + (before ? before.data[k] : 0)), scale = Math.max(largest(right), largest(shown.data));
      if (!found.line && right.some((x, k) => Math.abs(x - shown.data[k]) > 0.01 * scale))
        Object.assign(found, {line: i + 1, sum: right.reduce((a, b) => a + b, 0), scale: right.reduce((a, b) => a + Math.abs(b), 0)});
      arrived[line.place] = shown;
    });
    return found;
  }

  const unpacked = x => ({shape: x.shape, data: x.data.map(Number)});
  const drawn = (low, high) => low + (high - low) * Math.random();
  const varied = (x, f) => ({shape: x.shape, data: Array.from(x.data, f)});

  // Other numbers for a step: its letters, and what its rule should give. Some signs are turned, unless it has no value there.
  function place(question, turned) {
    const own = {}, inputs = question.inputs.filter(([name]) => name in question.letters);
    for (const [name, ref] of inputs) {
      const x = ref[0] === "place" ? numbers.now[ref[1]] : unpacked(exercise.program.constants[ref[1]]);
      own[question.letters[name]] = varied(x, v => v * drawn(0.8, 1.2));
    }
    const g = varied(numbers.now[question.result], () => drawn(0.5, 1.5));
    for (const signs of turned ? [true, false] : [false]) {
      const letters = Object.fromEntries(Object.entries(own).map(([letter, x]) => [letter, varied(x, v => signs && Math.random() < 0.5 ? -v : v)]));
      const values = Object.fromEntries(inputs.map(([name]) => [name, letters[question.letters[name]]]));
      const [slope, out] = numbers.alone(question.number, values, question.place, g);
      if (slope.data.every(Number.isFinite) || !signs) return {letters: {...letters, [question.out]: array(out), ...letters, g}, slope};
    }
  }

  function follows(question, text) {
    const tree = Grammar.parsed(text, question.names);
    return [true, true, false].every(turned => {
      const {letters, slope} = place(question, turned), got = Grammar.broadcast(Grammar.computed(tree, letters), slope.shape);
      return got !== null && slope.data.every((x, i) => Math.abs(got.data[i] - x) <= 1e-5 * Math.max(1, largest(slope.data)));
    });
  }

  // A rule that is right, among forms that rules have.
  function rule(question) {
    const literal = question.inputs.filter(([, ref]) => ref[0] === "is" && typeof ref[1] === "number").map(([, ref]) => String(Math.abs(ref[1])));
    const others = [...Object.values(question.letters).filter(letter => letter !== question.name), ...literal];
    if (!others.length) others.push(question.name);
    for (const form of exercise.forms)
      for (const b of form.includes("B") ? others : [""])
        for (const c of form.includes("C") ? others : [""]) {
          const text = form.replace(/(?<![A-Za-z])[ABCO](?![a-z])/g, letter => ({A: question.name, B: b, C: c, O: question.out})[letter]);
          try { if (follows(question, text)) return text; } catch { /* the shapes do not fit: another form */ }
        }
    return "";
  }

  // [whether each part is right, what is to be said].
  function judged(question, given) {
    if (question.kind === "rule") {
      try { return [[follows(question, given[0])], ""]; } catch (error) { return [[false], `not read: ${error.message}`]; }
    }
    const answer = truth(question);
    if (question.kind === "wrong") return [[given[0] === String(answer.line), right(given[1], answer.sum, answer.scale)], ""];
    return [given.map((text, i) => right(text, answer.data[i], largest(answer.data), answer.low[i], answer.high[i])), ""];
  }

  function answers(question) {
    if (question.kind === "rule") return [rule(question)];
    const answer = truth(question);
    return question.kind === "wrong" ? [String(answer.line), short(answer.sum, answer.scale)] : answer.data.map(x => short(x, largest(answer.data)));
  }

  // ── hints ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  function hints(question) {
    const own = JSON.parse(byKey(question.key).dataset.hints);
    if (question.kind === "wrong") {
      const half = Math.ceil(question.lines.length / 2);
      return [...own, () => truth(question).line <= half ? `It is one of the lines 1 to ${half}.` : `It is one of the lines ${half + 1} to ${question.lines.length}.`];
    }
    return question.kind === "rule" ? [() => needs(question), () => example(question)] : own;
  }

  function needs(question) {
    const {letters, slope} = place(question, false), values = name => question.inputs.filter(([n]) => n in question.letters).map(([n]) => [n, letters[question.letters[n]]]);
    const used = [...new Set(Object.values(question.letters))].filter(letter => {
      const moved = {...letters, [letter]: varied(letters[letter], v => v * 1.1)};
      const given = Object.fromEntries(question.inputs.filter(([n]) => n in question.letters).map(([n]) => [n, moved[question.letters[n]]]));
      return numbers.alone(question.number, given, question.place, letters.g)[0].data.some((x, i) => Math.abs(x - slope.data[i]) > 1e-6 * Math.max(1, largest(slope.data)));
    });
    return used.length ? `It depends on g and on ${used.join(" and ")}` + (question.out ? ` (${question.out} may stand for that).` : ".") : "It depends on g alone.";
  }

  function example(question) {
    const {letters, slope} = place(question, false), text = x => `[${x.data.map(v => short(v)).join(", ")}]`;
    const given = ["g", ...new Set(Object.values(question.letters))].map(letter => `${letter} = ${text(letters[letter])}`);
    return `For ${given.join(", ")} it gives ${text(slope)}.`;
  }

  // ── the page ───────────────────────────────────────────────────────────────────────────────────────────────────────

  function mark(card, verdicts) {
    const parts = verdicts.slice(card.querySelector("[type=radio]") ? 1 : 0);
    fields(card).forEach((field, i) => {
      const typed = field.value.trim() !== "";
      field.classList.toggle("right", typed && parts[i]);
      field.classList.toggle("wrong", typed && !parts[i]);
      if (typed) field.setAttribute("aria-invalid", String(!parts[i]));
    });
  }

  function check(question) {
    const card = byKey(question.key), given = texts(card);
    if (given.every(text => !text.trim())) return verdict(card, "Type an answer first.");
    const [verdicts, said] = judged(question, given), open = given.filter(text => !text.trim()).length, wrong = verdicts.filter((ok, i) => !ok && given[i].trim()).length;
    mark(card, verdicts);
    if (verdicts.every(Boolean)) state.done[question.key] = true;
    else if (wrong) state.wrong[question.key] = true;
    verdict(card, verdicts.every(Boolean) ? "✓ right" : said ? `✗ ${said}` : wrong ? `✗ not right${given.length > 1 ? `: ${wrong} of ${given.length}` : ""}` : `${open} to go`);
    card.classList.toggle("done", verdicts.every(Boolean));
    keep();
    tell();
  }

  function hint(question) {
    const all = hints(question), list = byKey(question.key).querySelector(".hints"), at = list.children.length;
    if (at >= all.length) return;
    list.append(Object.assign(document.createElement("li"), {textContent: typeof all[at] === "function" ? all[at]() : all[at]}));
    state.hints[question.key] = Math.max(state.hints[question.key] ?? 0, at + 1);
    keep();
    tell();
  }

  function reveal(question) {
    const card = byKey(question.key), found = answers(question), radio = card.querySelector("[type=radio]");
    if (radio) card.querySelector(`[type=radio][value="${found[0]}"]`).checked = true;
    fields(card).forEach((field, i) => { field.value = found[i + (radio ? 1 : 0)]; });
    if (!state.revealed.includes(question.key)) state.revealed.push(question.key);
    state.done[question.key] = true;
    shown(card);
    keep();
    tell();
  }

  function shown(card) {
    fields(card).forEach(field => { field.readOnly = true; field.classList.remove("wrong"); field.classList.add("revealed"); });
    card.querySelectorAll("[type=radio]").forEach(radio => { radio.disabled = true; });
    card.classList.add("done");
    verdict(card, "revealed");
  }

  const verdict = (card, text) => { card.querySelector(".verdict").textContent = text; };
  const text = x => x.shape.length === 0 ? short(x.data[0]) : `[${x.data.slice(0, 6).map(v => short(v, largest(x.data))).join(", ")}${x.data.length > 6 ? ", …" : ""}]`;

  // Buttons, the score, and the gradients that are known by now.
  function tell() {
    for (const question of exercise.questions) {
      const card = byKey(question.key), done = state.done[question.key], used = card.querySelector(".hints").children.length;
      card.querySelector(".check").disabled = state.revealed.includes(question.key);
      card.querySelector(".hint").disabled = Boolean(done) || !state.wrong[question.key] || used >= hints(question).length;
      card.querySelector(".reveal").disabled = Boolean(done) || used < hints(question).length;
    }
    const done = exercise.questions.filter(q => state.done[q.key] && !state.revealed.includes(q.key)).length, total = exercise.questions.length;
    const shownCount = state.revealed.length;
    main.querySelector(".score").textContent = `${done} of ${total} right` + (shownCount ? `, ${shownCount} revealed` : "");
    main.querySelector("progress").value = done / total;
    const found = place => {
      const key = exercise.known[place];
      return exercise.level === "number" || exercise.level === "whole" ? (key === undefined ? exercise.level === "number" || place === exercise.program.root : state.done[key]) : false;
    };
    const gradient = place => text(numbers.total(place, []));
    for (const span of main.querySelectorAll("[data-gradient]"))
      if (span.textContent === "?" && found(span.dataset.gradient)) span.textContent = gradient(span.dataset.gradient);
    for (const [id, places] of Object.entries(exercise.boxes)) {
      const line = main.querySelector(`.graph .node[data-id="${CSS.escape(id)}"] .gradient`);
      if (line?.textContent.includes("grad ?") && places.every(found)) {
        const told = places.slice(0, 2).map(gradient);
        line.textContent = told.some(one => one.length > 18) ? "grad found" : `grad ${told.join(", ")}${places.length > 2 ? ", …" : ""}`;
      }
    }
  }

  // ── kept, handed in ────────────────────────────────────────────────────────────────────────────────────────────────

  function keep() {
    for (const question of exercise.questions) state.answers[question.key] = texts(byKey(question.key));
    state.name = byKey("name").value;
    try { localStorage.setItem(store, JSON.stringify(state)); } catch { /* a page in a frame may not keep anything */ }
  }

  function restore() {
    let kept = null;
    try { kept = JSON.parse(localStorage.getItem(store)); } catch { /* nothing is kept */ }
    if (kept === null || typeof kept !== "object") return;
    state = {...state, ...structuredClone(kept)};
    byKey("name").value = state.name;
    for (const question of exercise.questions) {
      const card = byKey(question.key), given = [...kept.answers?.[question.key] ?? []], count = kept.hints?.[question.key] ?? 0;
      if (card.querySelector("[type=radio]")) {
        const chosen = card.querySelector(`[type=radio][value="${CSS.escape(given.shift() ?? "")}"]`);
        if (chosen) chosen.checked = true;
      }
      fields(card).forEach((field, i) => { field.value = given[i] ?? ""; });
      for (let i = 0; i < count; i++) hint(question);
      if (state.revealed.includes(question.key)) shown(card);
      else if (state.done[question.key] || state.wrong[question.key]) check(question);
    }
  }

  function handIn() {
    keep();
    const {format, version, level, seed, made, fingerprint} = exercise, {name, answers, hints, revealed} = state;
    const told = {format, version, level, seed, made, fingerprint, name: name.trim(), answers, hints, revealed};
    const link = document.createElement("a"), safe = (name.trim() || "answers").replace(/[^\p{L}\p{N}]+/gu, "-");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(told, null, 1)], {type: "application/json"}));
    link.download = `${safe}-${level}-${String(seed).replace(/[^\p{L}\p{N}]+/gu, "-")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    byKey("handed").textContent = `Saved as ${link.download}.`;
  }

  for (const question of exercise.questions) {
    const card = byKey(question.key);
    for (const [kind, act] of [["check", check], ["hint", hint], ["reveal", reveal]]) card.querySelector(`.${kind}`).addEventListener("click", () => act(question));
    card.addEventListener("keydown", event => event.key === "Enter" && event.target.matches("input:not([type=radio])") && check(question));
    card.addEventListener("input", event => {
      event.target.classList.remove("right", "wrong");
      event.target.removeAttribute("aria-invalid");
      delete state.done[question.key];
      card.classList.remove("done");
      verdict(card, "");
      keep();
      tell();
    });
  }
  byKey("name").addEventListener("input", keep);
  byKey("hand-in").addEventListener("click", handIn);
  byKey("again").addEventListener("click", () => {
    if (!confirm("Forget all answers and begin anew?")) return;
    try { localStorage.removeItem(store); } catch { /* nothing is kept */ }
    location.reload();
  });
  restore();
  tell();
})();
