"""The steps of a forward and a backward in words and numbers: what text, table and page show."""
from __future__ import annotations

import linecache
import re
from collections.abc import Iterable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

from ..core.step import Operand, Reading
from ..core.sweep import StepBack
from ..core.tape import Output
from .formulas import BY_DEFINITION, ELSEWHERE, formulas
from .notation import INDEXED
from .notes import NOTES
from .tape import Tape
from .text import Value, clean, short, shown, values_of
from .textbook_gradients import Words
from .torch_names import details, subscript, title

AT_INDEX = ("get_item", "get_slice", "index", "index_put", "set_view", "view")
LONGEST = 48        # a formula with names of tensors in it may be so long; then it is written as a call
SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
NOT_KEPT = "stands for what the tape had no need to keep."
UNKNOWN = "…"       # an input that the tape did not keep


class Given(NamedTuple):
    """An operand of a rule: the rule's own name for it, the tensor's name, the numbers or the parameter, and its place
    on the tape, if it has one.
    """

    name: str
    tensor: str
    value: Value | str
    place: Any = None


class Lettered(NamedTuple):
    """A formula, and what its letters are: their names in the program, their numbers (None: not known), their places on
    the tape.
    """

    text: str
    labels: Mapping[str, str]
    numbers: Mapping[str, Any]
    places: Mapping[str, Any]


class Gives(NamedTuple):
    """The gradient of one input: the op's rule, the rule with the names of tensors, and with numbers; its value; the
    sum with the gradient that was there before."""

    input: str
    target: str
    rule: str
    named: str
    worked: str
    value: Value
    before: Value | None
    total: Value
    node: Any
    formula: Lettered


class ForwardStep(NamedTuple):
    """A step of the forward: `result` = `expression`, = `worked`, = `values`, one for each result (None: not known)."""

    number: int
    op: str
    result: str
    expression: str
    worked: str
    values: tuple[Value | None, ...]
    source: tuple[str, int, str] | None
    node: Any
    places: tuple[Any, ...]      # of the results, on the tape
    formula: Lettered | None     # of `expression`; None where that is a call
    group: tuple[str, ...]       # the path of the module that made it; () for none


class BackwardStep(NamedTuple):
    """A step back through an op: the gradients `incoming` of its results, the numbers that its rules are `given`, and
    the gradients that it `gives` to its inputs."""

    number: int
    op: str
    result: str
    expression: str
    incoming: tuple[tuple[str, Value | None], ...]
    given: tuple[Given, ...]
    rows: tuple[tuple[str, Value | str], ...]      # the same by the names that `named` has for it
    gives: tuple[Gives, ...]
    source: tuple[str, int, str] | None
    node: Any
    places: tuple[Any, ...]
    hooked: bool
    group: tuple[str, ...]       # the path of the module that made the step forward; () for none

    @property
    def needed(self) -> list[tuple[str, Value | None, Any]]:
        """(name, gradient, place) of the results whose gradients came back or that a rule needs: of a batch norm, not
        of its statistics.
        """
        places = self.places if len(self.incoming) > 1 else (self.node,)
        rules = " ".join(told.rule for told in self.gives)
        whole = not any(name in rules for name, _ in self.incoming)            # the rules speak of all of them, as g
        return [(name, value, place) for (name, value), place in zip(self.incoming, places, strict=True)
                if whole or value is not None or name in rules]


class Arrived(NamedTuple):
    """A leaf: what reaches it, and the .grad that it has already."""

    name: str
    gradient: Value
    before: Value | None
    node: Any


