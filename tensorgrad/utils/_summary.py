"""Summarize a model as a table: its layers with their shapes, parameters and costs, in the layout of the package
torchinfo."""
from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import api as tg
from ..api.random import fork_rng
from ..core.mode import no_grad
from ..messages import tables
from ..nn.modules.module import Module, register_module_forward_hook, register_module_forward_pre_hook
from ..nn.parameter import is_lazy
from ._pytree import tree_leaves, tree_map

__all__ = ["LayerInfo", "ModelStatistics", "summary"]

COLUMNS = {"kernel_size": "Kernel Shape", "input_size": "Input Shape", "output_size": "Output Shape",
           "num_params": "Param #", "params_percent": "Param %",
           "mult_adds": "Mult-Adds", "trainable": "Trainable"}
ROWS = ("depth", "var_names", "ascii_only", "hide_recursive_layers")
NEED_INPUT = {"input_size", "output_size", "mult_adds"}

_cache: dict[str, list[LayerInfo]] = {}


def summary(model: Module, input_size: Any = None, input_data: Any = None, batch_dim: int | None = None,
            cache_forward_pass: bool | None = None, col_names: Iterable[str] | None = None, col_width: int = 25,
            depth: int = 3, device: Any = None, dtypes: list[Any] | None = None, mode: str | None = None,
            row_settings: Iterable[str] | None = None, verbose: int | None = None, **kwargs: Any) -> ModelStatistics:
    """Return the layers of a model, a line for each call, their sizes and the totals; printed, unless `verbose` is 0.

    The model runs once, on `input_data` (a tensor, a list of arguments or a dict of them), or on random tensors of
    `input_size` (a shape or a list of shapes, to which a batch is added at `batch_dim` if given) and `dtypes`; without
    either, it does not run. `kwargs` are passed to its `forward`. `mode` is "eval" or "train". Modes, buffers, hooks
    and random generators are restored afterwards.

    `col_names` are of "input_size", "output_size", "num_params", "params_percent", "kernel_size", "mult_adds" and
    "trainable"; `row_settings` of "depth", "var_names", "ascii_only" and "hide_recursive_layers". Layers below `depth`
    count as part of the one above; `verbose=2` lists parameters.

    >>> import tensorgrad as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    >>> found = torch.summary(net, (5, 3), verbose=0, col_width=12)
    >>> print(*str(found).splitlines()[:6], sep="\\n")
    ================================================================
    Layer (type:depth-idx)                   Output Shape Param #
    ================================================================
    Sequential                               [5, 2]       --
    ├─Linear: 1-1                            [5, 2]       8
    ├─ReLU: 1-2                              [5, 2]       --
    >>> found.total_params, found.total_mult_adds
    (8, 40)
    """
    given = input_size is not None or input_data is not None
    columns = _known(col_names if col_names is not None else ["output_size", "num_params"] if given else ["num_params"],
                     COLUMNS, "ColumnSettings")
    rows = _known(["depth"] if row_settings is None else row_settings, ROWS, "RowSettings")
    training = _known(["eval" if mode is None else mode], ("train", "eval"), "Mode") == ["train"]
    if verbose is None:
        verbose = 0 if getattr(sys, "ps1", None) else 1
    _check_look(col_width, verbose)
    if input_size is not None and input_data is not None:
        raise RuntimeError("Only one of (input_data, input_size) should be specified.")
    if not given and NEED_INPUT & {*columns}:
        raise ValueError(f"You must pass input_data or input_size in order to use columns: {NEED_INPUT & {*columns}}")
    device = _device_of(model, input_data) if device is None else tg.device(device)
    if input_size is not None:
        input_size = _shapes(input_size)
        input_data = _random(input_size, dtypes or [tg.float32] * len(input_size), batch_dim, device)
    elif given:
        input_size = tree_map(lambda x: x.shape if isinstance(x, (tg.Tensor, np.ndarray)) else x, input_data)
        input_data = tree_map(lambda x: x.to(device) if isinstance(x, tg.Tensor) else x, input_data)
        input_data = [input_data] if isinstance(input_data, (tg.Tensor, np.ndarray)) else input_data
    key = type(model).__name__
    layers = _cache.get(key) if cache_forward_pass else None
    if layers is None:
        layers = _complete(list(_listed(model)) if not given
                           else _executed(model, input_data, kwargs, batch_dim, device, training))
        if cache_forward_pass:
            _cache[key] = layers
    result = ModelStatistics(layers, input_size if given else [], _bytes(input_data), columns, rows, col_width, depth,
                             verbose)
    if verbose:
        print(result)
    return result


