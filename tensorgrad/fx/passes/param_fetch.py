"""Attributes of layers, as attributes of the nodes that call them. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import nn
from ...api import typename
from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """Return the name of an attribute in some version of a layer: its present name."""
    return name


CONVOLUTION = "weight bias kernel_size stride padding dilation groups padding_mode".split()
NORMALIZATION = "weight bias running_mean running_var eps".split()
# {class: (version, attributes, their names in other versions)}
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    nn.Linear: (1, ["weight", "bias"], default_matching), nn.Conv2d: (1, CONVOLUTION, default_matching),
    nn.BatchNorm2d: (2, NORMALIZATION, default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (1, "kernel_size stride padding dilation return_indices ceil_mode".split(), default_matching),
    nn.ReLU: (1, ["inplace"], default_matching)}


def extract_attrs_for_lowering(mod: Any) -> dict[str, Any]:
    """Return the attributes of a layer that determine what it computes, and its class as `name`. RuntimeError for
    classes that are not in `module_fetch_book`."""
    name = typename(mod)
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{name} is not in the module_fetch_book yet, please add it to the module_fetch_book, open "
                           f"an issue and @842974287 or report a bug to AIACC team directly.")
    version, attributes, matching = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(f"Fetcher version {version} try to fetch {name} version {mod._version}, please upgrade the "
                           f"module_fetch_book, open an issue and @842974287 or report a bug to AIACC team directly.")
    return {"name": name, **{each: getattr(mod, matching(each, mod._version)) for each in attributes}}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Give each node that calls a layer its attributes, as `attrs_for_lowering`."""
    layers = dict(fx_module.named_modules())
    for node in fx_module.graph.find_nodes(op="call_module"):
        layer = layers[node.target]
        if isinstance(layer, GraphModule):
            lift_lowering_attrs_to_nodes(layer)
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(layer)     # type: ignore[attr-defined]
