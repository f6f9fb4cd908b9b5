"""torch.utils.flop_counter: count the operations of matrix products and convolutions, forward and backward.

Calls of public functions are counted; a gradient is counted for each of their inputs that needs one, when backward
reaches their result. Gradients of gradients are not counted.
"""
from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from importlib import import_module
from math import prod
from typing import Any

from .._tensor import Tensor
from ..messages import tables
from ..nn.modules._hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..overrides import TorchFunctionMode
from ._pytree import tree_map

__all__ = ["FlopCounterMode", "register_flop_formula"]
PACKAGE = __name__.partition(".")[0]
Counted = tuple[str, int, str, int]     # the operator and its number of operations, then those of a gradient
flop_registry: dict[str, Callable[..., int]] = {}


def _product(name: str, flops: int) -> Iterator[Counted]:
    yield f"aten.{name}", flops, "aten.bmm" if name in ("bmm", "baddbmm") else "aten.mm", flops


def _matmul(a: Any, b: Any) -> Iterator[Counted]:
    if a.ndim > 1 and b.ndim > 1:       # products with a vector are not counted
        batch = (prod(a.shape[:-2]) if b.ndim == 2 else prod(b.shape[:-2]) if a.ndim == 2
                 else prod(max(m, n) for m, n in _aligned(a.shape[:-2], b.shape[:-2])))
        yield from _product("mm" if min(a.ndim, b.ndim) == 2 else "bmm",
                            2 * batch * a.shape[-2] * a.shape[-1] * b.shape[-1])


def _aligned(a: Any, b: Any) -> Iterator[tuple[int, int]]:
    size = max(len(a), len(b))
    return zip((1,) * (size - len(a)) + tuple(a), (1,) * (size - len(b)) + tuple(b), strict=True)


def _addmm(input: Any, a: Any, b: Any, **kwargs: Any) -> Iterator[Counted]:
    yield from _product("addmm", 2 * a.shape[0] * a.shape[1] * b.shape[1])


def _baddbmm(input: Any, a: Any, b: Any, **kwargs: Any) -> Iterator[Counted]:
    yield from _product("baddbmm", 2 * prod(a.shape) * b.shape[2])


def _linear(input: Any, weight: Any, bias: Any = None) -> Iterator[Counted]:
    yield from _product("mm" if bias is None else "addmm", 2 * prod(input.shape) * weight.shape[0])


def _einsum(equation: Any, *operands: Any) -> Iterator[Counted]:
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    parts = inputs.split(",")
    sizes = {label: n for part, t in zip(parts, operands, strict=True) for label, n in zip(part, t.shape, strict=False)}
    output = output if arrow else "".join(label for label in sorted(sizes) if inputs.count(label) == 1)
    left = parts[0]
    for i, right in enumerate(parts[1:], 2):
        kept = {label for label in left + right if label in output or any(label in part for part in parts[i:])}
        if (set(left) & set(right)) - kept:
            # labels that are summed over before the product
            alone = {label for label in set(left) ^ set(right) if label not in kept}
            yield from _product("bmm", 2 * prod(sizes[label] for label in set(left + right) - alone))
        left = "".join(kept)


