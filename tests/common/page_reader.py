"""Reads a saved page as a person would: rules as they are printed, evaluated with the numbers that are shown.

Knows nothing of the engine.

    program, gradients = read(page)
    for told in gradients:
        told.rule, told.op, told.letters, told.share        # "g · b", "multiply", {"g": array, "b": array}, array
        evaluated(told)                                     # what the rule gives for these numbers
"""
import base64
import json
import re
from html import unescape
from itertools import product
from math import erf, pi, prod

import numpy as np

EXACT = 256             # elements, up to which arrays are shown in single precision, else with 16 bits


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Told:
    """A gradient that a step gives: its rule, the numbers behind its letters, its share, the sum before and with it."""

    def __init__(self, attributes, rows, numbers):
        self.op, self.input, self.rule = (attributes[f"data-{name}"] for name in ("op", "input", "rule"))
        self.step, self.inner = int(attributes["data-step"]), "inner" in attributes["class"]
        self.letters = dict(rows)
        for name, key in json.loads(attributes["data-letters"]).items():
            self.letters[name] = numbers[key] if isinstance(key, str) and key in numbers else key
        self.share, self.total = numbers[attributes["data-share"]], numbers[attributes["data-total"]]
        self.before = numbers.get(attributes["data-before"])
        arrays = [self.share, *(value for value in self.letters.values() if isinstance(value, np.ndarray))]
        rough = any(array.size > EXACT for array in arrays)
        # of what is shown
        self.slack = (2 ** -14 if rough else 2 ** -20) * (1 + max(np.abs(array).max(initial=0) for array in arrays))
        self.definitions = ""               # of letters, which a rule of the same step has told already


# Where a step begins, or a part of it; a row with its name and its numbers; a gradient; the data of the script.
PIECES = re.compile(r'(?P<step><section|<div class="part">)|<dt>(?P<name>.*?)</dt><dd>(?P<value>.*?)</dd>|<div '
                    r'(?P<told>class="told[^>]*)>'
                    r'|<script type="?application/json"? id="?(?P<id>\w+)"?>(?P<data>.*?)</script>', re.DOTALL)
ATTRIBUTE, KEY, TAG = re.compile(r'([\w-]+)="([^"]*)"'), re.compile(r'data-show="([^"]*)"'), re.compile(r"<[^>]*>")


def pieces(text):
    """The data of a page's script, and its steps: (rows, gradients), where a row is (name, text, key of an array or
    None).
    """
    data, steps = {}, []
    for piece in PIECES.finditer(text):
        if piece["step"]:
            steps.append(([], []))
        elif piece["told"]:
            steps[-1][1].append({name: unescape(value) for name, value in ATTRIBUTE.findall(piece["told"])})
        elif piece["id"]:
            data[piece["id"]] = json.loads(piece["data"])
        elif steps:
            key = KEY.search(piece["value"])
            steps[-1][0].append((unescape(TAG.sub("", piece["name"])), unescape(TAG.sub("", piece["value"])),
                                 unescape(key[1]) if key else None))
    return data, steps


def unpacked(shape, kind, size, packed):
    raw = np.frombuffer(base64.b64decode(packed), np.uint8).reshape(-1, size)
    whole = np.zeros((len(raw), 4), np.uint8)
    whole[:, 4 - size:] = raw
    return whole.reshape(-1).view("<f4").astype({"f": "float64", "i": "int64", "b": "bool"}[kind]).reshape(shape)


def read(text):
    """The program of a page, and the gradients that its steps give."""
    data, steps = pieces(text)
    numbers = {key: unpacked(*data["numbers"][value] if isinstance(value, str) else value)
               for key, value in data["numbers"].items()}
    found = []
    for rows, told in steps:
        shown = {}
        for name, written, key in rows:
            name = name.split(" is ")[0]
            if key in numbers:
                shown[name] = numbers[key]
            elif "nothing comes back" in written:
                shown[name] = 0.0
            else:
                try:
                    shown[name] = json.loads(written.replace("−", "-").replace("(", "[").replace(",)", "]").replace(")",
                                                                                                                    "]").lower().replace("'", '"'))  # noqa: E501
                except ValueError:
                    shown[name] = written
        definitions = ""
        for attributes in told:
            found.append(Told(attributes, shown, numbers))
            found[-1].definitions = definitions
            definitions = found[-1].rule.partition(", with ")[2] or definitions
    return data["program"], found


# ── formulas ──────────────────────────────────────────────────────────────────────────────────────────────────────────

