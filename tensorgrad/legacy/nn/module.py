"""The base classes of `legacy.nn`: Module and Criterion, with everything that all rows share."""
from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from ... import api as tg
from .node import Node, nodes_of
from .tape import HandWritten, Tape, flat, grad_name, mapped

__all__ = ["Criterion", "Module"]


class Module:
    """A layer of 2016: it keeps its last `output` and `gradInput`, and its weights beside their gradients.

    forward(input) sets `output`; backward(input, gradOutput) sets `gradInput` and adds to `gradWeight`, `gradBias`. A
    subclass defines `compute(tape, input)` with today's functions, and the tape finds gradients, or it defines
    `updateOutput`, `updateGradInput` and `accGradParameters` by hand, as programs of 2016 do.

    >>> import tensorgrad as torch
    >>> from tensorgrad.legacy import nn
    >>> layer = nn.Square()
    >>> layer.forward(torch.tensor([1., 3.])), layer.backward(torch.tensor([1., 3.]), torch.ones(2))
    (tensor([1., 9.]), tensor([2., 6.]))
    """

    learned: tuple[str, ...] = ("weight", "bias")      # attributes that are learned, where a module has them
    buffers: tuple[str, ...] = ()                      # other tensors that follow the module's type
    # attributes that `clearState` empties besides output and gradInput
    held: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.output, self.gradInput = tg.Tensor(), tg.Tensor()
        self.train, self._type = True, "torch.FloatTensor"
        self._tape: Tape | None = None

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def compute(self, tape: Tape, input: Any) -> Any:
        """Compute the output for an input, with present functions."""
        raise NotImplementedError(f"{type(self).__name__} defines neither compute nor updateOutput")

    def record(self, tape: Tape, input: Any) -> Any:
        """Compute the output for an input, recorded on a tape. Containers call it for their modules."""
        own = tape.enter(self, input)
        if type(self).updateOutput is not Module.updateOutput:
            return HandWritten.apply(tape, self, own, *flat(own))
        out = self.compute(tape, own)
        self.output = mapped(lambda t: t.detach(), out)
        return out

    def updateOutput(self, input: Any) -> Any:
        """Compute and keep the output."""
        self._tape = Tape(self, input)
        return self.output

    def forward(self, input: Any) -> Any:
        """Return the output for an input: tensors, or lists of them for modules whose input or output is a table."""
        return self.updateOutput(input)

    def __call__(self, *given: Any) -> Any:
        """Return `forward(input)`; with a gradOutput also gradInput.

        Called with nodes or without arguments, return a node (`legacy.nngraph`).
        """
        nodes = nodes_of(given)
        if nodes is not None:
            return Node(self, *nodes)
        self.forward(given[0])
        return (self.output, self.backward(*given)) if len(given) > 1 else self.output

    def _recorded(self, input: Any) -> Tape:
        if self._tape is None or not self._tape.of(input):
            self._tape = Tape(self, input)
        return self._tape

    def updateGradInput(self, input: Any, gradOutput: Any) -> Any:
        """Compute and keep the gradient with respect to the input."""
        self._recorded(input).backward(gradOutput)
        return self.gradInput

    def accGradParameters(self, input: Any, gradOutput: Any, scale: float = 1) -> None:
        """Add the gradients of weights, times `scale`, to those of earlier calls."""
        if type(self).updateGradInput is not Module.updateGradInput:
            return
        tape = self._recorded(input)
        if tape.found is None or tape.found[0] is not gradOutput:
            kept = self.gradInput
            tape.backward(gradOutput)
            self.gradInput = kept
        tape.accumulate(scale)

    def backward(self, input: Any, gradOutput: Any, scale: float = 1) -> Any:
        """`updateGradInput` and `accGradParameters`. Errors: RuntimeError for a gradOutput unlike the output."""
        self.updateGradInput(input, gradOutput)
        self.accGradParameters(input, gradOutput, scale)
        return self.gradInput

    def backwardUpdate(self, input: Any, gradOutput: Any, lr: float) -> Any:
        """`updateGradInput`, and a step of gradient descent at once."""
        self.updateGradInput(input, gradOutput)
        self.accUpdateGradParameters(input, gradOutput, lr)
        return self.gradInput

    def accUpdateGradParameters(self, input: Any, gradOutput: Any, lr: float) -> None:
        """Move weights by −lr times their gradients, without changing accumulated gradients."""
        parameters, gradients = self.parameters()
        kept = [g.clone() for g in gradients]
        for g in gradients:
            g.zero_()
        self.accGradParameters(input, gradOutput, 1)
        for p, g, before in zip(parameters, gradients, kept):
            p.add_(g, alpha=-lr)
            g.copy_(before)

    # ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def children(self) -> list[Module]:
        """Return the modules in this one, which only containers have."""
        return []

    def listModules(self) -> list[Module]:
        """This module, and all in it."""
        return [self, *(m for child in self.children() for m in child.listModules())]

    def _weights(self) -> Iterator[tuple[Module, str]]:
        for module in self.listModules():
            for name in module.learned:
                if getattr(module, name, None) is not None:
                    yield module, name

    def parameters(self) -> tuple[list[Any], list[Any]]:
        """Return (weights, gradients) of this module and all in it."""
        found = list(self._weights())
        return [getattr(m, name) for m, name in found], [getattr(m, grad_name(name)) for m, name in found]

    def flattenParameters(self) -> tuple[Any, Any]:
        """Return all weights and all gradients as vectors, of which the modules' tensors become views.

        Weights that share memory occur once.
        """
        return self._flattened(lambda name: name), self._flattened(grad_name)

    def _flattened(self, spelled: Callable[[str], str]) -> Any:
        places = [(m, spelled(name)) for m, name in self._weights()]
        starts: dict[tuple[int, int, Any], int] = {}
        unique, total = [], 0
        for m, name in places:
            t = getattr(m, name)
            key = t.data_ptr(), t.numel(), t.dtype
            if key not in starts:
                starts[key] = total
                unique.append(t)
                total += t.numel()
        vector = tg.cat([t.reshape(-1) for t in unique]) if unique else tg.Tensor()
        for m, name in places:
            t = getattr(m, name)
            start = starts[t.data_ptr(), t.numel(), t.dtype]
            setattr(m, name, vector[start:start + t.numel()].view(t.shape))
        return vector

    def zeroGradParameters(self) -> None:
        """Set all accumulated gradients to zero."""
        for g in self.parameters()[1]:
            g.zero_()

    def updateParameters(self, learningRate: float) -> None:
        """Move weights by −learningRate times their gradients."""
        for p, g in zip(*self.parameters()):
            p.add_(g, alpha=-learningRate)

    def share(self, other: Module, *names: str) -> Module:
        """Share tensors ('weight', 'bias', 'gradWeight', …) with another module of the same structure; return this
        module."""
        for own, theirs in zip(self.listModules(), other.listModules(), strict=True):
            for name in names:
                if getattr(own, name, None) is not None:
                    setattr(own, name, getattr(theirs, name))
        return self

    def clone(self, *names: str) -> Module:
        """Return a copy, which shares the tensors of these names."""
        tapes = [(m, m._tape) for m in self.listModules()]
        try:
            for m, _ in tapes:
                m._tape = None
            made = copy.deepcopy(self)
        finally:
            for m, tape in tapes:
                m._tape = tape
        return made.share(self, *names)

    # ── the module and all in it ─────────────────────────────────────────────────────────────────────────────────────

    def apply(self, callback: Callable[[Module], Any]) -> None:
        """Call a function with this module and all in it."""
        for module in self.listModules():
            callback(module)

    def training(self) -> None:
        """Switch to training mode: dropout is active, batch norm uses the batch."""
        self.apply(lambda m: setattr(m, "train", True))

    def evaluate(self) -> None:
        """Switch to evaluation mode."""
        self.apply(lambda m: setattr(m, "train", False))

    def reset(self, stdv: float | None = None) -> None:
        """Reinitialize the weights."""
        for child in self.children():
            child.reset(stdv)

    def clearState(self) -> Module:
        """Drop outputs, gradients of inputs and the tape, for a small file; return this module."""
        for m in self.listModules():
            m._tape, m.output, m.gradInput = None, tg.Tensor(), tg.Tensor()
            for name in m.held:
                setattr(m, name, None)
        return self

    def type(self, type: str | None = None, tensorCache: Any = None) -> Any:
        """Return the name of the type of its tensors; with a name, convert them to that type and return the module."""
        if type is None:
            return self._type
        for m in self.listModules():
            m._tape, m._type = None, type
            for name, value in list(vars(m).items()):
                if (name in (*m.buffers, "output", "gradInput") or name in m.learned
                        or name in map(grad_name, m.learned)):
                    setattr(m, name, mapped(lambda t: t.type(type), value))
        return self

    def float(self) -> Module:
        """Convert to 32-bit floating point numbers."""
        return self.type("torch.FloatTensor")  # type: ignore[no-any-return]

    def double(self) -> Module:
        """Convert to 64-bit floating point numbers."""
        return self.type("torch.DoubleTensor")  # type: ignore[no-any-return]

    def cuda(self) -> Module:
        """Move to the current CUDA device."""
        return self.type("torch.cuda.FloatTensor")  # type: ignore[no-any-return]

    def findModules(self, typename: Any) -> tuple[list[Module], list[Module]]:
        """Return the modules of a class, given itself or by name ('nn.Linear', 'torch.legacy.nn.Linear'), and their
        containers."""
        wanted = typename.rpartition(".")[2] if isinstance(typename, str) else typename.__name__
        found, around = [], []
        if type(self).__name__ == wanted:
            found, around = [self], [self]
        for child in self.children():
            inside, containers = child.findModules(typename)
            found += inside
            around += [self if m is child else container for m, container in zip(inside, containers)]
        return found, around

    def replace(self, callback: Callable[[Module], Any]) -> Any:
        """Replace the modules inside by `callback(module)`, then return `callback(self)`."""
        self._replace_children(lambda child: child.replace(callback))
        return callback(self)

    def _replace_children(self, made: Callable[[Module], Any]) -> None:
        """Replace the modules inside; only containers have any."""

    def read(self, file: Any) -> None:
        """Load the state from a file."""
        vars(self).update(tg.load(file))

    def write(self, file: Any) -> None:
        """Save the state in a file."""
        tg.save(self.__getstate__(), file)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_tape": None}

    def __repr__(self) -> str:
        return f"nn.{type(self).__name__}{self._arguments()}"

    def _arguments(self) -> str:
        """Return the text that `repr` shows after the name."""
        return ""