class Teller:
    """Puts the steps of a tape, and of the way back along it, into words and numbers.

    `names` is as `naming.names_of` finds them, `start` the gradient that the way back begins with.
    """

    def __init__(self, tape: Tape, names: Mapping[Any, str], start: Any) -> None:
        self.tape, self.names = tape, names
        self.grads = {leaf: None if tensor is None else tensor._grad for leaf, tensor in tape.leaves.items()}
        things = [start, *self.grads.values(), *tape.values.values(), *tape.arrived.values(),
                  *[value for given in tape.given.values() for value in given.values()],
                  *[o.value for step in tape.steps.values() for o in step.asked.values()],
                  *[g for step in tape.back for g in step.incoming],
                  *[g for step in tape.back for _, _, *shares in step.shares for g in shares]]
        ops = {node: step.op for node, step in tape.steps.items() if step.op is not None}
        own = {node: node.name().removesuffix("Backward") for node in tape.steps if node not in ops}
        params = {node: node.params for node in ops if node.params}
        opnames = [op.opname for op in ops.values()]
        self.seen = dict(zip(map(id, things), values_of(things)))          # as long as the tape is held, so are they
        arrays = [self.indices(node) for node in params]
        self.details = dict(zip(params, map(details, [ops[node].opname for node in params], params.values(), arrays)))
        self.called = (dict(zip(own, map(clean, own.values())))
                       | dict(zip(ops, map(title, opnames, map(params.get, ops)))))
        self.formulas = {node: formulas(op, {**absent(op, tape.steps[node]), **(node.params or {})})
                         for node, op in ops.items()}
        self.sources = {node: (note.file, note.line, linecache.getline(note.file, note.line).strip())
                        for node in tape.steps if (note := NOTES.get(node)) is not None}
        self.values: dict[Any, Value] = {place: self.seen[id(value)] for place, value in tape.values.items()}
        self.start: Value = self.seen[id(start)]

    def name(self, edge: Any, value: Any) -> str:
        """The name of a tensor that a step was given, by its place, or by its array if it needs no gradient; or ''."""
        return self.names.get(edge if edge is not None else id(getattr(value, "array", None)), "")

    def value(self, operand: Operand) -> Any:
        """A tensor or a number as a Value; a parameter as it is; None for one that was written over."""
        if operand.stale:
            return None
        tensor = operand.position >= 0 or hasattr(operand.value, "array")
        return self.seen[id(operand.value)] if tensor else operand.value

    def indices(self, node: Any) -> list[str]:
        """The index arrays of a step, by their names or, of a few numbers, these."""
        step, given = self.tape.steps[node], self.tape.given[node]
        arrays = [o for o in step.inputs if o.name.startswith("indices[")]
        return [self.name(o.edge, value := given.get(o.position)) or written(self.seen.get(id(value))) for o in arrays]

    def located(self, rule: str, node: Any, position: int = 0) -> str:
        """A rule or an expression, with the index of a step in the place of [index] or [⋯]."""
        op = self.tape.steps[node].op
        where = "" if op is None else self.details.get(node, {}).get("index") or part_of(op.opname, node, position)
        return type(rule)(rule.replace("[index]", where).replace("[⋯]", where)) if where else rule

    # ── forward ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def forward(self) -> list[ForwardStep]:
        """The forward, in the order of time."""
        made: dict[Any, list[Any]] = {}
        for place in self.tape.nodes:
            if type(place) is Output:
                made.setdefault(place.node, []).append(place)
        steps = []
        for number, (node, step) in enumerate(self.tape.steps.items(), 1):
            places = tuple(made.get(node) or [node])
            formula, expression = self.expression(node, step)
            with_numbers = "" if formula is None else worked(formula.text, formula.numbers)
            result, values = ", ".join([self.names[p] for p in places]), tuple([self.values.get(p) for p in places])
            steps.append(ForwardStep(number, self.called[node], result, expression, with_numbers, values,
                                     self.sources.get(node), node, places, formula, self.tape.homes[node][0]))
        return steps

    def expression(self, node: Any, step: Reading) -> tuple[Lettered | None, str]:
        """The formula that a step computes, if it is short, and the expression: this in the names of its inputs, or a
        call.
        """
        inputs: dict[str, str] = {}
        numbers: dict[str, Any] = {}
        given, op = self.tape.given[node], step.op
        for o in step.inputs:
            if o.edge is not None:
                inputs[o.name], numbers[o.name] = self.names[o.edge], self.values.get(o.edge)
            elif o.position in given:
                numbers[o.name] = self.seen[id(given[o.position])]
                inputs[o.name] = self.name(None, given[o.position]) or written(numbers[o.name])
            elif op is None or not op.composite:                  # of these, an input may be left out, like a bias
                inputs[o.name], numbers[o.name] = UNKNOWN, None
        call = trimmed(f"{self.called[node]}({', '.join(inputs.values())})")
        if op is None:
            return None, call
        if op.arity is None:                                      # any number of inputs have one name in the formula
            group = op.inputs[-1]
            members = ", ".join([text for name, text in inputs.items() if name.startswith(f"{group}[")])
            inputs[group] = f"[{members}]" if op.sequence else members
        if op.opname in AT_INDEX:
            return None, self.located(
                INDEXED[op.opname].format(*[text for name, text in inputs.items() if not name.startswith("indices[")]),
                node)
        formula = self.formulas[node].forward
        if (len(formula) > LONGEST or ", with " in formula or DEFINED.match(formula)
                or not set(op.inputs) <= set(WORD.findall(formula))):
            return None, call
        details = {name: text for name, text in self.details.get(node, {}).items() if len(text) <= 20}
        expression = trimmed(replaced(formula, details | inputs))
        places = {o.name: o.edge for o in step.inputs if o.edge is not None}
        told = Lettered(formula, details | inputs, numbers, places)
        return told, expression if len(expression) <= LONGEST else call

    # ── back ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def back(self, forward: Iterable[ForwardStep]) -> list[BackwardStep]:
        """The backward, in the order in which the engine takes the steps."""
        expressions = {step.node: step.expression for step in forward}
        return [self.step_back(number, step, expressions[step.node]) for number, step in enumerate(self.tape.back, 1)]

    def step_back(self, number: int, back: StepBack, expression: str) -> BackwardStep:
        node, step, hooks = back.node, self.tape.steps[back.node], back.node.hooks
        incoming = [self.seen[id(g)] for g in back.incoming]
        names = ["g"] if len(incoming) == 1 else [f"g{i}".translate(SUBSCRIPT) for i in range(len(incoming))]
        given = self.given(node, step)
        labels = {o.name: self.names[o.edge] for o in step.inputs if o.edge is not None}
        labels |= {g.name: label for g in given if (label := g.tensor or getattr(g.value, "number", ""))}
        gives = self.gives(back, step, labels)
        if any(t.named == t.rule and labels.keys() & set(WORD.findall(t.rule)) for t in gives):
            rows = {g.name if g.tensor in ("", g.name) else f"{g.name} is {g.tensor}": g.value for g in given}
        else:
            rows = {g.tensor or g.name: g.value for g in given if g.tensor or g.name not in labels}
        hooked = hooks is not None and any((hooks.tensor, hooks.before, hooks.after))
        result = ", ".join([name for place in step.results if (name := self.names.get(place, ""))]) or self.names[node]
        return BackwardStep(number, self.called[node], result, expression, tuple(zip(names, incoming)), tuple(given),
                            tuple(rows.items()), tuple(gives), self.sources.get(node), node, step.results, hooked,
                            self.tape.homes[node][0])

    def given(self, node: Any, step: Reading) -> list[Given]:
        """The operands of a step's rules, less those that say nothing new."""
        details, found = self.details.get(node, {}), []
        for o in step.asked.values():
            if not is_detail(o):
                value = self.value(o)
                if not isinstance(value, Value):
                    value = "written over since" if o.stale else details.get(o.name) or shown(value)
                found.append(Given(o.name, self.name(o.edge, o.value), value, o.edge))
        return found

    def gives(self, back: StepBack, step: Reading, labels: Mapping[str, str]) -> list[Gives]:
        """The gradients that a step gives to its inputs. `labels` says what stands in rules for operands."""
        single = type(back.node.dtype) is not tuple
        fixed = {o.name: o.value for o in step.asked.values() if o.edge is None and o.position >= 0}
        numbers = {o.name: self.value(o) for o in step.asked.values()}
        numbers |= {"g": self.seen[id(back.incoming[0])]} if single else {}
        places = ({o.name: o.edge for o in step.asked.values() if o.edge is not None}
                  | ({"g": back.node} if single else {}))
        found: list[Gives] = []
        defined: set[str] = set()
        for share in back.shares:
            name = step.inputs[share.position].name
            rule = self.rule(back.node, step, name, share.position)
            rule = once(rule if isinstance(rule, Words) else chosen(rule, fixed), defined)
            value, before, total = (self.seen[id(g)] for g in (share.gradient, share.before, share.total))
            with_numbers = worked(rule, numbers) if single and not isinstance(rule, Words) else ""
            called = named(rule, labels)
            found.append(Gives(name, self.names[share.edge], rule, called,
                               "" if with_numbers == value.number else with_numbers, value, before, total,
                               share.edge, Lettered(rule, {} if called == rule else labels, numbers, places)))
        return found

    def rule(self, node: Any, step: Reading, name: str, position: int) -> str:
        """The formula of the gradient of an input, for the parameters of the step, or where it is to be found."""
        if step.op is None:
            return f"{self.called[node]}.backward(g)"
        found = self.formulas[node]
        rule = self.located(found.rules.get(name.partition("[")[0], Words(BY_DEFINITION)), node, position)
        return "see {}, line {}".format(*found.source) if rule == ELSEWHERE else rule

    def arrived(self) -> list[Arrived]:
        """The gradients that reach the leaves."""
        return [Arrived(self.names[leaf], self.seen[id(g)], self.seen[id(self.grads[leaf])], leaf)
                for leaf, g in self.tape.arrived.items()]