TOKEN = re.compile(r"\s*((?![²³ᵀ])\d+(?:\.\d+)?(?:e[−-]?\d+)?|(?:(?![²³ᵀ\d])\w)(?:(?![²³ᵀ])[\w′])*|\S)")
SPELLED = {"ε": "eps", "α": "alpha", "β": "beta"}
COMPARED = {"=": np.equal, "≠": np.not_equal, "<": np.less, ">": np.greater, "≤": np.less_equal, "≥": np.greater_equal}
MISSING = object()          # ⋯ in a formula


class Reader:
    """Evaluates a rule while it reads it."""

    def __init__(self, told):
        self.told, self.letters = told, dict(told.letters)
        self.text, self.at = told.rule, 0
        if told.op == "matmul":             # a vector is a row on the left, a column on the right
            for name, axis in (("b", -1), ("a", -2)):
                if np.ndim(self.letters[name]) == 1:
                    self.letters |= {name: np.expand_dims(self.letters[name], axis),
                                     "g": np.expand_dims(self.letters["g"], axis)}

    # tokens

    def peek(self):
        found = TOKEN.match(self.text, self.at)
        return found[1] if found else ""

    def take(self, *expected):
        found = TOKEN.match(self.text, self.at)
        assert found and (not expected or found[1] in expected), (self.text, self.text[self.at:], expected)
        self.at = found.end()
        return found[1]

    def given(self, *tokens):
        """Take these tokens if they follow; return whether they did."""
        before = self.at
        for token in tokens:
            if self.peek() != token:
                self.at = before
                return False
            self.take()
        return True

    def bracket(self):
        """The text of an index, with its brackets."""
        self.at += len(self.text[self.at:]) - len(self.text[self.at:].lstrip())
        start, depth = self.at, 0
        while True:
            depth += {"[": 1, "]": -1}.get(self.text[self.at], 0)
            self.at += 1
            if not depth:
                return self.text[start:self.at]

    # grammar

    def rule(self):
        self.text, _, definitions = self.text.partition(", with ")
        left = dict(part.split(" = ", 1) for part in re.split(r", (?=\w+ = )", definitions or self.told.definitions)
                    if part)
        while left:                         # those first that need no others
            name = next(name for name, formula in left.items()
                        if not any(re.search(rf"(?<!\w){other}(?!\w)", formula) for other in left if other != name))
            inner = Reader(self.told)
            inner.letters, inner.text = self.letters, left.pop(name)
            self.letters[name] = inner.choice()
        value = self.choice()
        assert self.at == len(self.text), (self.text, self.text[self.at:])
        return value

    def choice(self):
        value = self.sum()
        if self.given("where"):
            test = self.condition()
            self.take(",")
            self.take("else")
            return np.where(test, value, self.choice())
        if self.peek() == "at" or self.given("added"):
            added = self.text[:self.at].rstrip().endswith("added")
            self.take("at")
            value = self.scattered(value, added)
            self.take(",")
            self.take("0")
            self.take("elsewhere")
        elif self.given("with"):
            whole = np.array(value)
            places = self.place(numbered(whole))
            self.take("=")
            whole.reshape(-1)[places] = self.sum()
            return whole
        return value

    def condition(self):
        test = self.comparison()
        while self.given("and"):
            test = test & self.comparison()
        return test

    def comparison(self):
        left = self.sum()
        return COMPARED[self.take()](left, self.sum()) if self.peek() in COMPARED else left

    def sum(self):
        value = np.negative(self.term()) if self.given("−") else self.term()
        while self.peek() in ("+", "−"):
            value = value + self.term() if self.take() == "+" else value - self.term()
        return value

    def term(self):
        value = self.factor()
        while self.peek() in ("·", "/", "@"):
            sign, other = self.take(), self.factor()
            value = value @ other if sign == "@" else value * other if sign == "·" else value / other
        return value

    def factor(self):
        value = self.atom()
        while True:
            if self.given("²"):
                value = value ** 2
            elif self.given("³"):
                value = value ** 3
            elif self.given("ᵀ"):
                value = np.swapaxes(value, -1, -2)
            elif self.given("^"):
                value = value ** self.factor()
            elif self.text[self.at:self.at + 1] in ("[", "."):
                value = self.place(value)
            else:
                return value

    def atom(self):
        token = self.take()
        if token == "(":
            value = self.choice()
            while self.given(","):
                value = (*value, self.choice()) if isinstance(value, tuple) else (value, self.choice())
            self.take(")")
            return value
        if token == "√":
            return np.sqrt(self.factor())
        if token == "−":
            return np.negative(self.factor())
        if token == "⋯":
            return MISSING
        if token[0].isdigit():
            return float(token.replace("−", "-")) if "." in token or "e" in token else int(token)
        if self.peek() == "(" and token not in self.letters:
            return self.call(token)
        return self.letter(token)

    def letter(self, name):
        if name == "π":
            return pi
        if name == "n":
            return self.count()
        name = SPELLED.get(name, name)
        if name == "g" and name not in self.letters:            # of several results
            return [self.letters[each] for each in sorted(each for each in self.letters
                                                          if re.fullmatch("g[₀-₉]+", each))]
        value = self.letters[name]
        if name in ("g", "out") and self.letters.get("keepdims") is False and np.ndim(value) < self.told.share.ndim:
            value = np.reshape(value, kept(self, value, self.told.share.shape))
        if self.told.op in ("batch_norm", "group_norm") and name == "w":
            value = value.reshape(-1, *(1,) * (self.letters["x"].ndim - 2))
        return value

    def count(self):
        """The number of elements that a mean is of."""
        if "target" in self.letters:
            return np.size(self.letters["target"])
        arrays = [np.shape(self.told.share),
                  *(np.shape(self.letters[name]) for name in ("x", "y") if name in self.letters)]
        return prod(np.broadcast_shapes(*arrays)) // np.size(self.letters["g"])

    def call(self, name):
        self.take("(")
        values, options = [], {}
        while not self.given(")"):
            if re.match(r"\s*\w+=", self.text[self.at:]):
                key = self.take()
                self.take("=")
                options[key] = self.choice()
            elif name == "shape":
                self.take()
                values.append(np.shape(self.told.share))
            else:
                value = self.choice()
                values.append(COMPARED[self.take()](value, self.sum()) if self.peek() in COMPARED else value)
            self.given(",")
        return FUNCTIONS[name](self, *values, **options)

    # places

    def place(self, value):
        """A view of an array: `[0, 1:4]`, or `.reshape((2, 6))[0]`, or what is printed of several results."""
        while self.peek() in (".", "["):
            if self.peek() == "[":
                value = value[eval(f"np.s_{self.bracket()}", {"np": np}, self.letters)]
            else:
                self.take(".")
                name = self.take()
                call = re.match(r"\((?:[^()]|\([^()]*\))*\)", self.text[self.at:])[0]
                self.at += len(call)
                value = value.T if name == "t" else getattr(value, name)(*eval(f"({call[1:-1]},)"))
        return value

    def scattered(self, value, added):
        whole = np.zeros(np.shape(self.told.share))
        if self.peek() == "rows":
            self.take()
            np.add.at(whole, self.choice(), value)
        elif self.peek() in ("[", "."):
            if added:
                text = self.bracket()
                index = eval(f"np.s_{text}", {"np": np}, self.letters)
                axis = self.letters.get("axis", 0) if text == "[index]" else 0
                np.add.at(whole, (*(slice(None),) * axis, *(index if isinstance(index, tuple) else (index,))), value)
            else:
                places = self.place(numbered(whole))
                whole.reshape(-1)[places] = np.broadcast_to(value, places.shape)
        else:
            index, axis = self.choice(), self.letters["axis"]
            np.put_along_axis(whole, index, value, axis)
        return whole