class Criterion(Module):
    """A loss of 2016: `forward(input, target)` is a number, `backward(input, target)` the gradient with respect to the
    input.
    """

    learned = ()

    def __init__(self) -> None:
        super().__init__()
        self.output: Any = 0

    def compute(self, tape: Tape, input: Any, target: Any) -> Any:          # type: ignore[override]
        """Compute the loss with present functions."""
        raise NotImplementedError(f"{type(self).__name__} defines neither compute nor updateOutput")

    def record(self, tape: Tape, input: Any, target: Any) -> Any:           # type: ignore[override]
        """Compute the loss, recorded on a tape."""
        out = self.compute(tape, tape.enter(self, input), target)
        self.output = float(out.detach())
        return out

    def updateOutput(self, input: Any, target: Any) -> Any:                 # type: ignore[override]
        """Compute and keep the loss."""
        self._tape = Tape(self, input, target)
        return self.output

    def forward(self, input: Any, target: Any) -> Any:                      # type: ignore[override]
        """Return the loss as a number."""
        return self.updateOutput(input, target)

    __call__ = forward

    def updateGradInput(self, input: Any, target: Any) -> Any:
        """Compute and keep the gradient with respect to the input."""
        self._tape = Tape(self, input, target)
        self._tape.backward(tg.ones_like(self._tape.output))
        return self.gradInput

    def backward(self, input: Any, target: Any) -> Any:                     # type: ignore[override]
        """Return the gradient with respect to the input."""
        return self.updateGradInput(input, target)