def _check_look(col_width: int, verbose: int) -> None:
    if col_width <= 0:
        raise ValueError(f"Column width must be greater than 0: col_width={col_width}")
    if verbose not in (0, 1, 2):
        raise ValueError("Verbose must be either 0 (quiet), 1 (default), or 2 (verbose).")


def _known(names: Iterable[str], known: Iterable[str], kind: str) -> list[str]:
    names = list(names)
    for name in names:
        if name not in known:
            raise ValueError(f"{name!r} is not a valid {kind}")
    return names


# ── what the model runs on ────────────────────────────────────────────────────────────────────────────────────────────


def _device_of(model: Module, data: Any) -> Any:
    """Return the device of the parameters, or else of the input, or else a GPU if there is one."""
    tensors = [*model.parameters(), *(x for x in tree_leaves(data) if isinstance(x, tg.Tensor))]
    if tensors:
        return tensors[0].device
    from .. import cuda
    return tg.device("cuda" if data is None and cuda.is_available() else "cpu")


def _shapes(size: Any) -> list[Any]:
    shapes = [tuple(size)] if len(size) and isinstance(size[0], int) else list(size)
    if not shapes or any(n <= 0 for shape in shapes for n in shape):
        raise ValueError("Input_data is invalid, or negative size found in input_data.")
    return shapes


def _random(shapes: list[Any], dtypes: list[Any], batch_dim: int | None, device: Any) -> list[Any]:
    if any(dtype in (tg.float16, tg.bfloat16) for dtype in dtypes):
        warnings.warn("Half precision is not supported with input_size parameter, and may output incorrect results. "
                      "Try passing input_data directly.",
                      stacklevel=3)
    with fork_rng([]):
        tensors = [tg.rand(*shape) for shape in shapes]
    if batch_dim is not None:
        tensors = [tensor.unsqueeze(batch_dim) for tensor in tensors]
    return [tensor.to(device).type(dtype) for tensor, dtype in zip(tensors, dtypes)]


def _bytes(data: Any) -> int:
    return sum(x.nbytes for x in tree_leaves(data) if isinstance(x, (tg.Tensor, np.ndarray)))


def _size(value: Any) -> tuple[list[int], int]:
    """Return the shape of the first tensor in a value, and the bytes of an element."""
    while not isinstance(value, (tg.Tensor, np.ndarray)):
        value = getattr(value, "tensors", list(value.values()) if isinstance(value, dict) else value)
        if not isinstance(value, (tg.Tensor, np.ndarray)):
            if not isinstance(value, (list, tuple)) or not value:
                return [], 0
            value = value[0]
    return list(value.shape), value.itemsize


# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class LayerInfo:
    """A module at a position in the model, and, if the model ran, a call of it."""

    def __init__(self, module: Module, var_name: str, parent: LayerInfo | None = None) -> None:
        self.module, self.var_name, self.parent_info = module, var_name, parent
        self.layer_id, self.depth, self.depth_index = id(module), 0 if parent is None else parent.depth + 1, 0
        self.executed = self.is_recursive = False
        self.input_size: list[int] = []
        self.output_size: list[int] = []
        self.output_bytes = self.macs = 0
        self.children: list[LayerInfo] = []
        self.count()

    def __repr__(self) -> str:
        return f"{self.class_name}: {self.depth}"

    def count(self) -> None:
        """Count the parameters; called again after a lazy module is initialized."""
        self.class_name = type(self.module).__name__
        self.is_leaf_layer = next(self.module.children(), None) is None
        kernel = getattr(self.module, "kernel_size", None)
        self.kernel_size = list(kernel) if isinstance(kernel, Iterable) else kernel
        self.parameters: list[tuple[str, int, list[int]]] = []
        self.num_params = self.trainable_params = self.param_bytes = 0
        masks = dict(self.module.named_buffers())
        for name, parameter in self.module.named_parameters():
            if is_lazy(parameter):
                continue
            number, shape = parameter.numel(), list(parameter.shape)
            mask = masks.get(name[:-5] + "_mask") if name.endswith("_orig") else None
            if mask is not None:            # pruned: count the elements that the mask leaves
                number, name = int(mask.sum()), name[:-5]
            if name == "weight" and len(shape) > 1:
                shape[:2] = shape[1], shape[0]
            self.parameters.append((name, number, shape))
            self.num_params += number
            self.param_bytes += number * parameter.element_size()
            self.trainable_params += number if parameter.requires_grad else 0

    def returned(self, size: list[int], itemsize: int) -> None:
        """Record a call's result, and count its multiplications: one per parameter and sample, for convolutions also
        per position, for recurrent layers per step."""
        self.executed, self.output_size, self.output_bytes = True, size, math.prod(size) * itemsize
        self.count()
        for name, number, _ in self.parameters:
            if name in ("weight", "bias"):
                self.macs += number * (math.prod(size[:1] + size[2:]) if "Conv" in self.class_name
                                       else math.prod(size[:1]))
            elif "weight" in name or "bias" in name:
                self.macs += number * math.prod(size[:2])

    def own(self, kind: str = "num_params") -> int:
        """Return the number of parameters that no layer below has."""
        return getattr(self, kind) - sum(getattr(c, kind) if c.is_leaf_layer else c.own(kind)
                                         for c in self.children if not c.is_recursive)

    leftover_params = own

    def leftover_trainable_params(self) -> int:
        """Return the number of trainable parameters that no layer below has."""
        return self.own("trainable_params")

    def cell(self, column: str, total: int, last: bool) -> str:
        """Return the text in a column; `last` if nothing below is shown."""
        whole = last or self.is_leaf_layer
        match column:
            case "kernel_size" | "input_size" | "output_size":
                value = getattr(self, column)
                return str(value) if value else "--"
            case "num_params" | "params_percent":
                if column == "num_params" and not self.num_params or column == "params_percent" and not total:
                    return "--" if column == "num_params" else "     --"
                if self.is_recursive:
                    return "(recursive)"
                number = self.num_params if whole else self.own()
                if column == "params_percent":
                    return f"{number / total:>7.2%}" if number else "     --"
                return f"({number:,})" if whole and not self.trainable_params else f"{number:,}" if number > 0 else "--"
            case "mult_adds":
                if not self.macs or not whole:
                    return "--"
                return f"{self.macs if self.is_leaf_layer else sum(c.macs for c in self.children if c.is_leaf_layer):,}"
            case _:
                return ("--" if not self.num_params
                        else {0: "False", self.num_params: "True"}.get(self.trainable_params, "Partial"))


def _listed(module: Module, name: str | None = None, parent: LayerInfo | None = None) -> Iterator[LayerInfo]:
    """Yield the modules of a model, at all their positions."""
    layer = LayerInfo(module, type(module).__name__ if name is None else name, parent)
    yield layer
    for name, child in module._modules.items():
        if child is not None:
            yield from _listed(child, name, layer)


def _without_batch(layers: list[LayerInfo], data: Any) -> str:
    """Return a hint if the first layer would take an additional axis, because sizes include the batch."""
    first = next((layer.module for layer in layers if not layer.module._modules), None)
    kind = type(first).__name__
    # BatchNorm1d takes (N, C) as well
    axes = next((n for n in (1, 2, 3) if kind.endswith(f"{n}d") and kind != "BatchNorm1d"), None)
    shapes = [tuple(x.shape) for x in (data.values() if isinstance(data, dict) else data) if isinstance(x, tg.Tensor)]
    if axes is None or not shapes or len(shapes[0]) != axes + 1:
        return ""
    return (f"\nThe input {shapes[0]} has no axis of the batch: {kind} takes (N, C, {', '.join('DHW'[-axes:])}), so "
            f"give input_size={(1, *shapes[0])}, or batch_dim=0")


