"""Einstein's summation: products of tensors by subscripts, through permutations and matrix products."""
from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from .._tensor import Tensor
from ..advice import misfit
from ..core.dispatch import SCALAR_TYPES, xp
from ._register import public
from .matrix import arranged

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ELLIPSIS = "."     # in parsed subscripts; its axes get the labels ".0", ".1", … counted from the last


@public(method=False)
def einsum(*args: Any) -> Tensor:
    """Σ of products of operands over the subscripts that the output lacks.

    einsum('ij,jk->ik', a, b) or einsum(a, [0, 1], b, [1, 2], [0, 2]). Repeated subscripts of one operand take its
    diagonal, '...' means axes that broadcast; without '->' the output has the subscripts that occur once, in
    alphabetical order.

    Input: an axis for each subscript of a tensor; equal subscripts mean equal sizes, or 1, which broadcasts
    Output: an axis for each subscript of the output
    Errors: RuntimeError if the subscripts do not fit the operands' axes or sizes, the output has a subscript twice or
        one that no operand has, or dtypes differ where products are summed; ValueError without operands, or for a
        number outside [0, 52)
    https://pytorch.org/docs → torch.einsum

    >>> import tensorgrad as torch
    >>> a = torch.tensor([[1., 2.], [3., 4.]])
    >>> torch.einsum('ij,j->i', a, torch.tensor([1., 1.])), torch.einsum('ii', a)
    (tensor([3., 7.]), tensor(5.))
    """
    if len(args) < 2 or len(args) == 2 and isinstance(args[1], (list, tuple)) and not args[1]:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand "
                         "and its subscripts list")
    equation, operands = (args[0], args[1:]) if isinstance(args[0], str) else _from_lists(args)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    inputs, output = _parsed(equation, tuple(x.array.ndim for x in operands))
    parts = [_diagonals(x, labels, i) for i, (x, labels) in enumerate(zip(operands, inputs, strict=True))]
    sizes = _sizes(parts)
    return _contracted([_squeezed(x, labels, sizes) for x, labels in parts], output, sizes)


# ── reading the equation ──────────────────────────────────────────────────────────────────────────────────────────────


def _from_lists(args: Any) -> tuple[str, list[Any]]:
    """The form with lists of numbers, as an equation."""
    def letters(numbers: Any) -> str:
        for n in numbers:
            if n is not Ellipsis and not 0 <= n < 52:
                raise ValueError(f"einsum(): the subscript {n} is not within the valid range [0, 52)")
        return "".join("..." if n is Ellipsis else LETTERS[n] for n in numbers)
    operands, lists = list(args[::2]), [letters(numbers) for numbers in args[1::2]]
    output = f"->{letters(operands.pop())}" if len(args) % 2 else ""
    return ",".join(lists) + output, operands


@lru_cache(256)
def _parsed(equation: str, ndims: tuple[int, ...]) -> tuple[list[list[str]], list[str]]:
    """Return the labels of each operand's axes, and the output's."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = [_labels(term, f"for operand {i}", equation) for i, term in enumerate(left.split(","))]
    if len(terms) > len(ndims):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(terms) < len(ndims):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    widest = 0
    for i, (labels, ndim) in enumerate(zip(terms, ndims, strict=True)):
        missing = ndim - len(labels) + (ELLIPSIS in labels)
        if missing < 0 or missing and ELLIPSIS not in labels:
            raise RuntimeError(f"einsum(): the number of subscripts in the equation "
                               f"({len(labels) - (ELLIPSIS in labels)}) " + (
                f"is more than the number of dimensions ({ndim}) for operand {i}" if ELLIPSIS in labels else
                f"does not match the number of dimensions ({ndim}) for operand {i} and no ellipsis was given"))
        terms[i] = _expanded(labels, missing)
        widest = max(widest, missing if ELLIPSIS in labels else 0)
    if not arrow:
        every = [label for labels in terms for label in labels]
        return terms, [*_expanded([ELLIPSIS], widest),
                       *sorted(s for s in set(every) if every.count(s) == 1 and s[0] != ELLIPSIS)]
    output = _labels(right, "in the output", equation)
    for s in output:
        if output.count(s) > 1:
            raise RuntimeError(f"einsum(): output subscript {s} appears more than once in the output")
        if s != ELLIPSIS and not any(s in labels for labels in terms):
            raise RuntimeError(f"einsum(): output subscript {s} does not appear in the equation for any input operand")
    return terms, _expanded(output, widest)


def _labels(term: str, where: str, equation: str) -> list[str]:
    labels = list(term.replace("...", ELLIPSIS, 1))
    if labels.count(ELLIPSIS) > ("..." in term):
        raise RuntimeError(f"einsum(): found '.' {where} that is not part of any ellipsis" if "..." not in term else
                           f"einsum(): found '.' {where} for which an ellipsis was already found")
    for s in labels:
        if s != ELLIPSIS and s not in LETTERS:
            raise RuntimeError(f"einsum(): invalid subscript given at index {equation.index(s)} in the equation "
                               "string, subscripts must be in [a-zA-Z]")
    return labels


def _expanded(labels: list[str], count: int) -> list[str]:
    """The ellipsis replaced by a label for each of its axes."""
    return [t for s in labels for t in ([f".{k}" for k in reversed(range(count))] if s == ELLIPSIS else [s])]


# ── operands ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Part = tuple[Tensor, list[str]]     # an operand and the labels of its axes, all different


def _diagonals(x: Any, labels: list[str], operand: int) -> Part:
    """The diagonal along the axes of each label that is repeated."""
    for s in dict.fromkeys(labels):
        while labels.count(s) > 1:
            i = labels.index(s)
            j = labels.index(s, i + 1)
            m, n = x.array.shape[i], x.array.shape[j]
            if m != n:
                raise RuntimeError(f"einsum(): subscript {s} is repeated for operand {operand} but the sizes don't "
                                   f"match, {n} != {m}")
            x = xp.diagonal(x, offset=0, axis1=i, axis2=j)
            labels = [t for k, t in enumerate(labels) if k not in (i, j)] + [s]
    return x, labels


def _sizes(parts: list[Part]) -> dict[str, int]:
    """Return the length of each label's axes; axes of length 1 broadcast."""
    sizes: dict[str, int] = {}
    for i, (x, labels) in enumerate(parts):
        for s, n in zip(labels, x.array.shape, strict=True):
            if sizes.setdefault(s, n) != n and 1 not in (n, sizes[s]):
                raise misfit(f"einsum(): subscript {s} has size {n} for operand {i} which does not broadcast with "
                                   f"previously seen size {sizes[s]}")
            sizes[s] = n if sizes[s] == 1 else sizes[s]
    return sizes


