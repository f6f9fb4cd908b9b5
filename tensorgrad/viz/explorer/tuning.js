// Leaves: a slider and a field for their numbers. With other numbers, forward and backward are computed anew, by the rules that the page shows.
const Tuning = (() => {
  const FEW = 6;                              // numbers that have a slider each
  const holder = document.querySelector("details.leaves"), {element, short} = Arrays;
  const {leaves, rest, parts} = JSON.parse(document.getElementById("data").textContent);
  const machine = Evaluator(JSON.parse(document.getElementById("program").textContent));
  const start = leaf => Arrays.first(`v:${leaf.place}`), given = new Map();          // place → array, of the leaves that were changed
  const known = leaves.filter(start), total = known.reduce((sum, leaf) => sum + start(leaf).data.length, 0);
  let waiting = false;

  if (!machine.able || !known.length) {
    const why = machine.able ? "" : `: ${machine.why}`;
    holder.replaceWith(element("p", {class: "note"}, `This page only shows the numbers, and cannot compute with others${why}.`));
    return {able: false};
  }

  // Steps that are opened are programs, too. Parts that cannot be computed anew stay as they were, and say so.
  const opened = parts.map(part => ({...part, machine: part.program && Evaluator(part.program), element: document.querySelector(`[data-parts="${part.prefix}"]`)}));

  // ── computing ───────────────────────────────────────────────────────────────────────────────────────────────────────

  function add(a, b) { return {...a, data: a.data.map((x, i) => x + b.data[i])}; }

  // The arrays of a program by the keys of the page: values, gradients, and what each step back adds up. `steps` are those back.
  function fill(found, prefix, {values, gradients, shares}, steps) {
    const sums = new Map(), by = new Map();
    for (const [place, array] of Object.entries(values)) found.set(`${prefix}v:${place}`, array);
    for (const {number, target, gradient} of shares) {
      const own = `${number} ${target}`;
      by.set(own, [...by.get(own) ?? [], gradient]);
    }
    for (const [numbers, gives] of steps) for (const [target, share, sum] of gives) {
      const all = numbers.flatMap(number => by.get(`${number} ${target}`) ?? []), wanted = gives.filter(([other]) => other === target);
      const own = wanted.length === 1 ? all.reduce(add) : all[wanted.findIndex(([, other]) => other === share)];
      const before = sums.get(target);
      sums.set(target, before ? add(before, own) : own);
      if (share) found.set(share, own);
      if (sum) found.set(sum, sums.get(target));
    }
    for (const [place, array] of Object.entries(gradients)) found.set(`${prefix}g:${place}`, array);
  }

  function alike(a, b) {
    const size = b.data.reduce((most, x) => Math.max(most, Math.abs(x)), 1e-6);
    return a.data.length === b.data.length && a.data.every((x, i) => !(Math.abs(x - b.data[i]) > 1e-4 * size));
  }

  function computed() {
    const found = new Map();
    fill(found, "", machine.run(Object.fromEntries(given)), rest);
    for (const {prefix, program, machine, leaves, start, rest, element} of opened) {
      const inputs = Object.fromEntries(Object.entries(leaves).map(([place, of]) => [place, found.get(`v:${of}`)]));
      const made = machine && machine.run(inputs, {start: found.get(`g:${start}`)});
      const agree = made && alike(made.values[program.root], found.get(`v:${start}`));         // not if a constant of the parts was made from a leaf
      if (agree) fill(found, prefix, made, rest);
      element.toggleAttribute("data-stale", !agree);
    }
    return found;
  }

  function run() {
    waiting = false;
    for (const {element} of opened) element.removeAttribute("data-stale");
    Arrays.change(given.size ? computed() : new Map());
    reset.disabled = given.size === 0;
    Stepping.changed();
  }

  function set(leaf, place, value) {
    const first = start(leaf), array = given.get(leaf.place) ?? {...first, data: first.data.slice()};
    array.data[place] = value;
    if (array.data.every((x, i) => Object.is(x, first.data[i]))) given.delete(leaf.place);
    else given.set(leaf.place, array);
    if (!waiting) requestAnimationFrame(run);
    waiting = true;
  }

  const number = (leaf, place) => (given.get(leaf.place) ?? start(leaf)).data[place];

  // ── fields ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  // 0.5, 0,5, −2, 1/3, 2e-3: what a text means as a number; NaN for none.
  function read(text) {
    const parts = text.trim().replace(/[−–]/g, "-").replace(/^([^.,]*),([^,]*)$/, "$1.$2").split("/");
    return parts.some(part => !part.trim()) || parts.length > 2 ? NaN : parts.length === 2 ? parts[0] / parts[1] : Number(parts[0]);
  }

  // A slider and a field for one number. `tune(leaf, place)` makes them those of another.
  function row() {
    const slider = element("input", {type: "range", step: "any"}), field = element("input", {type: "text", inputmode: "decimal", size: 8, autocomplete: "off", spellcheck: "false"});
    const line = element("div", {class: "row"}, slider, field);
    let leaf, place;
    const write = () => { field.value = short(number(leaf, place)).replace("−", "-"); slider.value = number(leaf, place); field.removeAttribute("aria-invalid"); };
    const tune = (newLeaf, newPlace) => {
      [leaf, place] = [newLeaf, newPlace];
      const size = Math.abs(number(leaf, place)), wide = size ? 10 ** Math.ceil(Math.log10(size * 1.5)) : 1;
      const reach = Number.isFinite(wide) ? Math.max(wide, 0.1) * (size > wide / 2 ? 2 : 1) : 1;
      Object.assign(slider, {min: -reach, max: reach, step: reach / 200});
      const name = leaf.name + (start(leaf).shape.length ? `[${index(start(leaf).shape, place).join(", ")}]` : "");
      slider.setAttribute("aria-label", name);
      field.setAttribute("aria-label", `${name}, typed`);
      write();
      return name;
    };
    slider.addEventListener("input", () => { set(leaf, place, Math.fround(slider.value)); field.value = short(Number(slider.value)).replace("−", "-"); field.removeAttribute("aria-invalid"); });
    field.addEventListener("input", () => {
      const value = read(field.value), good = Number.isFinite(value);
      field.toggleAttribute("aria-invalid", !good);
      if (!good) return field.setAttribute("aria-invalid", true);
      slider.min = Math.min(slider.min, value);
      slider.max = Math.max(slider.max, value);
      slider.value = value;
      set(leaf, place, Math.fround(value));
    });
    return {line, tune, write: () => leaf && write()};
  }

  function index(shape, place) {
    const found = [];
    for (let d = shape.length - 1; d >= 0; d--) { found.unshift(place % shape[d]); place = Math.floor(place / shape[d]); }
    return found;
  }

  const reset = element("button", {type: "button", id: "reset", disabled: ""}, "Reset");
  const rows = [];
  let choose = () => {};
  if (total <= FEW) {
    for (const leaf of known) start(leaf).data.forEach((_, place) => {
      const made = row(), name = made.tune(leaf, place);
      made.line.prepend(element("label", {}, name));
      rows.push(made);
      made.line.dataset.node = leaf.node;
    });
    choose = (leaf, place = 0) => rows.find(made => made.line.dataset.node === leaf.node)?.line.querySelector("input").focus({preventScroll: true});
  } else {
    const made = row(), names = element("select", {"aria-label": "Leaf"}, ...known.map((leaf, i) => element("option", {value: i}, leaf.name)));
    const places = element("input", {type: "text", size: 6, "aria-label": "Element", autocomplete: "off", spellcheck: "false"});
    made.line.prepend(names, places);
    rows.push(made);
    choose = (leaf, place = 0) => {
      names.value = known.indexOf(leaf);
      const {shape} = start(leaf);
      places.hidden = !shape.length;
      places.value = index(shape, place).join(", ");
      places.removeAttribute("aria-invalid");
      made.tune(leaf, place);
    };
    names.addEventListener("change", () => choose(known[names.value]));
    places.addEventListener("input", () => {
      const leaf = known[names.value], {shape} = start(leaf), parts = places.value.split(",").map(part => part.trim() === "" ? NaN : Number(part));
      const good = parts.length === shape.length && parts.every((n, d) => Number.isInteger(n) && n >= 0 && n < shape[d]);
      if (good) { places.removeAttribute("aria-invalid"); made.tune(leaf, parts.reduce((place, n, d) => place * shape[d] + n, 0)); }
      else places.setAttribute("aria-invalid", true);
    });
    choose(known[0]);
  }
  holder.append(element("div", {class: "rows"}, ...rows.map(made => made.line)), reset);
  if (matchMedia("(max-width: 760px)").matches) holder.open = false;
  reset.addEventListener("click", () => {
    given.clear();
    run();
    for (const made of rows) made.write();
  });
  Stepping.onBox.push(id => { const leaf = known.find(leaf => leaf.node === id); if (leaf) choose(leaf); });
  Heat.onTouch.push((shown, place) => { const leaf = known.find(leaf => `v:${leaf.place}` === shown.dataset.show); if (leaf) choose(leaf, place); });
  return {able: true, set, leaves: known, run};
})();
