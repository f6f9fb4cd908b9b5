"""rearrange: axes by name, in the notation of einops. https://pytorch.org/docs → torch.func.rearrange"""
from __future__ import annotations

import re
from math import prod
from typing import Any

from .. import api
from .._tensor import Tensor

DOTS, JOINED = "…", "…)"     # an ellipsis, and one in brackets
Groups = list[list[str]]     # for each axis, the names whose product it is; an ellipsis has a separate group


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Any:
    """Axes reordered, split and joined as a pattern says: 'b (h s) w -> b h (w s)'.

    https://pytorch.org/docs → torch.func.rearrange

    Names in brackets form one axis, the product of theirs, of which all but one length must be given; 1 or () for an
    axis of length 1, and ... for any number of axes. A list of tensors is stacked first.

    >>> import tensorgrad as torch
    >>> images = torch.randn(32, 30, 40, 3)
    >>> torch.func.rearrange(images, "b (h s) w c -> b h w (c s)", s=2).shape
    torch.Size([32, 15, 40, 6])
    """
    tensor = tensor if isinstance(tensor, Tensor) else api.stack(list(tensor))
    left, right = parsed(pattern)
    check(left, right, axes_lengths)
    left = unfolded(left, tensor.ndim)
    inner = [name for group in left for name in group if name.startswith(DOTS) and name != DOTS]
    right = [found for group in right for found in ([[each] for each in inner] if group == [DOTS] else
                                                    [[each for name in group
                                                      for each in (inner if name == JOINED else [name])]])]
    lengths = {name: n for group, size in zip(left, tensor.shape, strict=True)
               for name, n in measured(group, size, axes_lengths).items()}
    order = [name for group in left for name in group]
    names = [name for group in right for name in group]
    split = tensor.reshape([lengths[name] for name in order])
    return split.permute([order.index(name) for name in names]).reshape(
        [prod(lengths[name] for name in group) for group in right])


def parsed(pattern: str) -> tuple[Groups, Groups]:
    """Both sides of a pattern."""
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (side(text) for text in pattern.split("->"))
    dots = [any(name in (DOTS, JOINED) for group in groups for name in group) for groups in (left, right)]
    if dots == [False, True]:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if any(JOINED in group for group in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    return left, right


def side(text: str) -> Groups:
    """Parse one side of a pattern to the names in each axis."""
    if "." in text:
        if "..." not in text:
            raise ValueError("Expression may contain dots only inside ellipsis (...)")
        if text.count("...") != 1 or text.count(".") != 3:
            raise ValueError("Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor ")
        text = text.replace("...", DOTS)
    groups: Groups = []
    inside: list[str] | None = None
    seen: set[str] = set()
    for token in re.findall(rf"[()]|{DOTS}|\w+|\S", text):
        if token == "(":
            if inside is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            groups.append(inside)
            inside = None
        else:
            name(token, seen)
            group = [] if token == "1" else [token]
            if inside is None:
                groups.append(group)
            else:
                inside += [JOINED] if token == DOTS else group
    if inside is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text}'")
    return groups


def name(token: str, seen: set[str]) -> None:
    """ValueError if a token is no new name of an axis."""
    if not re.fullmatch(rf"\w+|{DOTS}", token):
        raise ValueError(f"Unknown character '{token}'")
    if token in seen:
        raise ValueError(f"Indexing expression contains duplicate dimension '{token}'")
    if token.isdecimal():
        if token != "1":
            raise ValueError("rearrange only supports unnamed axes of size 1")
        return
    if token != DOTS and not token.isidentifier():
        raise ValueError(f"Invalid axis identifier: {token}\nnot a valid python identifier")
    if token.startswith("_") or token.endswith("_"):
        raise ValueError(f"Invalid axis identifier: {token}\naxis name should not start or end with underscore")
    seen.add(token)


def check(left: Groups, right: Groups, lengths: dict[str, int]) -> None:
    """Raise ValueError unless both sides have the same names, and `lengths` only has some of these."""
    for given in lengths.values():
        if not isinstance(given, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(given)}")
    mine, others = ({name.removesuffix(")") for group in groups for name in group} for groups in (left, right))
    if mine != others:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {mine ^ others}")
    if unknown := lengths.keys() - mine:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")


def unfolded(groups: Groups, ndim: int) -> Groups:
    """Return the left side with a separate name for each axis that an ellipsis covers."""
    dots = next((i for i, group in enumerate(groups) if group == [DOTS]), None)
    named = len(groups) - (dots is not None)
    if dots is None:
        if named != ndim:
            raise ValueError(f"Number of dimensions in pattern ({named}) must be equal to the number of dimensions in "
                             f"the tensor ({ndim})")
        return groups
    if named > ndim:
        raise ValueError(f"Number of dimensions in pattern ({named}) must be less than or equal to the number of "
                         f"dimensions in the tensor ({ndim})")
    return groups[:dots] + [[f"{DOTS}{i}"] for i in range(ndim - named)] + groups[dots + 1:]


def measured(group: list[str], size: int, given: dict[str, int]) -> dict[str, int]:
    """Return the length of each name in one axis; a missing one is the quotient."""
    known = {name: given[name] for name in group if name in given}
    missing = [name for name in group if name not in given]
    rest, left = divmod(size, prod(known.values()) or 1)
    if len(missing) > 1 or left or (not missing and rest != 1):
        raise ValueError(f"the axis of length {size} is not the product of {' and '.join(group) or 1} with the lengths "
                         f"{known}")
    return known | {name: rest for name in missing}
