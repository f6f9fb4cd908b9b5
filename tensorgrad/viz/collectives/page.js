(() => {
  "use strict";
  const main = document.querySelector(".collective"), frames = [...main.querySelectorAll(".frame")];
  const rows = [...main.querySelectorAll(".steps tbody tr")];
  const [slider, play, back, next, where] = ["step", "play", "back", "next", "where"].map(id => document.getElementById(id));
  let at = 0;

  function show(to, moves) {
    at = Math.max(0, Math.min(frames.length - 1, to));
    main.classList.toggle("moves", moves);
    frames.forEach((frame, i) => frame.classList.toggle("on", i === at));
    rows.forEach((row, i) => row.classList.toggle("at", i === at - 1));
    slider.value = at;
    slider.setAttribute("aria-valuetext", frames[at].dataset.label);
    where.textContent = `${at} / ${frames.length - 1}  ${frames[at].dataset.label}`;
    back.disabled = at === 0;
    next.disabled = at === frames.length - 1;
    if (next.disabled) pause();
  }

  const {pause, toggle} = Player(play, () => {
    show(at === frames.length - 1 ? 0 : at + 1, true);
    return at < frames.length - 1;
  }, () => show(at + 1, true), 2200);
  const go = to => { pause(); show(to, to === at + 1); };
  const keys = {ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(frames.length - 1), " ": toggle};
  document.addEventListener("keydown", event => {
    const act = keys[event.key], on = event.target;
    if (!act || event.ctrlKey || event.metaKey || event.altKey || event.key === " " && on.matches("button")) return;
    event.preventDefault();
    act();
  });
  slider.addEventListener("input", () => go(Number(slider.value)));
  back.addEventListener("click", () => go(at - 1));
  next.addEventListener("click", () => go(at + 1));
  for (const button of main.querySelectorAll(".go")) button.addEventListener("click", () => {
    go(Number(button.dataset.step));
    main.querySelector(".frames").scrollIntoView({block: "start"});
  });

  main.classList.add("live");
  show(0, false);
})();
