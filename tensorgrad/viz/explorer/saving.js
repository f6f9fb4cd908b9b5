// Paper: all steps are printed, below the graph; one step is saved as a picture.
(() => {
  const {page, graph, frames, sections} = Stepping, NAMESPACE = "http://www.w3.org/2000/svg";
  const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "visibility", "font-family", "font-size", "font-weight", "text-anchor", "paint-order"];

  document.getElementById("print").addEventListener("click", () => window.print());
  let phase = "";
  addEventListener("beforeprint", () => {
    phase = page.dataset.phase;
    Stepping.all();
    Stepping.light(frames.length - 1);
    page.dataset.phase = "print";
  });
  addEventListener("afterprint", () => {
    page.dataset.phase = phase;
    Stepping.show(Stepping.at());
  });

  // The graph as a file of its own: what CSS says is written into its elements, and below it what the step says.
  function picture() {
    const from = graph.querySelector("svg"), to = from.cloneNode(true), {width, height} = from.viewBox.baseVal;
    const before = [...from.querySelectorAll("rect, path, text")], after = [...to.querySelectorAll("rect, path, text")];
    before.forEach((element, i) => {
      const look = getComputedStyle(element), own = after[i];
      const opacity = [...ancestors(element)].reduce((all, e) => all * Number(getComputedStyle(e).opacity), Number(look.opacity));
      for (const name of LOOKS) own.setAttribute(name, look.getPropertyValue(name));
      own.setAttribute("opacity", opacity);
      own.removeAttribute("style");
      for (const end of ["marker-start", "marker-end"]) {
        if (look.getPropertyValue(end) === "none") own.removeAttribute(end);
        else own.setAttribute(end, look.getPropertyValue(end).replaceAll('"', ""));
      }
    });
    for (const style of to.querySelectorAll("style")) style.remove();
    for (const e of [to, ...to.querySelectorAll("[class], [tabindex], [role]")]) for (const name of ["class", "tabindex", "role", "aria-label"]) e.removeAttribute(name);
    for (const marker of page.querySelectorAll(".markers marker")) {
      const own = marker.cloneNode(true);
      own.querySelector("path").setAttribute("fill", getComputedStyle(marker.querySelector("path")).fill);
      to.querySelector("defs").append(own);
    }
    const lines = words(sections[Stepping.at()]), wide = Math.max(width, ...lines.map(line => 7.4 * line.length + 32)), tall = height + 18 * lines.length + 14;
    lines.forEach((line, i) => {
      const text = document.createElementNS(NAMESPACE, "text");
      const attributes = {x: 16 - (wide - width) / 2, y: height + 18 * (i + 0.7), "font-size": i ? 12 : 14, "font-family": "monospace", "font-weight": i ? 400 : 700,
                          fill: getComputedStyle(page).color};
      for (const [name, value] of Object.entries(attributes)) text.setAttribute(name, value);
      text.textContent = line;
      to.append(text);
    });
    to.setAttribute("viewBox", `${-(wide - width) / 2} 0 ${wide} ${tall}`);
    const paper = to.querySelector("rect");
    paper.setAttribute("x", -(wide - width) / 2);
    to.setAttribute("width", wide);
    to.setAttribute("height", tall);
    return new XMLSerializer().serializeToString(to);
  }

  function* ancestors(element) {
    for (let e = element.parentElement; e && e !== graph; e = e.parentElement) yield e;
  }

  // A formula with numbers as text.
  function spoken(math) {
    const parts = [...math.children].map(spoken);
    const held = text => /^[\w.]+$/.test(text) ? text : `(${text})`;
    if (math.localName === "msup") return `${parts[0]}^${held(parts[1])}`;
    if (math.localName === "mfrac") return `${held(parts[0])} / ${held(parts[1])}`;
    if (math.localName === "msqrt") return `√${held(parts[0])}`;
    if (math.localName === "mo" && /[·+−@=]/.test(math.textContent) && math.previousElementSibling) return ` ${math.textContent} `;
    return parts.length ? parts.join("") : math.textContent;
  }

  // What a frame says, in lines: formulas as the text that they are, heat maps as their ranges.
  function words(section) {
    const said = e => {
      const copy = e.cloneNode(true);
      for (const math of copy.querySelectorAll("math")) math.replaceWith(math.getAttribute("alttext") ?? spoken(math));
      for (const gone of copy.querySelectorAll(".numbers, .all, [hidden], details")) gone.remove();
      for (const row of copy.querySelectorAll("tr")) row.replaceWith(`[${[...row.children].map(cell => cell.textContent).join(", ")}] `);
      return copy.textContent.replace(/\s+/g, " ").trim();
    };
    const lines = [section.querySelector("h2").textContent];
    for (const part of section.querySelectorAll(".of, dl > dt, .equation")) {
      if (part.closest(".parts")) continue;
      if (part.matches("dt")) lines.push(`${said(part)} = ${said(part.nextElementSibling)}`);
      else if (part.matches(".of")) lines.push(said(part));
      else for (let i = 0; i < part.children.length; i += 3) lines.push([...part.children].slice(i, i + 3).map(said).join(" ").trim());
    }
    return lines.map(line => line.length > 110 ? `${line.slice(0, 109)}…` : line).slice(0, 24);
  }

  document.getElementById("picture").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([picture()], {type: "image/svg+xml"}));
    link.download = `step-${Stepping.at() + 1}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  });
})();
