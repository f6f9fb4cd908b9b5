// The button that plays and pauses the steps of a page. `start` shows what comes first, and returns false if that is all; `next` shows one step on.
function Player(button, start, next, wait) {
  let timer = null;

  function say(sign, label) {
    button.textContent = sign;
    button.setAttribute("aria-label", label);
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    say("▶", "Play");
  }

  function toggle() {
    if (timer !== null) return pause();
    if (start() === false) return;
    timer = setInterval(next, wait);
    say("❚❚", "Pause");
  }
  button.addEventListener("click", toggle);
  return {pause, toggle};
}
