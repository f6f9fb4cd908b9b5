// Heat maps: an array as coloured dots, blue below zero and orange above, which people tell apart who see red and green alike.
// Point at a dot, or move among them by the arrow keys: its number is told. Press Enter or the button: all numbers.
const Heat = (() => {
  const MOST = 1024;                         // numbers of a table
  const dark = matchMedia("(prefers-color-scheme: dark)"), print = matchMedia("print");
  const onTouch = [];                        // called with (element, place) when a dot is chosen

  // From −1 to 1: blue, paper, orange. Made so that the strongest colours are equally far from the paper's lightness.
  const LIGHT = [[8, 81, 156], [107, 174, 214], [247, 247, 247], [253, 174, 97], [179, 70, 0]];
  const DARK = [[125, 190, 255], [30, 90, 160], [27, 34, 44], [170, 84, 10], [255, 176, 102]];
  const palette = () => dark.matches && !print.matches ? DARK : LIGHT;

  function colour(x, scale, colours) {
    if (Number.isNaN(x)) return [255, 0, 200];
    const place = Math.max(0, Math.min(4, 2 + 2 * x / scale)), k = Math.min(3, Math.floor(place)), part = place - k;
    return colours[k].map((c, i) => Math.round(c + (colours[k + 1][i] - c) * part));
  }

  // An array as planes of rows and columns beside each other.
  function planes(shape) {
    const [rows, columns] = shape.length > 1 ? shape.slice(-2) : [1, shape[0] ?? 1];
    const count = shape.slice(0, -2).reduce((a, b) => a * b, 1), most = Math.max(1, Math.min(count, Math.floor(66 / (columns + 1))));
    const wide = Math.ceil(count / Math.ceil(count / most));
    const gap = count > 1 ? 1 : 0;
    return {rows, columns, count, wide, gap, width: wide * (columns + gap) - gap, height: Math.ceil(count / wide) * (rows + gap) - gap};
  }

  function finite(data) {
    let low = Infinity, high = -Infinity;
    for (const x of data) if (Number.isFinite(x)) { low = Math.min(low, x); high = Math.max(high, x); }
    return low <= high ? [low, high] : [NaN, NaN];
  }

  function paint(canvas, {shape, data}) {
    const {rows, columns, count, wide, gap, width, height} = planes(shape), colours = palette();
    const context = canvas.getContext("2d", {willReadFrequently: true}), image = context.createImageData(width, height), [low, high] = finite(data), scale = Math.max(-low, high) || 1;
    for (let plane = 0, i = 0; plane < count; plane++) {
      const left = plane % wide * (columns + gap), top = Math.floor(plane / wide) * (rows + gap);
      for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++, i++) {
        const at = 4 * ((top + r) * width + left + c);
        image.data.set([...colour(data[i], scale, colours), 255], at);
      }
    }
    context.putImageData(image, 0, 0);
  }

  function index(shape, place) {
    const found = [];
    for (let d = shape.length - 1; d >= 0; d--) { found.unshift(place % shape[d]); place = Math.floor(place / shape[d]); }
    return found;
  }

  function said({shape, kind, data}) {
    const [low, high] = finite(data), mean = data.reduce((a, b) => a + b, 0) / data.length;
    return `${shape.join(" × ")} numbers from ${Arrays.short(low, kind)} to ${Arrays.short(high, kind)}, mean ${Arrays.short(mean)}`;
  }

  function draw(shown, array) {
    let canvas = shown.querySelector("canvas");
    const {width, height} = planes(array.shape), size = Math.max(1, Math.min(15, Math.floor(264 / width), Math.floor(220 / height) || 1));
    if (!canvas) {
      canvas = Arrays.element("canvas", {width, height, role: "img", tabindex: 0});
      const told = Arrays.element("span", {class: "dot"}), button = Arrays.element("button", {type: "button", class: "numbers", "aria-pressed": false}, "numbers");
      shown.replaceChildren(Arrays.element("span", {class: "map"}, canvas), told, button);
      canvas.style.width = `${width * size}px`;
      listen(shown, canvas, told, button);
    }
    canvas.setAttribute("aria-label", said(array));
    paint(canvas, array);
    const [low, high] = finite(array.data);
    shown.querySelector(".dot").textContent = `${Arrays.short(low, array.kind)} … ${Arrays.short(high, array.kind)}`;
    const table = shown.querySelector(".all");
    if (table) table.replaceWith(numbers(array));
  }

  function numbers(array) {
    const {rows, columns, count} = planes(array.shape), block = rows * columns, all = array.data.length <= MOST;
    const tables = Array.from({length: all ? count : 1}, (_, i) =>
      Arrays.table({shape: [rows, columns], kind: array.kind, data: array.data.subarray(i * block, (i + 1) * block)}, all ? 1000 : 12));
    return Arrays.element("span", {class: "all"}, ...tables);
  }

  function listen(shown, canvas, told, button) {
    let at = -1;
    const array = () => Arrays.now(shown.dataset.show);
    const tell = place => {
      const {shape, data, kind} = array();
      at = place;
      told.textContent = `[${index(shape, place).join(", ")}] = ${Arrays.short(data[place], kind)}`;
    };
    const under = event => {
      const box = canvas.getBoundingClientRect(), {rows, columns, count, wide, gap, width, height} = planes(array().shape);
      const x = Math.floor((event.clientX - box.left) / box.width * width), y = Math.floor((event.clientY - box.top) / box.height * height);
      const [c, r] = [x % (columns + gap), y % (rows + gap)], plane = Math.floor(y / (rows + gap)) * wide + Math.floor(x / (columns + gap));
      return c < 0 || r < 0 || c >= columns || r >= rows || plane >= count ? -1 : (plane * rows + r) * columns + c;
    };
    canvas.addEventListener("pointermove", event => { const place = under(event); if (place >= 0) tell(place); });
    canvas.addEventListener("click", event => { const place = under(event); if (place >= 0) { tell(place); for (const f of onTouch) f(shown, place); } });
    canvas.addEventListener("keydown", event => {
      const {columns} = planes(array().shape), step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns}[event.key];
      if (event.key === "Enter") for (const f of onTouch) f(shown, Math.max(0, at));
      if (step === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      tell(at < 0 ? 0 : Math.max(0, Math.min(array().data.length - 1, at + step)));
      canvas.setAttribute("aria-label", `${said(array())}; ${told.textContent}`);
    });
    button.addEventListener("click", () => {
      const open = shown.querySelector(".all");
      if (open) open.remove();
      else shown.append(numbers(array()));
      button.setAttribute("aria-pressed", !open);
    });
  }

  return {draw, onTouch, dark, print};
})();
