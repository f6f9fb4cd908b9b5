"""Crop kernels of convolutions: drop the places that are only ever multiplied by the zeros of the padding.

    a kernel of 3 × 3 on pictures of 1 × 1 with a padding of 1    =   its middle, without padding

Networks that were made for larger pictures end with such layers: ResNet-18 on 32 × 32 keeps a third of its weights.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from ...graph.lowered import Lowered
from ...graph.node import Node
from ...graph.records import Record
from ...graph.symbolic_sizes import symbolic
from ...ops.windows import output_length
from .rewriting import described, op_of, settled


class Cropped(Record):
    """Slices of the kernel axes of weights (O, C, *kernel)."""

    taps: tuple[tuple[int, int], ...]

    def __call__(self, w: Any) -> Any:
        return np.ascontiguousarray(w[:, :, *(slice(*each) for each in self.taps)])

    __name__ = "cropped"


def crop_kernels(graph: Lowered) -> None:
    """Crop the weights of convolutions, where these are known ahead."""
    state = settled(graph)
    for node in graph.nodes:
        if op_of(node) == "convolution" and node.args[1] in state and 0 not in node.meta["shape"]:
            crop(node)


def crop(node: Node) -> None:
    """Crop the weights of a convolution."""
    x, w, *rest = node.args
    places, kernel = node.meta["shape"][2:], w.meta["shape"][2:]
    if symbolic((places, x.meta["shape"][2:])):
        node.graph.postponed.add("crop_kernels")         # which places meet the border depends on the size
        return
    how = [node.kwargs["stride"], node.kwargs["padding"], node.kwargs["dilation"]]
    taps = tuple(map(taps_within, x.meta["shape"][2:], places, kernel, *how))
    if taps == tuple((0, k) for k in kernel):
        return
    padding = tuple(p - start * d for p, d, (start, _) in zip(*how[1:], taps, strict=True))
    cropped = tuple(stop - start for start, stop in taps)
    if min(padding) < 0 or places != output_length(  # type: ignore[no-untyped-call]
            x.meta["shape"][2:], cropped, how[0], padding, how[2]):
        return
    with node.graph.inserting_before(node):
        part = node.graph.call_function(Cropped(taps), (w,))
    part.meta.update(shape=(*w.meta["shape"][:2], *cropped), dtype=w.meta["dtype"])
    described(part, node)
    node.args, node.kwargs = (x, part, *rest), {**node.kwargs, "padding": padding}


def taps_within(size: int, places: int, kernel: int, stride: int, padding: int, dilation: int) -> tuple[int, int]:
    """Return the first place of a kernel that meets the picture anywhere, and the end of these places."""
    used = [k for k in range(kernel)
            if any(0 <= i * stride - padding + k * dilation < size for i in range(places))]
    return (used[0], used[-1] + 1) if used else (0, kernel)