def _tensordot(a: Any, b: Any, dims: Any = 2, **kwargs: Any) -> Iterator[Counted]:
    summed = prod(a.shape[a.ndim - dims:]) if isinstance(dims, int) else prod(a.shape[d] for d in dims[0])
    if summed != prod(a.shape) or summed != prod(b.shape):
        yield from _product("mm", 2 * prod(a.shape) * prod(b.shape) // max(summed, 1))


def _convolution(transposed: bool) -> Callable[..., Iterator[Counted]]:
    def count(input: Any, weight: Any, *args: Any, result: Any, **kwargs: Any) -> Iterator[Counted]:
        spatial = weight.ndim - 2
        batch = input.shape[0] if input.ndim > spatial + 1 else 1
        flops = 2 * batch * prod((input if transposed else result).shape[-spatial:]) * prod(weight.shape)
        yield "aten.convolution", flops, "aten.convolution_backward", flops
    return count


def _attention(query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
               **kwargs: Any) -> Iterator[Counted]:
    if dropout_p or query.ndim != 4:        # PyTorch counts nothing for its fused kernel
        yield from _product("bmm", 2 * prod(query.shape) * key.shape[-2])
        yield from _product("bmm", 2 * prod(query.shape[:-1]) * key.shape[-2] * value.shape[-1])


def _heads(query: Any, key: Any, value: Any, embed_dim: int, num_heads: int, *args: Any,
           **kwargs: Any) -> Iterator[Counted]:
    for t in (query, key, value, query):
        yield from _product("addmm", 2 * prod(t.shape[:-1]) * t.shape[-1] * embed_dim)
    dropout = args[5] if len(args) > 5 else kwargs.get("dropout_p", 0.0)
    if kwargs.get("need_weights", True) or dropout and kwargs.get("training", True):
        flops = 2 * prod(query.shape) * key.shape[0]
        for _ in range(2):
            yield from _product("bmm", flops)


FORMULAS: dict[str, Callable[..., Iterator[Counted]]] = {
    "matmul": _matmul, "mm": _matmul, "bmm": _matmul, "__matmul__": _matmul, "__rmatmul__": lambda a, b: _matmul(b, a),
    "addmm": _addmm,
    "baddbmm": _baddbmm, "linear": _linear, "einsum": _einsum, "tensordot": _tensordot,
    "scaled_dot_product_attention": _attention,
    "multi_head_attention_forward": _heads, **{f"conv{n}d": _convolution(False) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _convolution(True) for n in (1, 2, 3)}}


class FlopCounterMode(TorchFunctionMode):
    """Counts the operations inside the block. https://pytorch.org/docs → torch.utils.flop_counter.FlopCounterMode

    >>> import tensorgrad as torch
    >>> from tensorgrad.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = torch.nn.Linear(4, 3)(torch.ones(2, 4))
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True,
                 custom_mapping: dict[Any, Any] | None = None) -> None:
        super().__init__()
        self.depth, self.display, self.custom = (depth, display,
                                                 {getattr(k, "__name__", k): _shaped(v)
                                                  for k, v in (custom_mapping or {}).items()})
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_counts: dict[str, dict[Any, int]] = {}
        self._open = False

    def __enter__(self) -> Any:
        self.flop_counts = defaultdict(lambda: defaultdict(int), {"Global": defaultdict(int)})
        self._inside: list[str] = []                # the modules that are running
        self._names: dict[int, str] = {}
        self._hooks = [register_module_forward_pre_hook(self._begin),
                       register_module_forward_hook(self._end, always_call=True)]
        self._open = True
        return super().__enter__()

    def __exit__(self, *exception: Any) -> Any:
        self._open = False
        for hook in self._hooks:
            hook.remove()
        super().__exit__(*exception)
        if self.display:
            print(self.get_table(self.depth))

    def _begin(self, module: Any, args: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            self._names.update({id(m): f"{root}.{name}" if name else root for name, m in module.named_modules()})
        self._inside.append(self._names[id(module)])

    def _end(self, module: Any, args: Any, output: Any) -> None:
        self._inside.pop()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func.__name__
        if name in self.custom or name in flop_registry:
            formula = self.custom.get(name) or flop_registry[name]
            space = getattr(func, "namespace", "aten")
            self._add(f"{space}.{name}", formula(*args, **kwargs, out_val=result), ("Global", *self._inside))
        elif name in FORMULAS:
            self._count(name, args, kwargs, result)
        return result

    def _count(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        where = ("Global", *dict.fromkeys(self._inside))
        extra = {"result": result} if name.startswith("conv") else {}
        given = {key: value for key, value in kwargs.items() if key != "out"}
        first = result[0] if isinstance(result, tuple) else result
        factors = ([a for a in (*args, *kwargs.values()) if getattr(a, "ndim", 0) > 1][-2:]
                   if name != "multi_head_attention_forward" else args[:2])
        needed = [bool(a.requires_grad) for a in factors]
        groups = kwargs.get("groups", args[6] if len(args) > 6 else 1) if extra else 1
        for operator, flops, backward, each in FORMULAS[name](*args, **given, **extra):
            self._add(operator, flops, where)
            # the gradient of a weight of grouped convolutions is counted for all channels
            amount = each * (needed[0] + needed[1] * groups) if len(needed) == 2 else 0
            if first.requires_grad and amount:
                first.register_hook(lambda g, backward=backward, amount=amount: self._add(backward, amount, where)
                                    if self._open else None)

    def _add(self, operator: str, flops: int, where: tuple[str, ...]) -> None:
        space, _, name = operator.partition(".")
        packet = getattr(getattr(import_module(f"{PACKAGE}._ops").ops, space), name)
        for module in where:
            self.flop_counts[module][packet] += flops

    def get_total_flops(self) -> int:
        """Return the number of all operations."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return {module: {operator: operations}}."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return the counts of modules, down to a depth, as lines of text."""
        depth, total = self.depth if depth is None else depth, max(self.get_total_flops(), 1)
        rows = [("Module", "FLOP", "% Total")]
        for module in ("Global", *sorted(name for name in self.flop_counts if name != "Global")):
            level = module.count(".") + (module != "Global")
            if level <= depth and module in self.flop_counts:
                counts = self.flop_counts[module]
                rows.append((" " * level + module, _short(sum(counts.values()), total),
                             f"{sum(counts.values()) / total:.2%}"))
                rows += [(" " * level + f" - {operator}", _short(n, total), f"{n / total:.2%}")
                         for operator, n in counts.items()]
        return "\n".join(tables.table(rows, "<>", rule="-"))


def _short(count: int, total: int) -> str:
    size, unit = next(((size, unit) for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))
                       if total >= size), (1, ""))
    return f"{count / size:.3f}{unit}" if unit else str(count)


def _shaped(formula: Callable[..., int]) -> Callable[..., int]:
    """Return a formula of tensors that calls one of their shapes, unless that is one of tensors itself."""
    if getattr(formula, "_get_raw", False):
        return formula

    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = tree_map(lambda t: t.shape if isinstance(t, Tensor) else t, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)
    return count


def register_flop_formula(targets: Any, get_raw: bool = False) -> Any:
    """Decorate a function that counts the operations of functions of these names, from the shapes of their
    arguments.
    """
    def registered(formula: Any) -> Any:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[getattr(target, "__name__", str(target))] = formula if get_raw else _shaped(formula)
        return formula
    return registered