def written(value: Any) -> str:
    """An input that has no name, as it stands in an expression: a few numbers, or the sign that there are more."""
    if isinstance(value, Value):
        return value.number or (value.text(20) if value.elements <= 4 else UNKNOWN)
    return "None" if value is None else UNKNOWN


def trimmed(call: str) -> str:
    """A call less the arguments at its end that were left out, like the weight of a cross_entropy.

    >>> trimmed("cross_entropy(x, y, None)")
    'cross_entropy(x, y)'
    """
    while call.endswith(", None)"):
        call = call.removesuffix(", None)") + ")"
    return call


def part_of(opname: str, node: Any, position: int) -> str:
    """Where the result of a `concat` or `stack` holds one of its inputs, as an index; '' for other ops."""
    if opname not in ("concat", "stack"):
        return ""
    axis = node.params.get("axis", 0) % len(node.shape)
    place: Any = position
    if opname == "concat":
        if any(e is None for e in node.edges[:position + 1]):
            return ""
        start = sum(e.shape[axis] for e in node.edges[:position])
        place = slice(start, start + node.edges[position].shape[axis])
    return subscript((*[slice(None)] * axis, place))


def once(rule: str, defined: set[str]) -> str:
    """A rule, without the definitions of its letters if a rule of this step before had them."""
    told, _, letters = rule.partition(", with ")
    if letters not in defined:
        defined.add(letters)
        return rule
    return type(rule)(told) if letters else rule


