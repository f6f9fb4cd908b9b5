"""Steps of a forward and a backward, with each in-place write told as the program's statement."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..core.step import Operand
from ..core.sweep import StepBack
from ..core.unbroadcast import added
from .inplace_writes import Write, ends
from .step_texts import UNKNOWN, WORD, BackwardStep, ForwardStep, Gives, Lettered, Teller, written
from .tape import Tape
from .text import Value


class Statements(Teller):
    """A `Teller` that tells each write of `inplace_writes` as one step: `c[:, 1] *= 2`.

    `names` is from its `versioned`.
    """

    def __init__(self, tape: Tape, names: Mapping[Any, str], start: Any, writes: Mapping[Any, Write]) -> None:
        super().__init__(tape, names, start)
        self.writes = {node: write.named(self.spoken(node)) for node, write in writes.items()}
        self.ends = ends(writes)
        self.inner = {node: write for write in self.writes.values() for node in write.steps}

    def spoken(self, node: Any) -> Callable[[Operand], str]:
        """Return a function that writes an operand of a step by its name or, without one, its numbers."""
        given = self.tape.given[node]

        def say(operand: Operand) -> str:
            value = operand.value if operand.edge is not None else given.get(operand.position, operand.value)
            return (self.name(operand.edge, value)
                    or (UNKNOWN if value is None else written(self.seen.get(id(value), value))))
        return say

    def statement(self, write: Write) -> str:
        """Return the write as the program wrote it, with the tensor's final name."""
        return write.text(self.names[self.ends[write.last]], self.spoken(write.main))

    # ── forward ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def forward(self) -> list[ForwardStep]:
        steps = {step.node: step for step in super().forward()}
        told = [self.written(write, steps) if (write := self.writes.get(node)) is not None else step
                for node, step in steps.items()
                if node in self.writes or node not in self.inner]
        return [step._replace(number=number) for number, step in enumerate(told, 1)]

    def written(self, write: Write, steps: Mapping[Any, ForwardStep]) -> ForwardStep:
        """Tell a write in the forward: the tensor before it, with the new value at the index."""
        before = UNKNOWN if write.target is None else self.names[write.target]
        value = written_value(write, steps) if write.value is not None else self.spoken(write.last)(write.operands[0])
        end = steps[write.last]
        return end._replace(op=self.statement(write), expression=f"{before} with {write.where} = {value}", formula=None,
                            worked="")

    # ── back ──────────────────────────────────────────────────────────────────────────────────────────────────────────

    def back(self, forward: Iterable[ForwardStep]) -> list[BackwardStep]:
        expressions = ({step.node: step.expression for step in super().forward()}
                       | {step.node: step.expression for step in forward})
        taken: dict[Any, list[StepBack]] = {}
        for step in self.tape.back:
            write = self.inner.get(step.node)
            taken.setdefault(step.node if write is None else write.last, []).append(step)
        return [self.written_back(number, self.writes[node], steps, expressions) if node in self.writes
                else self.step_back(number, steps[0], expressions[node])
                for number, (node, steps) in enumerate(taken.items(), 1)]

    def written_back(self, number: int, write: Write, steps: list[StepBack],
                     expressions: Mapping[Any, str]) -> BackwardStep:
        """Tell a write in the backward: its gradient at the index goes to the written value, the rest to the old
        one.
        """
        ends = {step.node: step for step in steps}
        end = self.step_back(number, steps[0], expressions[write.last])
        value = ends.get(write.value)
        made = None if value is None else self.step_back(number, value, expressions[write.value])
        at = f"g{write.where}"
        gives, inner = [], "0"
        for told in () if made is None else made.gives:
            rule, named = (type(text)(WORD.sub(lambda word: at if word[0] == "g" else word[0], text))
                           for text in (told.rule, told.named))
            if told.node is write.part:
                inner = "0" if named.startswith("zeros(") else named
            else:
                gives.append(told._replace(rule=rule, named=named, worked="",
                                           formula=told.formula._replace(text=named, labels={})))
        if write.value is None:
            gives += [told._replace(formula=Lettered(told.named, {}, {}, {}))
                      for told in end.gives if told.node is not write.target]
        if write.target is not None:
            # `+=` at arrays of indices: the old tensor gets all of g
            adds = write.value is None and write.sign == "+="
            gives.insert(0, self.kept(write, steps, "g" if adds else f"g with {write.where} = {inner}"))
        return end._replace(op=self.statement(write), result=self.names[write.last], expression=expressions[write.last],
                            node=write.last, given=() if made is None else made.given,
                            rows=() if made is None else made.rows,
                            gives=tuple(gives),
                            hooked=end.hooked or made is not None and made.hooked,
                            source=end.source or (made and made.source) or None)

    def kept(self, write: Write, steps: list[StepBack], rule: str) -> Gives:
        """Sum the shares of a write's steps in the gradient of the tensor before it."""
        shares = [share for step in steps for share in step.shares if share.edge is write.target]
        gradient = shares[0].gradient
        for share in shares[1:]:
            gradient = added(write.target._storage.xp, gradient, share.gradient)
        before = self.seen[id(shares[0].before)]
        total = self.seen[id(shares[-1].total)]
        value = total if before is None else Value.of(gradient)
        return Gives("x", self.names[write.target], rule, rule, "", value, before, total, write.target,
                     Lettered(rule, {}, {}, {}))


def written_value(write: Write, steps: Mapping[Any, ForwardStep]) -> str:
    """Return the written value as an expression."""
    if write.fill is not None:
        return f"{write.fill:g}".replace("-", "−")
    made = steps[write.value]
    return made.expression.partition(", ")[2].removesuffix(")") if made.op == "copy_" else made.expression
