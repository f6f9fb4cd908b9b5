"""From kernels.rows, which says what each kernel takes, the C that the build includes: structs, tables for check.c, and
the list of kernels.

`write(folder)` makes declared.h, the structs; declared.inc, the same with pointers of a type T; tables.inc, what
check.c reads; entries.inc, the kernels.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROWS = Path(__file__).parent / "kernels.rows"
TYPES = {"T": "T", "int64": "int64_t", "int32": "int32_t", "bytes": "uint8_t", "float32": "float"}
NUMBERS = {"size", "count", "step", "flag", "integer", "real", "real?"}
MOST_FACTORS = 4                        # of an array, as check.h has room for
NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Argument:
    name: str
    kind: str                           # a type, or a class of numbers
    axes: list[str] = field(default_factory=list)
    written: bool = False
    optional: bool = False
    strided: bool = False
    counts: bool = False                # a number that a step of an optimizer counts up
    copied: bool = False
    over: list[str] = field(default_factory=list)
    limits: tuple[int, int] = (0, 0)

    @property
    def is_array(self) -> bool:
        return self.kind in TYPES

    @property
    def is_real(self) -> bool:
        return self.kind.startswith("real")


@dataclass
class Row:
    name: str
    kernels: list[str]
    of_rows: bool
    arguments: list[Argument] = field(default_factory=list)
    lets: list[tuple[str, str]] = field(default_factory=list)
    wheres: list[str] = field(default_factory=list)

    @property
    def arrays(self) -> list[Argument]:
        return [a for a in self.arguments if a.is_array]

    @property
    def entry(self) -> str:
        """Return the macro that lists a kernel: for both types, or for float32 alone."""
        return "ENTRY_OF_FLOATS" if any(a.kind == "float32" for a in self.arrays) else "ENTRY"

    @property
    def sizes(self) -> list[str]:
        """Return the names of sizes, in an order in which each can be computed."""
        given = [a.name for a in self.arguments if a.kind == "size"] + [name for name, _ in self.lets]
        of_axes = [name for a in self.arrays for axis in a.axes for name in NAME.findall(axis.split(":")[0])]
        return list(dict.fromkeys(given + of_axes))


def argument(word: str, kind: str, **more: object) -> Argument:
    name, marks = re.fullmatch(r"(\w+)([!?+&]*)", word).groups()  # type: ignore[union-attr]
    return Argument(name, kind, written="!" in marks, optional="?" in marks, counts="+" in marks, copied="&" in marks,
                    **more)  # type: ignore[arg-type]


def arrays(names: str, axes: str) -> list[Argument]:
    """Parse a line `names : axes`."""
    *words, tilde = [*names.split(), ""] if not names.rstrip().endswith("~") else names.split()
    shape, _, over = axes.partition(" over ")
    first, *rest = shape.split()
    kind, lengths = (first, rest) if first in TYPES else ("T", [first, *rest])
    return [argument(word, kind, axes=lengths, strided=tilde == "~", over=over.split()) for word in words]


def numbers(names: str, kind: str) -> list[Argument]:
    """Parse a line `names = class`."""
    if span := re.fullmatch(r"(\d+)\.\.(\d+)", kind):
        return [argument(word, "range", limits=(int(span[1]), int(span[2]))) for word in names.split()]
    if kind not in NUMBERS:
        raise SyntaxError(f"kernels.rows: no class of numbers is called {kind!r}")
    return [argument(word, kind) for word in names.split()]


def parse(text: str) -> list[Row]:
    rows: list[Row] = []
    for line in text.splitlines():
        line = line.partition("#")[0].rstrip()
        if not line:
            continue
        if not line.startswith(" "):
            head, equals, kernels = line.partition(" = ")
            name, _, of = head.partition(" of ")
            rows.append(Row(name, kernels.split() if equals else [name], of == "rows"))
        elif line.startswith("    let "):
            name, _, value = line[8:].partition(" = ")
            rows[-1].lets.append((name, value))
        elif line.startswith("    where "):
            rows[-1].wheres.append(line[10:])
        elif " : " in line:
            rows[-1].arguments += arrays(*line.split(" : ", 1))
        elif " = " in line:
            rows[-1].arguments += numbers(*line.strip().split(" = ", 1))
        else:
            rows[-1].kernels += line.split()
    for row in rows:
        check(row)
    return rows


def check(row: Row) -> None:
    names = ([a.name for a in row.arguments] + [name for name, _ in row.lets]
             + [s for s in row.sizes if s not in {a.name for a in row.arguments}
                   and s not in dict(row.lets)])
    if len(names) != len(set(names)):
        raise SyntaxError(f"kernels.rows: two things have one name in {row.name}: "
                          f"{sorted(n for n in names if names.count(n) > 1)}")
    if any(not a.strided and len([part for axis in a.axes for part in axis.split("*") if not part.isdigit()])
           > MOST_FACTORS for a in row.arrays):
        raise SyntaxError(f"kernels.rows: an array of {row.name} has more than {MOST_FACTORS} sizes")
    kinds = [a.is_array for a in row.arguments]
    if (kinds != sorted(kinds, reverse=True) or [a.is_real for a in row.arguments]
            != sorted(a.is_real for a in row.arguments)):
        raise SyntaxError(f"kernels.rows: {row.name} has arrays first, then integers, then real numbers")


# ── the C code ────────────────────────────────────────────────────────────────────────────────────────────────────────


def struct(row: Row, name: str, typed: bool) -> str:
    lines = [f"    {'' if a.written else 'const '}{TYPES[a.kind] if typed else 'void'} *{a.name};" for a in row.arrays]
    if row.of_rows:
        lines = ["    const struct Row *rows;", "    long count;"]
    longs = [] if row.of_rows else [*row.sizes]
    longs += [a.name for a in row.arguments if not a.is_array and not a.is_real and a.name not in longs]
    lines += [f"    long {', '.join(longs)};"] if longs else []
    reals = [a.name for a in row.arguments if a.is_real]
    lines += [f"    double {', '.join(reals)};"] if reals else []
    return "typedef struct " + name + " {\n" + "\n".join(lines) + "\n} " + name + ";\n"


def axis_of(row: Row, text: str) -> str:
    """Return an axis, `4*h` or `rows:row_step`, as an initializer for check.h."""
    length, _, step = text.partition(":")
    factor, sizes = 1, []
    for part in length.split("*"):
        if part.isdigit():
            factor *= int(part)
        else:
            sizes.append(row.sizes.index(part))
    at = "NO_STEP" if not step else "STEP_OF_1" if step == "1" else str([a.name for a in row.arguments].index(step))
    return (f"{{{factor}, {len(sizes)}, {{{', '.join(map(str, sizes))}}}, {at}}}" if sizes
            else f"{{{factor}, 0, {{0}}, {at}}}")


def entry(row: Row, a: Argument) -> str:
    kind = {"T": "OF_TYPE", "float32": "FLOATS", "real?": "REAL"}.get(a.kind, a.kind.upper())
    over = sum(1 << i for i, other in enumerate(row.arrays) if other.name in a.over)
    at = "0" if row.of_rows and a.is_array else f"offsetof({row.name}_call, {a.name})"
    marks = a.written, a.optional or a.kind == "real?", a.strided, a.counts, a.copied
    axes = ", ".join(axis_of(row, text) for text in a.axes) or "{0}"
    numbers = ", ".join(str(int(n)) for n in (*marks, over, *a.limits))
    return f'    {{"{a.name}", "{" ".join(a.axes)}", {kind}, {numbers}, {at}, {len(a.axes)}, {{{axes}}}}},'


def named(row: Row, expression: str) -> str:
    """Return a C expression with the row's names read from the struct."""
    known = {a.name for a in row.arguments} | set(row.sizes)
    return NAME.sub(lambda name: f"a->{name[0]}" if name[0] in known else name[0], expression)