def _squeezed(x: Any, labels: list[str], sizes: dict[str, int]) -> Part:
    """An operand without the axes along which it is broadcast."""
    left = [s for s, n in zip(labels, x.array.shape, strict=True) if n == sizes[s]]
    return (x, labels) if len(left) == len(labels) else (xp.reshape(x, tuple(sizes[s] for s in left)), left)


# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _contracted(parts: list[Part], output: list[str], sizes: dict[str, int]) -> Any:
    """Multiply operands pair by pair, always the pair whose product grows least."""
    while len(parts) > 1:
        i, j = (0, 1) if len(parts) == 2 else _cheapest(parts, output, sizes)
        b, a = parts.pop(j), parts.pop(i)
        needed = set(output).union(*(labels for _, labels in parts))
        parts.append(_product(a, b, needed, sizes))
    x, labels = _summed(parts[0], set(output))
    x = arranged(x, [labels.index(s) for s in output if s in labels])
    shape = tuple(sizes[s] for s in output)
    return (x if x.array.shape == shape
            else xp.broadcast_to(xp.reshape(x, tuple(sizes[s] if s in labels else 1 for s in output)), shape=shape))


def _cheapest(parts: list[Part], output: list[str], sizes: dict[str, int]) -> tuple[int, int]:
    def growth(i: int, j: int) -> int:
        others = set(output).union(*(labels for k, (_, labels) in enumerate(parts) if k not in (i, j)))
        result = prod(sizes[s] for s in set(parts[i][1]).union(parts[j][1]) if s in others)
        return result - parts[i][0].array.size - parts[j][0].array.size
    return min(((i, j) for j in range(len(parts)) for i in range(j)), key=lambda pair: growth(*pair))


def _summed(part: Part, needed: set[str]) -> Part:
    """Sum an operand over the axes that are not needed any more."""
    x, labels = part
    gone = tuple(i for i, s in enumerate(labels) if s not in needed)
    return (xp.sum(x, axis=gone, keepdims=False), [s for s in labels if s in needed]) if gone else part


def _product(a: Part, b: Part, needed: set[str], sizes: dict[str, int]) -> Part:
    """Multiply two operands and sum over the labels that only they need: a stack of matrix products."""
    (x, m), (y, n) = _summed(a, needed.union(b[1])), _summed(b, needed.union(a[1]))
    stack = [s for s in m if s in n and s in needed]
    inner = [s for s in m if s in n and s not in needed]
    rows, columns = [s for s in m if s not in n], [s for s in n if s not in m]
    x, y = (arranged(x, [m.index(s) for s in stack + rows + inner]),
            arranged(y, [n.index(s) for s in stack + inner + columns]))
    labels = stack + rows + columns

    def length(labels: list[str]) -> int:
        return prod(sizes[s] for s in labels)
    lead = tuple(sizes[s] for s in stack)
    if not inner:
        product = xp.multiply(_shaped(x, (*lead, *(sizes[s] for s in rows), *(1,) * len(columns))),
                              _shaped(y, (*lead, *(1,) * len(rows), *(sizes[s] for s in columns))))
    elif x.array.dtype != y.array.dtype:
        raise RuntimeError(f"expected scalar type {SCALAR_TYPES[x.dtype.name]} but found {SCALAR_TYPES[y.dtype.name]}")
    elif not rows and not columns:
        product = xp.sum(xp.multiply(x, y), axis=tuple(range(len(lead), len(lead) + len(inner))), keepdims=False)
    else:
        front = (length(stack),) if stack else ()
        product = xp.matmul(_shaped(x, (*front, length(rows), length(inner))),
                            _shaped(y, (*front, length(inner), length(columns))))
    return _shaped(product, tuple(sizes[s] for s in labels)), labels


def _shaped(x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.array.shape == shape else xp.reshape(x, shape)