def _executed(model: Module, data: Any, kwargs: Any, batch_dim: int | None, device: Any,
              training: bool) -> list[LayerInfo]:
    """Run the model, and return the calls of its modules."""
    places = {layer.module: layer for layer in _listed(model)}      # the last of several positions of a module
    layers: list[LayerInfo] = []
    running: list[LayerInfo] = []

    def size(value: Any) -> tuple[list[int], int]:
        shape, itemsize = _size(value)
        if batch_dim is not None and batch_dim < len(shape):
            shape[batch_dim] = 1
        return shape, itemsize

    def enter(module: Module, args: Any) -> None:
        if module in places:
            running.append(LayerInfo(module, places[module].var_name, places[module].parent_info))
            layers.append(running[-1])

    def leave(module: Module, args: Any, result: Any) -> None:
        if module in places:
            while (layer := running.pop()).module is not module:    # the model caught an error of a module
                pass
            layer.input_size = size(args)[0]
            layer.returned(*size(result))

    with _as_before(model, device):
        hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave)]
        try:
            model.train(training).to(device)
            kwargs = tree_map(lambda x: x.to(device) if isinstance(x, tg.Tensor) else x, kwargs)
            if isinstance(data, dict):
                model(**data, **kwargs)
            elif isinstance(data, (list, tuple)):
                model(*data, **kwargs)
            else:
                raise ValueError("Unknown input type")
        except Exception as error:
            raise RuntimeError("Failed to run summary. See above stack traces for more details. "
                               f"Executed layers up to: "
                               f"{[layer for layer in layers if layer.executed]}"
                               f"{_without_batch(layers, data)}") from error
        finally:
            for hook in hooks:
                hook.remove()
    return layers


@contextmanager
def _as_before(model: Module, device: Any) -> Iterator[None]:
    """Restore the model's modes and buffers and the random generators after the block."""
    training = [(module, module.training) for module in model.modules()]
    buffers = [(module, name, buffer, buffer.clone()) for module in model.modules()
               for name, buffer in module._buffers.items()
               if buffer is not None and not is_lazy(buffer)]
    try:
        with no_grad(), fork_rng([device.index or 0] if device.type == "cuda" else []):
            yield
    finally:
        for module, value in training:
            module.training = value
        with no_grad():
            for module, name, buffer, value in buffers:
                if buffer.device == module._buffers[name].device:
                    module._buffers[name] = buffer
                module._buffers[name].copy_(value)


