"""Calls of the functions of the compiled module itself, with any arguments.

A kernel's row (native/kernels.rows) says how a call is well formed: sizes that arrays share, and the numbers with them.
Most calls here are that, and then spoilt at some places; so the check of the row is met close to where it must hold.
All other functions get objects at random. Some calls run as programs (native/program.c), with other arrays than they
were made with.
"""
import importlib.util
import random
import re
import sys
from math import prod
from pathlib import Path

import numpy as np

from tensorgrad.runtime.native import native

NATIVE = Path(__file__).resolve().parents[2] / "native"
LAYOUTS = ["expanded", "overlapping", "sliced", "transposed", "reversed", "unaligned", "offset", "swapped", "readonly"]
DTYPES = ["f4", "f8", "f8", "f2", "i8", "i4", "u1", "i1", "?", "c8", "S4", "u8"]
DTYPE = {"int64": "i8", "int32": "i4", "bytes": "u1", "float32": "f4"}
OBJECTS = [text.strip() for text in """
    None; 0; 1; -1; 2**31; 2**63; -2**63; 2**80; 1.5; float('nan'); True; 'x'; 'map_exp'; 'two_add'; 'sgd'; b'xyz';
    bytearray(8); (); (1,); (None, None); []; [1]; {}; {1: 2}; object(); int; type; tg.Tensor; tg.ones(2);
    tg.ones(2, requires_grad=True); (tg.ones(2, requires_grad=True) * 2);
    (tg.ones(2, requires_grad=True) * 2).grad_fn; tg.ones(2).untyped_storage(); print; len; iter([]); ...;
    NotImplemented; np.float32(1); np.ones(3, 'f4'); np.ones((2, 3), 'f8'); np.ones(3, 'i8'); np.ones(0, 'f4');
    capsules[0]; capsules[1]; capsules[2]; memoryview(b'abc'); range(3); tg.float32; native; Awkward(); Odd();
    slice(1)
""".split(";")]
NUMBERS = [text.strip() for text in """
    -1; 0; 1; 2; 3; 7; 2**20; 2**31-1; 2**31; 2**32; 2**39+1; 2**40-1; 2**40; 2**61; 2**62; 2**63-1; -2**31;
    -2**40+1; -2**63; 2**63; 2**70; 1.5; None; 'x'; True; np.int64(2); np.float32(2); Awkward(); Odd()
""".split(";")]
POWERS = ["2**10", "2**15", "2**20", "2**23", "2**31", "2**32", "2**39", "2**39+1", "2**40-1"]
PROCESS = ("learn", "learn_steps", "results", "use_arrays", "use_memory", "set_threads", "fail_allocation")


class Awkward:
    """A number whose value is an error."""

    def __index__(self):
        raise ZeroDivisionError

    __float__ = __int__ = __len__ = __getattr__ = lambda self, *_: 1 / 0


class Odd:
    """A number that empties all lists that it finds when it is asked for its value."""

    def __index__(self):
        import gc
        for found in gc.get_objects():
            if (type(found) is list and found and type(found[0]) is tuple
                    and any(type(x) is np.ndarray for x in found[0])):
                found.clear()
        return 1

    def __float__(self):
        return float(self.__index__())


def names():
    """Return the names that programs use besides values.py."""
    from numpy._core import _multiarray_umath as core
    return {"Awkward": Awkward, "Odd": Odd, "programmed": programmed,
            "capsules": [core._ARRAY_API, core._UFUNC_API, np.random.MT19937(0).capsule]}


