"""The steps of a forward and a backward in words and numbers: what text, table and page show."""
from __future__ import annotations

import re
from collections.abc import Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

from ..core.tape import Leaf, Output
from .formulas import ELSEWHERE, formulas
from .naming import Names
from .steps import Backward, Operand, Step, input_of, op_of
from .text import Value, clean, short, shown

LONGEST = 48        # a formula with names of tensors in it may be so long; then it is written as a call
WHOLE = "one kernel for the whole op"
SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
NOT_KEPT = "stands for what the tape had no need to keep."
UNKNOWN = "…"       # an input that the tape did not keep


class Given(NamedTuple):
    """What a rule was given: its own name for it, the tensor's name, the numbers or the parameter."""

    name: str
    tensor: str
    value: Value | str


class Gives(NamedTuple):
    """What one input gets: the op's rule, with the names of tensors, with numbers; the result; the sum with what was there before."""

    input: str
    target: str
    rule: str
    named: str
    worked: str
    value: Value
    before: Value | None
    total: Value
    node: Any


class ForwardStep(NamedTuple):
    """One step of the forward: `result` = `expression`, = `worked`, = `values`, one for each result (None: not known any more)."""

    number: int
    op: str
    result: str
    expression: str
    worked: str
    values: tuple[Value | None, ...]
    source: tuple[str, int, str] | None
    node: Any
    places: tuple[Any, ...]      # of the results, on the tape


class BackwardStep(NamedTuple):
    """One step back through an op: the gradients `incoming` of its results, the numbers that its rules are `given`, and what they give."""

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


class Arrived(NamedTuple):
    """A leaf: what reaches it, and the .grad that it has already."""

    name: str
    gradient: Value
    before: Value | None
    node: Any


def op_name(node: Any) -> str:
    """What a step is called: as in the table of ops, or a Function's own name."""
    op = op_of(node)
    return clean(node.name().removesuffix("Backward")) if op is None else op.opname


# ── forward ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def forward_steps(nodes: list[Any], names: Names, values: Mapping[Any, Value], constants: Mapping[Any, Any], sources: Mapping[Any, Any]) -> list[ForwardStep]:
    """The forward, in the order of time."""
    outputs: dict[Any, list[Any]] = {}
    for node in nodes:
        if type(node) is Output:
            outputs.setdefault(node.node, []).append(node)
    steps: list[ForwardStep] = []
    for node in nodes:
        if type(node) in (Leaf, Output):
            continue
        places = tuple(outputs.get(node) or [node])
        expression, with_numbers = expression_of(node, names, values, constants[node])
        steps.append(ForwardStep(len(steps) + 1, op_name(node), ", ".join(map(names, places)), expression, with_numbers, tuple(map(values.get, places)),
                                 sources.get(node), node, places))
    return steps


def expression_of(node: Any, names: Names, values: Mapping[Any, Value], constants: Mapping[int, Any]) -> tuple[str, str]:
    """What a step computes, with the names of its inputs, and, if these are single numbers, with those."""
    op = op_of(node)
    inputs: dict[str, str] = {}
    numbers: dict[str, Any] = {}
    for position, e in enumerate(node.edges):
        if e is None and position not in constants and op is not None and op.composite:
            continue                                          # an input that may be left out, like a bias
        name, value = input_of(node, position), values.get(e) if e is not None else constants.get(position)
        inputs[name], numbers[name] = names(e if e is not None else value), value
        if e is None and position in constants:
            numbers[name] = value = None if value is None else Value.of(value)
            inputs[name] = inputs[name] or ("None" if value is None else value.text(20) if value.elements <= 4 else UNKNOWN)
        inputs[name] = inputs[name] or UNKNOWN
    call = f"{op_name(node)}({', '.join(inputs.values())})"
    if op is None:
        return call, ""
    if op.arity is None:                                      # any number of inputs have one name in the formula
        group = op.inputs[-1]
        members = ", ".join(text for name, text in inputs.items() if name.startswith(f"{group}["))
        inputs[group] = f"[{members}]" if op.sequence else members
    formula = formulas(op, node.params).forward
    if len(formula) > LONGEST or ", with " in formula or not set(op.inputs) <= set(WORD.findall(formula)):
        return call, ""
    parameters = {name: text for name, value in (node.params or {}).items() if len(text := shown(value)) <= 20}
    expression = replaced(formula, parameters | inputs)
    return (expression if len(expression) <= LONGEST else call), worked(formula, numbers)