# ── functions, as the rules' readers know them ────────────────────────────────────────────────────────────────────────


def axes(reader, x):
    """The axes that a step goes along, which its rows tell, or its name: layer norm the last ones, batch norm all but
    the channels.
    """
    rows = reader.letters
    if reader.told.op == "batch_norm":
        return (0, *range(2, x.ndim))
    if "ndim" in rows:
        return tuple(range(x.ndim - rows["ndim"], x.ndim))
    axis = rows.get("axis")
    return tuple(range(x.ndim)) if axis is None else tuple(axis) if isinstance(axis, list) else (axis,)


def total(reader, x, axis=None):
    # the sum is as large as the weights
    if axis is None and reader.told.op.endswith("_norm") and reader.told.input in ("w", "b"):
        return x if reader.told.op not in ("batch_norm", "group_norm") else x.sum((0, *range(2, x.ndim)))
    return x.sum(axis) if axis is not None else x.sum(axes(reader, x), keepdims=True)


def softmax(reader, x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def onehot(reader, target):
    return np.moveaxis(np.eye(np.shape(reader.told.share)[1])[target], -1, 1)


def group_mean(reader, x):
    grouped = x.reshape(x.shape[0], reader.letters["groups"], -1)
    return np.broadcast_to(grouped.mean(2, keepdims=True), grouped.shape).reshape(x.shape)


def pad(reader, x, widths=None, value=None):
    if value is not None:               # of a running product: it starts at the value, and leaves out the last
        axis = reader.letters["axis"]
        first = np.full_like(np.take(x, [0], axis), value)
        return np.concatenate([first, np.take(x, range(x.shape[axis] - 1), axis)], axis)
    return x[tuple(slice(a, n - b) for (a, b), n in zip(reader.letters["widths"], x.shape, strict=True))]


def numbered(array):
    return np.arange(np.size(array)).reshape(np.shape(array))


def axis_of(axis):
    return tuple(axis) if isinstance(axis, (list, tuple)) else axis


FUNCTIONS = {
    "Σ": total, "mean": lambda reader, x: x.mean(axes(reader, x), keepdims=True), "softmax": softmax, "onehot": onehot,
    "group_mean": group_mean,
    "exp": lambda _, x: np.exp(x), "log": lambda _, x: np.log(x), "sin": lambda _, x: np.sin(x),
    "cos": lambda _, x: np.cos(x),
    "erf": lambda _, x: np.vectorize(erf)(x), "σ": lambda _, x: 1 / (1 + np.exp(-x)), "sgn": lambda _, x: np.sign(x),
    "clamp": lambda _, x, lo, hi: np.clip(x, lo, hi), "shape": lambda _, shape: shape,
    "zeros": lambda _, shape: np.zeros(shape),
    "broadcast_to": lambda reader, x, shape: np.broadcast_to(np.reshape(x, kept(reader, x, shape)), shape),
    "reshape": lambda _, x, shape: np.reshape(x, shape),
    "unsqueeze": lambda _, x, axis: np.expand_dims(x, axis_of(axis)),
    "flip": lambda _, x, axis: np.flip(x, axis_of(axis)),
    "cumsum": lambda reader, x: np.cumsum(x, reader.letters["axis"]),
    "cumprod": lambda reader, x: np.cumprod(x, reader.letters["axis"]),
    "roll": lambda reader, x, shift: np.roll(x, shift, axis_of(reader.letters["axis"])),
    "inverse": lambda _, axes: np.argsort(axes).tolist(),
    "permute": lambda _, x, axes: np.transpose(x, axes), "swapaxes": lambda _, x, a, b: np.swapaxes(x, a, b),
    "tril": lambda reader, x: np.tril(x, reader.letters["k"]), "pad": pad,
    "stack": lambda reader, g: np.stack(g, reader.letters["axis"]),
    "cat": lambda reader, g: np.concatenate(g, reader.letters["axis"]),
    "unfold": lambda reader, g, kernel: windows_of(reader, g),
    "fold": lambda reader, g, size: folded(reader.letters, g, size),
    "unfold_backward": lambda reader, g, shape: unfolded(reader.letters, g, shape),
    "axes_of": lambda reader, _, axis: axis,
    "scatter_add": lambda reader, x, g, index: scatter_add(x, g, index, reader.letters["axis"]),
}


def kept(reader, g, shape):
    """The shape of a gradient with the axes that were summed away, which its rows tell; or that fit."""
    if np.ndim(g) in (0, len(shape)):
        return np.shape(g)
    axis = reader.letters.get("axis")
    chosen = {a % len(shape) for a in (axis if isinstance(axis, list) else [axis])}
    return tuple(1 if i in chosen else n for i, n in enumerate(shape))


def scatter_add(x, g, index, axis):
    out = np.array(x)
    places = list(np.indices(index.shape))
    places[axis] = index
    np.add.at(out, tuple(places), g)
    return out


# ── rules in words ────────────────────────────────────────────────────────────────────────────────────────────────────


def windows(rows, size):
    """For each window: its place, and the places of its cells that are inside."""
    kernel, stride, dilation = rows["kernel"], rows["stride"], rows.get("dilation") or [1] * len(size)
    widths = rows.get("widths") or [[p, p] for p in rows["padding"]]
    length = [(n + a + b - d * (k - 1) - 1) // s + 1
              for n, (a, b), k, s, d in zip(size, widths, kernel, stride, dilation, strict=True)]
    for window in product(*map(range, length)):
        places = [(cell,
                   tuple(w * s + c * d - a for w, s, c, d, (a, _) in zip(window, stride, cell, dilation, widths,
                                                                         strict=True)))
                  for cell in product(*map(range, kernel))]
        yield window, [(cell, at) for cell, at in places if all(0 <= i < n for i, n in zip(at, size, strict=True))]


def to_largest(rows, shape):
    out, x, g = np.zeros(shape), rows["x"], rows["g"]
    count = len(rows["kernel"])
    for lead in np.ndindex(shape[:-count]):
        for window, cells in windows(rows, shape[-count:]):
            _, best = max(cells, key=lambda cell: x[(*lead, *cell[1])])
            out[(*lead, *best)] += g[(*lead, *window)]
    return out


def to_windows(rows, shape):
    out, g = np.zeros(shape), rows["g"]
    count = len(rows["kernel"])
    scale = 1 / prod(rows["kernel"])            # it is printed with four digits
    assert abs(scale - rows["scale"]) < 1e-3
    for lead in np.ndindex(shape[:-count]):
        for window, cells in windows(rows, shape[-count:]):
            for _, at in cells:
                out[(*lead, *at)] += scale * g[(*lead, *window)]
    return out


def to_input(rows, shape):
    out, g, w = np.zeros(shape), rows["g"], rows["w"]
    for window, cells in windows({**rows, "kernel": w.shape[2:]}, shape[2:]):
        for cell, at in cells:
            out[(..., *at)] += g[(..., *window)] @ w[(..., *cell)]
    return out


def to_kernel(rows, shape):
    out, g, x = np.zeros(shape), rows["g"], rows["x"]
    for window, cells in windows({**rows, "kernel": shape[2:]}, x.shape[2:]):
        for cell, at in cells:
            out[(..., *cell)] += g[(..., *window)].T @ x[(..., *at)]
    return out


def from_input(rows, shape):
    out, g, w = np.zeros(shape), rows["g"], rows["w"]
    for window, cells in windows({**rows, "kernel": w.shape[2:]}, g.shape[2:]):
        for cell, at in cells:
            out[(..., *window)] += g[(..., *at)] @ w[(..., *cell)].T
    return out


def to_turned_kernel(rows, shape):
    out, g, y = np.zeros(shape), rows["g"], rows["y"]
    for window, cells in windows({**rows, "kernel": shape[2:]}, g.shape[2:]):
        for cell, at in cells:
            out[(..., *cell)] += y[(..., *window)].T @ g[(..., *at)]
    return out


def folded(rows, g, size):
    out = np.zeros((*g.shape[:2], *size))
    for window, cells in windows({**rows, "kernel": g.shape[2:2 + len(size)]}, size):
        for cell, at in cells:
            out[(..., *at)] += g[(..., *cell, *window)]
    return out


def windows_of(reader, g):
    """All windows side by side, in the shape of what they are the gradient of."""
    out = np.zeros(reader.told.share.shape)
    for window, cells in windows({**reader.letters, "kernel": out.shape[2:2 + g.ndim - 2]}, g.shape[2:]):
        for cell, at in cells:
            out[(..., *cell, *window)] = g[(..., *at)]
    return out


def unfolded(rows, g, shape):
    out = np.zeros(shape)
    along, g = np.moveaxis(out, rows["axis"], -1), np.moveaxis(g, rows["axis"], -2)
    for i in range(g.shape[-2]):
        along[..., i * rows["step"]:i * rows["step"] + rows["size"]] += g[..., i, :]
    return out


WORDS = {"each g goes to the place of the largest element of its window": to_largest,
         "scale · each g, added to all places of its window": to_windows,
         "each g[n, o] · w[o, c], added to the window of x[n, c]": to_input,
         "Σ_n x[n, c] ⋆ g[n, o]: each window of x times its g": to_kernel,
         "Σ_c g[n, c] ⋆ w[o, c]: each window of g times w": from_input,
         "Σ_n g[n, c] ⋆ y[n, o]: each window of g times its y": to_turned_kernel,
         "Σ of g[n, o] over the batch n and all places": lambda rows, shape: rows["g"].sum(
             (0, *range(2, rows["g"].ndim)))}


def evaluated(told):
    """Evaluate a rule on the numbers that are shown; sum the result over the axes along which the input was
    broadcast.
    """
    shape = told.share.shape
    words = next((function for start, function in WORDS.items() if told.rule.startswith(start)), None)
    with np.errstate(all="ignore"):
        value = np.asarray(words(told.letters, shape) if words else Reader(told).rule(), float)
    value = value.reshape(shape) if told.op == "matmul" and value.size == told.share.size else value
    lead = value.ndim - len(shape)
    value = value.sum(tuple(range(lead))) if lead > 0 else value
    return value.sum(tuple(i for i, n in enumerate(shape) if n == 1 != value.shape[i]), keepdims=True)
