"""Selective checkpointing: keeps the results of some functions instead of recomputing them (PyTorch:
``torch.utils.checkpoint``).

A kept function is skipped in the second run. The tensors that its steps saved are among its arguments and results, or
are kept with them: they fill the slots of the part in the order of the first run.
"""
from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from .. import api as tg
from .._tensor import torch_function
from ..core.anomaly import saved_tensors_hooks
from ..core.mode import mode, no_grad
from ..core.undefined import failing
from ._device_states import get_device_states
from ._pytree import tree_leaves, tree_map

__all__ = ["CheckpointPolicy", "SAC_IGNORED_OPS", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]

SAC_IGNORED_OPS = frozenset("__get__ __len__ detach device dim element_size get_device is_complex is_contiguous "
                            "is_floating_point ndimension "
                            # queries of tensors, which compute nothing
                            "nelement numel requires_grad_ size storage_offset stride".split())


class CheckpointPolicy(enum.Enum):
    """The decision about a result: keep it, or recompute it.
    https://pytorch.org/docs → torch.utils.checkpoint.CheckpointPolicy
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


KEPT = (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class SelectiveCheckpointContext:
    """The context argument of a policy, with the function's result.
    https://pytorch.org/docs → SelectiveCheckpointContext
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> tuple[Any,
                                                                                                                    Any]:
    """Return the contexts of the two runs of `checkpoint`, for its `context_fn`.

    The results of the functions in a list are kept, or of those for which `policy(context, function, *args, **kwargs)`
    returns `CheckpointPolicy.MUST_SAVE`.

    A function is an operator such as `torch.ops.aten.mm.default`; a list may also have `torch.mm` itself. The policy
    sees functions that the part calls, but not those that they call in turn. Views, in-place functions and functions
    that draw random numbers are always recomputed.

    https://pytorch.org/docs → torch.utils.checkpoint.create_selective_checkpoint_contexts

    >>> import tensorgrad as torch
    >>> from tensorgrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> x = torch.ones(2, 2, requires_grad=True)
    >>> out = checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts([torch.mm]))
    >>> out.sum().backward()
    """  # noqa: E501
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not callable(op):
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. ")
            if type(op).__name__ == "OpOverloadPacket":
                raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. "
                                 f"Please update the OpOverloadPacket to a specific OpOverload.For example, if you "
                                 f"have `torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`.")
        names = {op.__name__.partition(".")[0] for op in policy_fn_or_list}

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
            return op.__name__.partition(".")[0] in names
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[str, list[Any]] = defaultdict(list)
    return _First(policy, kept), _Second(kept, allow_cache_entry_mutation)


def _operator(func: Callable[..., Any], args: Any) -> Any:
    """Return the `torch.ops.aten` operator of a function."""
    from .._ops import ops
    name = func.__name__
    if name in ("matmul", "linear"):
        ndim = args[0].ndim
        bias = name == "linear" and len(args) > 2 and args[2] is not None
        name = ("addmm" if bias else "mm" if name == "linear" else {1: "mv", 2: "mm"}.get(ndim, "bmm")
                if args[1].ndim > 1 else {1: "dot"}.get(ndim, "mv"))
    return getattr(getattr(ops.aten, ATEN.get(name, name)), "Tensor" if name in OF_TENSORS else "default")


OF_TENSORS = frozenset("add sub mul div remainder fmod".split())     # operators whose first overload is not "default"
ATEN = {**{f"conv{how}{n}d": "convolution" for how in ("", "_transpose") for n in (1, 2, 3)}, "softmax": "_softmax",
        "log_softmax": "_log_softmax",
        "layer_norm": "native_layer_norm", "batch_norm": "native_batch_norm", "group_norm": "native_group_norm"}


def _tensors(value: Any) -> list[Any]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, tg.Tensor)]