# ── back ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def backward_steps(found: Backward, names: Names, expressions: Mapping[Any, str], sources: Mapping[Any, Any]) -> list[BackwardStep]:
    """The backward, in the order in which the engine takes the steps."""
    return [backward_step(number, step, names, expressions[step.node], sources) for number, step in enumerate(found.steps, 1)]


def backward_step(number: int, step: Step, names: Names, expression: str, sources: Mapping[Any, Any]) -> BackwardStep:
    node, several = step.node, type(step.node.dtype) is tuple
    places = tuple(r and r() for r in node.results) if several else (node,)
    incoming = tuple((f"g{i}".translate(SUBSCRIPT) if several and len(step.incoming) > 1 else "g", value) for i, value in enumerate(step.incoming))
    given = tuple(Given(o.name, names(o.tensor), told(o)) for o in step.operands if not is_detail(o))
    fixed = {o.name: o.value for o in step.operands if isinstance(o.tensor, (int, float))}
    numbers = {o.name: o.value for o in step.operands} | ({} if several else {"g": step.incoming[0]})
    labels = {input_of(node, i): name for i, e in enumerate(node.edges) if (name := names(e))}
    labels |= {g.name: label for g in given if (label := label_of(g))}
    gives = []
    for share in step.shares:
        rule = chosen(rule_of(node, share.input), fixed)
        with_numbers = "" if several else worked(rule, numbers)
        gives.append(Gives(share.input, names(share.target), rule, named(rule, labels), with_numbers * (with_numbers != share.value.text()),
                           share.value, share.before, share.total, share.target))
    if any(give.rule == WHOLE or give.named == give.rule and labels.keys() & set(WORD.findall(give.rule)) for give in gives):
        rows = {g.name if g.tensor in ("", g.name) else f"{g.name} is {g.tensor}": g.value for g in given}
    else:
        rows = {g.tensor or g.name: g.value for g in given if g.tensor or g.name not in labels}
    hooked = node.hooks is not None and any((node.hooks.tensor, node.hooks.before, node.hooks.after))
    result = ", ".join(filter(None, map(names, places))) or names(node)
    return BackwardStep(number, op_name(node), result, expression, incoming, given, tuple(rows.items()), tuple(gives), sources.get(node), node, places, hooked)


def rule_of(node: Any, name: str) -> str:
    """The formula of the gradient of an input, for the parameters of the step, or where it is to be found."""
    op = op_of(node)
    if op is None:
        return f"{op_name(node)}.backward(g)"
    found = formulas(op, node.params)
    rule = found.rules.get(name.partition("[")[0], WHOLE)
    return "see {}, line {}".format(*found.source) if rule == ELSEWHERE else rule


def label_of(given: Given) -> str:
    """What stands in a formula for what a rule was given: the tensor's name, or the number."""
    return given.tensor or (given.value.text() if isinstance(given.value, Value) and given.value.shape == () else "")


def named(rule: str, labels: Mapping[str, str]) -> str:
    """A rule in the names of the tensors, unless it gets too long, or one is called like the gradient that comes in."""
    if rule == WHOLE or rule.startswith("see ") or "g" in labels.values():
        return rule
    text = replaced(rule, {name: f"({label})" if label.startswith("−") else label for name, label in labels.items()})
    return text if len(text) <= 2 * LONGEST else rule


def told(operand: Operand) -> Value | str:
    if operand.value is None and operand.tensor is not None:
        return "written over since"
    return operand.value if isinstance(operand.value, Value) else shown(operand.value)


def is_detail(operand: Operand) -> bool:
    """Whether an operand says nothing that the reader does not see anyway."""
    return (operand.name in ("position", "view", "order") or operand.name.endswith(("_shape", "_shapes"))
            or operand.tensor is None and (operand.value is None or operand.value is False))


# ── formulas with something put in ────────────────────────────────────────────────────────────────────────────────────

WORD = re.compile(r"(?<![\w.])[A-Za-z_][A-Za-z0-9_]*")


def replaced(formula: str, names: Mapping[str, str]) -> str:
    """A formula with other names for its inputs."""
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
    if not words or ", with " in formula or "shape(" in formula or any(not (isinstance(v, Value) and v.scalar and v.shape == () or type(v) in (int, float))
                                                for v in map(values.get, words)):
        return ""

    def number(match: re.Match[str]) -> str:
        if match[0] not in values:
            return match[0]
        value: Any = values[match[0]]
        text = value.text() if isinstance(value, Value) else short(value)
        before, after = formula[:match.start()].rstrip(), formula[match.end():]
        alone = (not before or before[-1] in "(,") and not after.startswith(("^", "²", "³"))
        return f"({text})" if text.startswith("−") and not alone else text
    result = WORD.sub(number, formula)
    return "" if result == formula else result