def functions(row: Row) -> str:
    out = ""
    if row.lets:
        body = "".join(f" a->{name} = {named(row, value)};" for name, value in row.lets)
        out += f"static void {row.name}_let(void *call) {{ {row.name}_call *a = call;{body} }}\n"
    if row.wheres:
        body = "".join(f'    if (!({named(row, w)})) return "{w}";\n' for w in row.wheres)
        out += (f"static const char *{row.name}_where(const void *call)\n{{\n    const {row.name}_call *a = "
                f"call;\n{body}    return NULL;\n}}\n")
    return out


def tables(row: Row) -> str:
    arguments = "\n".join(entry(row, a) for a in row.arguments)
    sizes = [] if row.of_rows else row.sizes
    of_sizes = ", ".join(f'{{"{name}", offsetof({row.name}_call, {name})}}' for name in sizes) or '{"", 0}'
    return (f"static const Argument {row.name}_arguments[] = {{\n{arguments}\n}};\n"
            f"static const Size {row.name}_sizes[] = {{{of_sizes}}};\n")


def declaration(row: Row) -> str:
    let = f"{row.name}_let" if row.lets else "NULL"
    where = f"{row.name}_where" if row.wheres else "NULL"
    arrays_, sizes = len(row.arrays), 0 if row.of_rows else len(row.sizes)
    return (f'    {{"{row.name}", {row.name}_arguments, {len(row.arguments)}, {arrays_}, {row.name}_sizes, {sizes}, '
            f'{int(row.of_rows)}, '
            f"sizeof({row.name}_call), {let}, {where}}},")


def write(folder: Path) -> None:
    rows = parse(ROWS.read_text())
    note = "/* Made by native/rows.py from native/kernels.rows. */\n"
    structs = "".join(struct(row, f"{row.name}_call", typed=False) for row in rows)
    enum = "enum { " + ", ".join(f"ROW_{row.name}" for row in rows) + " };\n"
    union = "typedef union AnyCall { " + " ".join(f"{row.name}_call {row.name};" for row in rows) + " } AnyCall;\n"
    once = "".join(functions(row) + tables(row) for row in rows)
    once += "const Declaration declarations[] = {\n" + "\n".join(map(declaration, rows)) + "\n};\n"
    (folder / "declared.h").write_text(note + structs + enum + union)
    (folder / "tables.inc").write_text(note + once)
    typed = "".join(struct(row, f"NAME({name}_call)", typed=True) for row in rows for name in row.kernels)
    (folder / "declared.inc").write_text(note + typed)
    (folder / "entries.inc").write_text(note + "".join(f"{row.entry}({name}, {row.name})\n" for row in rows
                                                       for name in row.kernels))