def _complete(layers: list[LayerInfo]) -> list[LayerInfo]:
    """Insert containers that were not called themselves before the calls in them, and number the layers at each
    depth.
    """
    seen: set[int] = set()
    for layer in layers:
        layer.is_recursive = layer.layer_id in seen
        seen.add(layer.layer_id)
    path: list[LayerInfo] = []          # path of the line before, from the root
    lines = []
    for layer in layers:
        chain = [layer]
        while chain[-1].parent_info is not None:
            chain.append(chain[-1].parent_info)
        chain.reverse()
        common = next((i for i, (a, b) in enumerate(zip(path, chain[:-1])) if a.module is not b.module),
                      min(len(path), len(chain) - 1))
        # a container that is visited again has several lines, one object
        for container in chain[max(common, 1):-1]:
            container.count()
            container.is_recursive = container.layer_id in seen
            seen.add(container.layer_id)
            lines.append(container)
        lines.append(layer)
        path = chain
    numbers: dict[int, int] = {}
    for i, layer in enumerate(lines):
        numbers[layer.depth] = layer.depth_index = numbers.get(layer.depth, 0) + 1
        end = next((j for j in range(i + 1, len(lines)) if lines[j].depth <= layer.depth), len(lines))
        layer.children = lines[i + 1:end]
    return lines


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class ModelStatistics:
    """The layers of a model and its totals; as text, the table."""

    def __init__(self, summary_list: list[LayerInfo], input_size: Any, total_input: int, columns: list[str],
                 rows: list[str], col_width: int, depth: int,
                 verbose: int) -> None:
        self.summary_list, self.input_size, self.total_input = summary_list, input_size, total_input
        self.columns, self.rows, self.col_width, self.depth, self.verbose = columns, rows, col_width, depth, verbose
        leaves = [layer for layer in summary_list if layer.is_leaf_layer]
        first = [layer for layer in leaves if not layer.is_recursive]
        above = [layer for layer in summary_list if not layer.is_leaf_layer and not layer.is_recursive]
        self.total_mult_adds = sum(layer.macs for layer in leaves)
        # for the gradients too
        self.total_output_bytes = 2 * sum(layer.output_bytes for layer in leaves if layer.num_params)
        self.total_param_bytes = sum(layer.param_bytes for layer in first)
        self.total_params = sum(layer.num_params for layer in first) + sum(max(layer.own(), 0) for layer in above)
        self.trainable_params = (sum(layer.trainable_params for layer in first) +
                                 sum(max(layer.leftover_trainable_params(), 0) for layer in above))

    def __repr__(self) -> str:
        title = (f"Layer (type{' (var_name)' if 'var_names' in self.rows else ''}"
                 f"{':depth-idx' if 'depth' in self.rows else ''})")
        rows = [(title, [COLUMNS[column] for column in self.columns]), *self._lines()]
        width = max(40, 5 * math.ceil((max(5 * layer.depth + len(self._name(layer)) for layer in self.summary_list) + 1)
                                      / 5))
        head, *lines = tables.table([(name, *cells) for name, cells in rows], gap=" ",
                                    widths=[width, *[self.col_width] * len(self.columns)])
        blocks = [lines, tables.parameters(self.total_params, self.trainable_params)]
        if self.input_size:
            sizes = [self.total_input, self.total_output_bytes, self.total_param_bytes]
            blocks[1].append(f"Total mult-adds{self.format_output_num(self.total_mult_adds)}")
            blocks.append([f"{name} (MB): {self.to_megabytes(size):.2f}" for name, size in zip(
                ("Input size", "Forward/backward pass size", "Params size", "Estimated Total Size"),
                [*sizes, sum(sizes)])])
        return tables.summary(head, *blocks, width=width + len(self.columns) * self.col_width)

    def _name(self, layer: LayerInfo) -> str:
        name = layer.class_name + (f" ({layer.var_name})" if "var_names" in self.rows and layer.var_name else "")
        return f"{name}: {layer.depth}-{layer.depth_index}" if "depth" in self.rows and layer.depth else name

    def _indented(self, depth: int, name: str) -> str:
        bar, first, other = ("|    ", "+ ", "+ ") if "ascii_only" in self.rows else ("│    ", "├─", "└─")
        return name if not depth else first + name if depth == 1 else bar * (depth - 1) + other + name

    def _lines(self) -> Iterator[tuple[str, list[str]]]:
        for layer in self.summary_list:
            if layer.depth > self.depth or layer.is_recursive and "hide_recursive_layers" in self.rows:
                continue
            cells = [layer.cell(column, self.total_params, layer.depth == self.depth) for column in self.columns]
            yield self._indented(layer.depth, self._name(layer)), cells
            if self.verbose == 2:
                inner = [p for p in layer.parameters if layer.depth or "." not in p[0]]
                for name, number, shape in inner:
                    branch = "└─" if name == inner[-1][0] else "├─"
                    texts = {"kernel_size": str(shape), "num_params": f"{branch}{number:,}"}
                    yield self._indented(layer.depth + 1, name), [texts.get(column, "") for column in self.columns]

    @staticmethod
    def to_megabytes(num: int) -> float:
        """Convert bytes to megabytes, of a million each."""
        return num / 1e6

    @staticmethod
    def float_to_megabytes(num: int) -> float:
        """Convert a number of float32 to megabytes."""
        return num * 4 / 1e6

    @staticmethod
    def format_output_num(num: int) -> str:
        """Convert a number to millions, billions or trillions."""
        unit, divisor = ("TERABYTES", 1e12) if num >= 1e12 else ("GIGABYTES", 1e9) if num >= 1e9 else ("MEGABYTES", 1e6)
        value = num / divisor
        return f" (Units.{unit}): {int(value):,d}" if value.is_integer() else f" (Units.{unit}): {value:,.2f}"