def absent(op: Any, step: Reading) -> dict[str, None]:
    """Return the inputs that a step was not given, like a bias or weights; none if the tape no longer knows."""
    return {o.name: None for o in step.inputs if o.edge is None and (
        o.value is None and not o.stale if o.name in step.asked else bool(op.composite))}


def is_detail(operand: Operand) -> bool:
    """Tell whether an operand says nothing that the reader does not see anyway."""
    return (operand.name in ("position", "view", "order", "template") or operand.name.endswith(("_shape", "_shapes"))
            or operand.name == "index" and operand.position < 0
            or operand.edge is None and (operand.value is None or operand.value is False))


def named(rule: str, labels: Mapping[str, str]) -> str:
    """A rule in the names of the tensors, unless it gets too long, or one is called like the gradient that comes in."""
    if isinstance(rule, Words) or rule.startswith("see ") or "g" in labels.values():
        return rule
    text = replaced(rule, {name: f"({label})" if label.startswith("−") else label for name, label in labels.items()})
    return text if len(text) <= 2 * LONGEST else rule


# ── formulas with something put in ────────────────────────────────────────────────────────────────────────────────────

# a result among several, or functions of functions: the op's own name says more
DEFINED = re.compile(r"[a-z_]{4,}\(([a-z_]{6,}\(|.*\)\[0\]$)")
WORD = re.compile(r"(?<![\w.])[A-Za-z_][A-Za-z0-9_]*(?![A-Za-z0-9_(])")      # a name, but not of a function


def replaced(formula: str, names: Mapping[str, str]) -> str:
    """A formula with other names for its inputs.

    >>> replaced("index(x, index)", {"x": "weight", "index": "i"})
    'index(weight, i)'
    """
    return WORD.sub(lambda word: names.get(word[0], word[0]), formula)


BRANCH = re.compile(r"([^()]*?) where (\w+) ([=≠<>≤≥]) (−?[\d.]+), else ")
COMPARE = {"=": eq, "≠": ne, "<": lt, ">": gt, "≤": le, "≥": ge}


def chosen(formula: str, values: Mapping[str, Any]) -> str:
    """A formula less the branches that these numbers rule out.

    >>> chosen("0 where b = 0, else g · b · a^(1 where b = 0, else b − 1)", {"b": 2})
    'g · b · a^(b − 1)'
    """
    start = 0
    while ", with " not in formula and (branch := BRANCH.search(formula, start)) is not None:
        start = branch.end()
        value = values.get(branch[2])
        value = value.kept.reshape(-1)[0].item() if isinstance(value, Value) and value.shape == () else value
        if type(value) not in (int, float):
            continue
        if COMPARE[branch[3]](value, float(branch[4].replace("−", "-"))):
            depth, end = 0, branch.end()
            while end < len(formula) and (depth or formula[end] not in "),"):
                depth += (formula[end] == "(") - (formula[end] == ")")
                end += 1
            formula = formula[:branch.start()] + branch[1] + formula[end:]
        else:
            formula = formula[:branch.start()] + formula[branch.end():]
        start = branch.start()
    return formula


def worked(formula: str, values: Mapping[str, Any]) -> str:
    """A formula with the numbers in it, if all of its inputs are single numbers.

    >>> worked("g · (b − a²)", {"g": Value.of(-2.0), "a": Value.of(3.0), "b": Value.of(0.5)})
    '−2 · (0.5 − 3²)'
    """
    formula = chosen(formula, values)
    words = set(WORD.findall(formula)) & set(values)
    single = all([isinstance(v, Value) and v.number or type(v) in (int, float) for v in map(values.get, words)])
    if not words or not single or ", with " in formula or "shape(" in formula:
        return ""

    def number(match: re.Match[str]) -> str:
        if match[0] not in values:
            return match[0]
        value: Any = values[match[0]]
        text = value.number if isinstance(value, Value) else short(value)
        before, after = formula[:match.start()].rstrip(), formula[match.end():]
        alone = (not before or before[-1] in "(,") and not after.startswith(("^", "²", "³"))
        return f"({text})" if text.startswith("−") and not alone else text
    result = WORD.sub(number, formula)
    return "" if result == formula else result