class _Kept:
    """A call's result, and its saved tensors: each as its position ("args" or "out", number), or the tensor itself."""

    def __init__(self, out: Any, args: list[Any], saved: list[Any]) -> None:
        with no_grad():
            self.out = tree_map(lambda x: x.detach() if isinstance(x, tg.Tensor) else x, out)
        self.needs = [x.requires_grad for x in _tensors(out)]
        self.versions = [x._version for x in _tensors(self.out)]
        known = ([(x.array, ("out", i)) for i, x in enumerate(_tensors(out))]
                 + [(x.array, ("args", i)) for i, x in enumerate(args)])
        self.saved = [next((place for array, place in known if array is x.array), x.detach()) for x in saved]
        self.used = False


class _Context:
    """A context that intercepts function calls."""

    def __enter__(self) -> None:
        self.counts: dict[str, int] = defaultdict(int)
        self.stack = ExitStack()
        self.stack.enter_context(torch_function.armed())
        self.before, torch_function.state.modes = torch_function.state.modes, (*torch_function.state.modes, self)

    def __exit__(self, *exception: object) -> None:
        torch_function.state.modes = self.before
        self.stack.close()


class _First(_Context):
    """The first run: asks the policy, and keeps results."""

    def __init__(self, policy: Callable[..., Any], kept: dict[str, list[Any]]) -> None:
        self.policy, self.kept = policy, kept

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in SAC_IGNORED_OPS or not mode.watching.hooks:
            return func(*args, **kwargs)
        saved: list[Any] = []
        pack, unpack = mode.watching.hooks[-1]
        given = _tensors([args, kwargs])
        seeds = [tg.get_rng_state(), *get_device_states(given)[1]]

        def noted(tensor: Any) -> Any:
            saved.append(tensor)
            return pack(tensor)
        with saved_tensors_hooks(noted, unpack):
            out = func(*args, **kwargs)
        shares = any(a._storage is b._storage for a in _tensors(out) for b in given)
        draws = not all((a == b).all() for a, b in zip(seeds, [tg.get_rng_state(), *get_device_states(given)[1]]))
        keeps = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), _operator(func, args), *args,
                            **kwargs) in KEPT
        self.kept[func.__name__].append(_Kept(out, given, saved) if keeps and not shares and not draws else None)
        return out


class _Second(_Context):
    """The second run: returns the kept results."""

    def __init__(self, kept: dict[str, list[Any]], mutation: bool) -> None:
        self.kept, self.mutation = kept, mutation

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, func.__name__
        if name in SAC_IGNORED_OPS or not mode.watching.hooks:
            return func(*args, **kwargs)
        calls, index = self.kept.get(name), self.counts[name]
        self.counts[name] += 1
        if calls is None or index >= len(calls):
            where = "" if calls is None else f" invocation index {index}"
            raise RuntimeError(f"{_operator(func, args)}{where} encountered during backward but not found in storage. "
                               "This can happen if the operations in the checkpointed region are nondeterministic or "
                               "depend on global state that changed between forward and backward.")
        call = calls[index]
        if call is None:
            return func(*args, **kwargs)
        if call.used:
            raise RuntimeError("Trying to backward an extra time. You are only allowed to backward once on any region "
                               "computed under selective activation checkpoint.")
        call.used, results = True, _tensors(call.out)
        if not self.mutation and [x._version for x in results] != call.versions:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        places = {"out": results, "args": _tensors([args, kwargs])}
        out, saved, call.out, call.saved = call.out, call.saved, None, None
        for place in saved:
            mode.watching.hooks[-1][0](places[place[0]][place[1]] if type(place) is tuple else place)
        needs = iter(call.needs)
        return tree_map(lambda x: _as_result(x) if isinstance(x, tg.Tensor) and next(needs) else x, out)


def _as_result(tensor: Any) -> Any:
    """Return a kept tensor as the result of a step, which may be written to; the second run's tape is never pulled."""
    start = tensor.detach().requires_grad_()
    return failing("the second run of a checkpointed part has no backward", start)[0]
