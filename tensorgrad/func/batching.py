"""vmap: a function of one example, run on a batch at once. https://pytorch.org/docs/stable/func.api.html"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NoReturn

from .. import api
from .._tensor import Tensor
from ..interpret.batching import hidden, level, shown
from ..utils._pytree import broadcast_prefix, tree_flatten, tree_leaves, tree_unflatten


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Any:
    """`func`, which is written for one example, on a batch: out[i] = func(x[i]). https://pytorch.org/docs → torch.vmap

    in_dims: the axis of each argument that the batch lies along, None for those that all examples share; a number for
        all, or a tuple (of tuples,
    lists, dicts, …) with one for each. out_dims: where the results get it. randomness: 'error', or whether the examples
    see 'different' or the 'same' random numbers. chunk_size: how many examples to run at a time. Keyword arguments lie
    along axis 0 of none: they are shared.

    >>> import tensorgrad as torch
    >>> weights = torch.tensor([1., 2.])
    >>> torch.vmap(lambda x: weights @ x)(torch.tensor([[1., 0.], [1., 1.], [0., 3.]]))
    tensor([1., 3., 6.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def batched(*args: Any, **kwargs: Any) -> Any:
        check_out_dims(func, out_dims)
        size, dims, leaves, spec = arguments(func, in_dims, args)
        run = partial(once, func, spec=spec, out_dims=out_dims, randomness=randomness, kwargs=kwargs)
        return (run(size, dims, leaves) if chunk_size is None
                else in_chunks(run, size, dims, leaves, out_dims, randomness, chunk_size))
    return batched


def once(func: Any, size: int, dims: list[Any], leaves: list[Any], *, spec: Any, out_dims: Any, randomness: str,
         kwargs: Any) -> Any:
    """Run func on all examples at once."""
    with level(size, randomness) as depth:
        args = tree_unflatten([x if dim is None else hidden(x, dim, depth)
                               for x, dim in zip(leaves, dims, strict=True)], spec)
        results = func(*args, **kwargs)
        parts, out_spec = tree_flatten(results)
        places = out_places(func, out_dims, results, out_spec)
        return tree_unflatten([result(func, part, place, depth, size)
                               for part, place in zip(parts, places, strict=True)], out_spec)


def in_chunks(run: Any, size: int, dims: Any, leaves: Any, out_dims: Any, randomness: str, count: int) -> Any:
    """Run func on `count` examples at a time, and concatenate the results."""
    state = api.get_rng_state() if randomness == "same" else None
    chunks, spec = [], None
    for start in range(0, size, count):
        n = min(count, size - start)
        if state is not None:
            api.set_rng_state(state)
        parts = [x if dim is None else x.narrow(dim, start, n) for x, dim in zip(leaves, dims, strict=True)]
        found, spec = tree_flatten(run(n, dims, parts))
        chunks.append(found)
    places = broadcast_prefix(out_dims, spec)  # type: ignore[arg-type]
    return tree_unflatten([api.cat(column, dim=place)
                           for column, place in zip(zip(*chunks, strict=True), places or (), strict=True)], spec)  # type: ignore[arg-type]


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def arguments(func: Any, in_dims: Any, args: Any, negative: bool = True) -> tuple[int, list[Any], list[Any], Any]:
    """Check the arguments; return the batch size, each leaf's batch axis, the leaves, and their structure.

    negative: True if axes may be counted from the end.
    """
    call = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure "
                         f"of inputs, got: {type(in_dims)}.")
    if not args:
        raise ValueError(f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
                         "trying to vmap over a function with no inputs. The latter is unsupported.")
    leaves, spec = tree_flatten(args)
    dims = broadcast_prefix(in_dims, spec)
    if dims is None:
        raise ValueError(f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
                         f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}.")
    for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or "
                             f"None.")
        if not isinstance(x, Tensor):
            raise ValueError(f"{call}: Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot "
                             "vmap over non-Tensor arguments, please use None as the respective in_dim")
        if not (-x.ndim if negative else 0) <= dim < x.ndim:
            least = f"-{x.ndim}" if negative else 0
            raise ValueError(f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                             f"{x.ndim} so expected in_dim to satisfy {least} <= in_dim < {x.ndim}.")
        dims[i] = dim % x.ndim
    sizes = [x.size(dim) for x, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} "
                         f"for the mapped dimension")
    return sizes[0], dims, leaves, spec


def name_of(func: Any) -> str:
    if isinstance(func, partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_out_dims(func: Any, out_dims: Any) -> None:
    if any(not isinstance(dim, int) and dim is not None for dim in tree_leaves(out_dims)):
        raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
                         "python collection of ints representing where in the outputs the vmapped dimension should "
                         "appear.")


def out_places(func: Any, out_dims: Any, results: Any, spec: Any) -> list[Any]:
    """Return the batch axis of each result."""
    def refuse() -> NoReturn:
        raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
                         f"the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs "
                         f"has structure {spec}.")
    if isinstance(results, Tensor) and isinstance(out_dims, tuple):
        return list(out_dims) if len(out_dims) == 1 else refuse()
    return places if (places := broadcast_prefix(out_dims, spec)) is not None else refuse()


def result(func: Any, out: Any, place: Any, depth: int, size: int) -> Any:
    """Return one result with its batch along an axis."""
    if place is None:
        if isinstance(out, Tensor) and type(out._storage).rank == depth:
            raise ValueError(f"vmap({name_of(func)}, ...): `{name_of(func)}` can not return a BatchedTensor when "
                             f"out_dim is None")
        return out
    if not isinstance(out, Tensor):
        raise ValueError(f"vmap({name_of(func)}, ...): `{name_of(func)}` must only return Tensors, got type "
                         f"{type(out)}. Did you mean to set out_dims= to None for output?")
    ndim = out.ndim + 1
    if not -ndim <= place < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {place})")
    place %= ndim
    if type(out._storage).rank < depth:       # a result that does not depend on the batch
        return out.unsqueeze(place).expand(*out.shape[:place], size, *out.shape[place:])  # type: ignore[attr-defined]
    return shown(out, place, depth, size)