def rows():
    """The rows, by the names of their kernels."""
    if not (NATIVE / "rows.py").exists():
        return {}
    spec = importlib.util.spec_from_file_location("rows", NATIVE / "rows.py")
    sys.modules["rows"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {kernel: row for row in module.parse((NATIVE / "kernels.rows").read_text())
            for kernel in row.kernels if hasattr(native, kernel)}


ROWS = rows()
KERNELS = sorted(ROWS)
OTHERS = sorted(name for name in dir(native) if callable(getattr(native, name)) and not name.startswith("_")
                and name not in ROWS)


def programmed(kernel, arguments, seed):
    """Make a program of a call, and run it with arrays that fit the program's, or nearly."""
    rng, bases = random.Random(seed), {}
    written = [a.written for a in ROWS[kernel].arguments]
    for a, to in zip(arguments, [*written, *[False] * len(arguments)]):
        if type(a) is np.ndarray:
            base = a
            while type(base.base) is np.ndarray: base = base.base
            bases[id(base)] = base, to or bases.get(id(base), (0, False))[1]
    buffers = [(rng.choice((0, 0, 3)) if to else rng.choice((1, 2)), base.T if base.flags.f_contiguous else base)
               for base, to in bases.values()]
    if rng.random() < 0.2 and buffers:
        k = rng.randrange(len(buffers))
        buffers[k] = rng.choice(((rng.randint(0, 4), buffers[k][1]), (buffers[k][0], buffers[k][1][1:]), None))
    made = native.program(buffers, [(kernel, *arguments)] * rng.choice((1, 1, 2)))
    constants, inputs = ([other(rng, x) for kind, x in buffers if kind == wanted] for wanted in (2, 1))
    if (bound := made.bind(constants)) is NotImplemented or bound.run(inputs) is NotImplemented: return
    run = bound.start(inputs)
    run.go(0, 1)
    memory = np.frombuffer(run, np.uint8)
    memory[...] = rng.randint(0, 255)
    del bound, made
    run.go(rng.randint(-1, 1), rng.randint(0, 3))
    assert all(type(x) is np.ndarray for x in run.outputs())


def other(rng, x):
    """Return an array to replace another, which fits in most cases."""
    from tensorgrad.compiler.executable import _solid as solid
    change = rng.random()
    if change < 0.85: return solid(x.copy())
    return rng.choice((None, x.astype("f2"), x[:-1] if x.ndim else x, x.T, x.ravel()[::2], x[None], x.view(Matrix)))


class Matrix(np.ndarray):
    pass


def changes_the_process(text):
    return re.search(rf"native\.({'|'.join(PROCESS)})\(", text) is not None


def in_python(expression):
    """A formula of C over integers, as rows have it after `let`."""
    condition, _, values = expression.partition(" ? ")
    if values:
        yes, no = values.split(" : ")
        return f"(({in_python(yes)}) if ({condition}) else ({in_python(no)}))"
    return expression.replace("/", "//")


class Draw:
    def __init__(self, rng):
        self.rng, self.lines, self.arrays = rng, [], {}

    def amount(self):
        rng = self.rng
        return rng.randint(1, 5) if rng.random() < 0.85 else rng.choice((8, 16, 17, 31, 33, 64, 100))

    def sizes(self, row):
        """Draw the numbers of a valid call, as far as names determine what is valid."""
        rng, n = self.rng, {}
        for a in row.arguments:
            if not a.is_array:
                n[a.name] = {"flag": rng.randint(0, 1), "count": rng.choice((0, 0, 1, 2)),
                             "range": rng.randint(*a.limits), "integer": rng.choice((-100, 0, 1, 2)), "real": 0.5,
                             "real?": 0.5, "step": 1}.get(a.kind,
                                                          self.amount())
        if "oh" in n:
            for axis in "hw":
                n[f"k{axis}"], n[f"step_{axis}"], n[f"apart_{axis}"] = (rng.randint(1, 4), rng.randint(1, 3),
                                                                        rng.choice((1, 1, 2)))
                if row.name == "blocked_winograd": n[f"k{axis}"], n[f"step_{axis}"], n[f"apart_{axis}"] = 3, 1, 1
                n[axis] = max(n[axis], n[f"apart_{axis}"] * (n[f"k{axis}"] - 1) + 1 - 2 * n[f"before_{axis}"])
                room = n[axis] + 2 * n[f"before_{axis}"] - n[f"apart_{axis}"] * (n[f"k{axis}"] - 1) - 1
                n[f"o{axis}"] = room // n[f"step_{axis}"] + 1
                if n.get("back"): n[axis], n[f"o{axis}"] = n[f"o{axis}"], n[axis]
        if "groups" in n:
            of_group = "channels" if "channels" in n else "ins"
            n[of_group], n["outs"] = n[of_group] * n["groups"], n["outs"] * n["groups"]
        if "filled" in n: n["filled"] = 16 * n["outs"] - rng.randint(0, 15)
        if "planes" in n and "channels" in n: n["planes"] *= n["channels"]
        if row.name.startswith("group_norm"):
            n["n"], n["channels"] = (each := n["n"]) * n["places"], each * n["channels"]
        if row.name == "random_normal": n["n"] += 15
        for name, value in row.lets: n[name] = eval(in_python(value), {}, n)
        for name in row.sizes: n.setdefault(name, self.amount())
        if "edges" in n: n["edges"] = n["rows"] + 1
        if row.name == "loop":
            n["rows"] = n["n0"] * n["n1"] * n["n2"]
            for k in range(11): n[f"reach{k}"] = rng.choice((1, n["n"], n["rows"] * n["n"]))
            for k in range(4): n[f"size{k}"] = rng.choice((n["rows"], n["rows"] * n["n"], n["rows"] * n["n"]))
        return n

    def length(self, axis, n):
        found = 1
        for part in axis.split("*"): found *= int(part) if part.isdigit() else n[part]
        return found

    def array(self, a, n, dtype):
        """An array that fits, and the steps that it has where the row asks for them."""
        rng, layout, values = self.rng, "plain", "range"
        lengths, steps = zip(*(axis.partition(":")[::2] for axis in a.axes))
        shape = [self.length(axis, n) for axis in lengths]
        if a.kind in ("int64", "int32"):
            top = n.get("cells" if a.name == "places" else "n", 3)
            values = f"{'index' if rng.random() < 0.8 else 'outside'} {top}"
            if a.name == "program": return self.name(a.name, self.loop(n))
            if a.name == "order" and "steps" in n: return self.name(a.name, self.order(n))
            if a.name == "starts": return self.name(a.name, self.starts(n, DTYPE[a.kind]))
        if a.strided:
            layout = rng.choice(("plain", "plain", "transposed", "expanded", "sliced", "reversed"))
            if self.flags & set(steps) and layout != "expanded": layout = "plain"
            if layout != "plain" and steps[-1] == "1":
                layout = "expanded" if layout == "expanded" and len(shape) > 1 else "plain"
            if a.written and layout == "expanded": layout = "transposed" if steps[-1] != "1" else "plain"
            strides = self.strides(shape, layout)
            for step, stride in zip(steps, strides):
                if step in n: n[step] = stride
        elif self.told and rng.random() < 0.4:                          # only the number of elements counts
            shape = [prod(shape)]
        return self.name(a.name, self.written(shape, DTYPE.get(a.kind, dtype), layout, values))

    def strides(self, shape, layout):
        whole = [1] * len(shape)
        for k in range(len(shape) - 2, -1, -1): whole[k] = whole[k + 1] * shape[k + 1]
        if layout == "transposed":
            whole[0] = 1
            for k in range(1, len(shape)): whole[k] = whole[k - 1] * shape[k - 1]
        if layout == "expanded": whole[0] = 0
        if layout == "reversed": whole = [-step for step in whole]
        return [2 * step for step in whole] if layout == "sliced" else whole

    def order(self, n):
        """Steps of sequences: (first row, rows) of each."""
        first, found = 0, []
        for _ in range(n["steps"]):
            count = self.rng.randint(0, min(n["batch"], max(n["rows"] - first, 0)))
            found.append((first, count))
            first += count
        if self.rng.random() < 0.2:
            rows = n["rows"]
            found[-1] = self.rng.choice(((-1, 1), (0, rows + 1), (rows, 1), (2**62, 2**62), (1, -1), (-2**63, 1),
                                         (2**63 - 1, 1)))
        return f"np.array({found}, 'i8')"

    def starts(self, n, dtype):
        """Where the rows of a sparse matrix start."""
        found = sorted(self.rng.randint(0, n["count"]) for _ in range(n["edges"]))
        if self.rng.random() < 0.3:
            most = 2 ** (8 * int(dtype[1]) - 1) - 1
            found[self.rng.randrange(len(found))] = self.rng.choice((-1, n["count"] + 1, most, -most - 1))
        return f"np.array({found}, {dtype!r})"

    def loop(self, n):
        """A program of the kernel `loop`, which reads and writes the arrays that were drawn before."""
        rng, inputs, places = self.rng, [], [31]
        for k in range(11):
            name = f"x{k}" if k < 8 else f"b{k - 8}" if k < 10 else "i0"
            if name in self.arrays: places.append(16 + k)
            whole, row = n[f"reach{k}"] == n["rows"] * n["n"], n[f"reach{k}"] == n["n"]
            steps = [n["n1"] * n["n2"] * n["n"], n["n2"] * n["n"], n["n"], 1] if whole else [0, 0, 0, int(row)]
            inputs += [*steps, rng.randint(0, 1)]
        found = [name in self.arrays for name in ("y0", "y1", "y2", "z0")]
        forms = [there * (1 + (n[f"size{k}"] == n["rows"] and n["n"] > 1)) for k, there in enumerate(found)]
        rows = []
        for at in [rng.randrange(16) for _ in range(rng.randint(0, 6))] + [27 + k for k in range(4) if found[k]]:
            many, form, kinds = rng.random() < 0.2, forms[at - 27] if at >= 27 else 1, len(native.loop_steps.split())
            kind = kinds - rng.randint(1, 6) if many else rng.randrange(kinds - 6)
            rows += [kind, int(many or form == 2), at, *(rng.choice(places) for _ in range(4))]
            places.append(at)
        return f"np.array({[1, len(rows) // 7, *inputs, *forms, 2 ** 62 - 2 ** 52, *rows]}, 'i8')"

    def written(self, shape, dtype, layout="plain", values="range"):
        text = f"array(({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''}), {dtype!r}"
        return (text + (f", {layout!r}" if layout != "plain" or values != "range" else "")
                + (f", {values!r}" if values != "range" else "") + ")")

    def name(self, name, text):
        self.arrays[name] = text
        return name

    def spoilt_array(self, name, dtype):
        rng, text = self.rng, self.arrays[name]
        change = rng.random()
        if change < 0.1: return "None"
        if change < 0.2: return rng.choice(OBJECTS)
        other = rng.choice(list(self.arrays))
        if change < 0.4:
            return other + rng.choice(("", "", "[1:]", "[:-1]", ".T", "[::-1]", "[..., ::2]", ".ravel()[:1]",
                                       ".reshape(-1)", "[None]"))
        shape = [rng.choice((0, 1, 2, 3, 5, 40)) for _ in range(rng.randint(0, 4))]
        if change < 0.5 and text.startswith("array"):
            return re.sub(r"'[a-z?S]\d?'", repr(rng.choice(DTYPES)), text, count=1)
        if change < 0.7 and (found := re.match(r"array\(\(([\d, ]+)\)", text)):
            given = [int(n) for n in found[1].replace(" ", "").split(",") if n]
            k = rng.randrange(len(given))
            given[k] = max(given[k] + rng.choice((-1, -1, 1)), 0)
            return self.written(given, dtype)
        return self.written(shape, rng.choice((dtype, dtype, *DTYPES)), rng.choice(("plain", *LAYOUTS)),
                            rng.choice(("range", "wild", "nan")))

    def spoilt_number(self, text):
        rng = self.rng
        if rng.random() < 0.4 and re.fullmatch(r"-?\d+", text):
            return str(rng.choice((int(text) + 1, int(text) - 1, int(text) * 2, -int(text), 0)))
        return rng.choice(NUMBERS)

    def kernel(self, kernel):
        rng, row = self.rng, ROWS[kernel]
        n, dtype, given = self.sizes(row), rng.choice(("f4", "f8")), []
        self.told = any(a.kind == "size" for a in row.arguments)        # or else the shapes tell sizes
        self.flags = {a.name for a in row.arguments if a.kind == "flag"}
        if row.of_rows: return self.steps(kernel, row, n, dtype)
        for a in row.arguments:
            if a.is_array: given.append("None" if a.optional and rng.random() < 0.4 else self.array(a, n, dtype))
        numbers = [str(n[a.name]) for a in row.arguments if not a.is_array]
        arrays = len(given)
        given += numbers[:-1] if row.arguments[-1].kind == "real?" and rng.random() < 0.2 else numbers
        wrong = rng.choice((0, 0, 1, 1, 1, 2, 4))
        if rng.random() < 0.05:                                         # products and sums of these leave 64 bits
            given[arrays:] = [rng.choice(POWERS) if rng.random() < 0.6 else given_ for given_ in given[arrays:]]
        for _ in range(wrong):
            k = rng.randrange(len(given))
            given[k] = (self.spoilt_number(given[k]) if k >= arrays else self.spoilt_array(given[k], dtype)
                        if given[k] in self.arrays else rng.choice(OBJECTS))
        if rng.random() < 0.02: del given[rng.randrange(len(given))]
        if rng.random() < 0.02: given.append(rng.choice(OBJECTS))
        if rng.random() < 0.15:
            text = self.call(kernel, given)
            head, _, last = text.rpartition("\n")
            return f"{head}\nprogrammed({kernel!r}, [{', '.join(given)}], {rng.getrandbits(30)})".lstrip()
        return self.call(kernel, given)

    def steps(self, kernel, row, n, dtype):
        """Rows of a step of an optimizer."""
        rng, found = self.rng, []
        for r in range(rng.choice((0, 1, 1, 2, 3, 9))):
            shape, parts = [self.amount() for _ in range(rng.randint(0, 2))], []
            for a in row.arrays:
                parts.append("None" if a.optional and rng.random() < 0.4
                             else self.name(f"{a.name}{r}", self.written([] if a.counts else shape, dtype)))
            if rng.random() < 0.3:
                k = rng.randrange(len(parts))
                parts[k] = self.spoilt_array(parts[k], dtype) if parts[k] in self.arrays else rng.choice(OBJECTS)
            if rng.random() < 0.03: parts.pop()
            found.append(f"({', '.join(parts)},)" if rng.random() < 0.97 else rng.choice(OBJECTS))
        numbers = [str(n[a.name]) for a in row.arguments if not a.is_array]
        if rng.random() < 0.3:
            k = rng.randrange(len(numbers))
            numbers[k] = self.spoilt_number(numbers[k])
        return self.call(kernel, [f"[{', '.join(found)}]" if rng.random() < 0.97 else rng.choice(OBJECTS), *numbers])

    def call(self, function, given):
        text = f"native.{function}({', '.join(given)})"
        used = set(re.findall(r"[A-Za-z_]\w*", text))
        return "\n".join([*(f"{name} = {made}" for name, made in self.arrays.items() if name in used), text])

    def other(self, function):
        """Call a function that is no kernel, and then its result."""
        rng = self.rng
        given = [rng.choice(OBJECTS) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 13)))]
        if function == "map":
            arrays = [self.written([rng.choice((1, 2, 3, 64)) for _ in range(rng.randint(0, 3))],
                                   rng.choice(("f4", "f4", "f8", *DTYPES)),
                                   rng.choice(("plain", *LAYOUTS))) for _ in range(3)]
            inside = [rng.choice((*arrays, *arrays, rng.choice(OBJECTS))) for _ in range(rng.randint(0, 4))]
            named = rng.choice(("", "", f", out={arrays[0]}", f", out={rng.choice(OBJECTS)}", ", axis=1"))
            kernel = rng.choice(("map_exp", "map_gelu", "two_add", "two_lerp", "pull_relu", "softmax", "sgd"))
            before, least = rng.choice(("None", "np.add", "np.exp", "3")), rng.choice(("0", "1", "2", "-1", "2**40"))
            return f"native.map({kernel!r}, {before}, {least})({', '.join(inside)}{named if inside else ''})"
        text = f"found = native.{function}({', '.join(given)})"
        if changes_the_process(text):
            return text + "\ntg.ones(3, requires_grad=True).exp().sum().backward()"
        return (text + f"\nrepr(found), found == found\nif callable(found): "
                       f"found({', '.join(rng.choice(OBJECTS) for _ in range(rng.randint(0, 3)))})")


def program(seed):
    """The call of that number."""
    rng = random.Random(seed)
    draw = Draw(rng)
    return draw.kernel(rng.choice(KERNELS)) if KERNELS and rng.random() < 0.93 else draw.other(rng.choice(OTHERS))
