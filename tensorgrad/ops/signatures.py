"""Shapes of functions of stacks, by a signature such as (m?,n),(n,p?)->(m?,p?): the last axes, by name; k is the lesser
of m and n, and `?` says that an axis may be missing. The axes in front broadcast."""
from __future__ import annotations

from functools import lru_cache

from numpy import broadcast_shapes, result_type

CONFLICT = ("Input operand has a mismatch in its core dimension, with signature {} (size {} is different from {})")


@lru_cache(256)
def parts(signature):
    """The names of the axes of each input, and of each result."""
    return tuple(tuple(tuple(part.strip("()").split(",")) if part != "()" else ()
                       for part in side.replace("),(", ")|(").split("|"))
                 for side in signature.replace(" ", "").split("->"))


def shapes(signature, *given):
    """Return the shapes of the results, given those of the inputs."""
    inputs, outputs = parts(signature)
    sizes, leads = {}, []
    for axes, shape in zip(inputs, given, strict=True):
        missing = len(axes) - len(shape)
        if missing > 0:
            optional = [name for name in axes if name.endswith("?")]
            if len(optional) < missing:
                raise ValueError(f"Input operand does not have enough dimensions (has {len(shape)}, gufunc core with "
                                 f"signature {signature} requires {len(axes)})")
            sizes |= dict.fromkeys(optional, None)
            axes = [name for name in axes if name not in optional]
        leads.append(shape[:len(shape) - len(axes)])
        for name, n in zip(axes, shape[len(shape) - len(axes):], strict=True):
            if sizes.setdefault(name, n) != n:
                raise ValueError(CONFLICT.format(signature, n, sizes[name]))
    lead = broadcast_shapes(*leads)
    if "m" in sizes and "n" in sizes:
        sizes["k"] = min(sizes["m"], sizes["n"])
    return [(*lead, *(sizes[name] for name in axes if sizes[name] is not None)) for axes in outputs]


def inferred(signature, kinds, *inputs, **params):
    """Return (shape, dtype) of each result, or of the only one. A letter gives the dtype: the inputs' (x), the real one
    of it (r), the complex one (c), int32 (i), int64 (l)."""
    dtype = result_type(*(x.dtype for x in inputs if hasattr(x, "shape") and len(x.shape) > 1
                          and x.dtype.kind in "fcV"))
    known = {"x": dtype, "r": real_dtype(dtype), "c": complex_dtype(dtype), "i": "int32", "l": "int64"}
    found = shapes(signature, *(getattr(x, "shape", ()) for x in inputs))
    results = tuple((shape, known[kind]) for shape, kind in zip(found, kinds, strict=True))
    return results if len(results) > 1 else results[0]


def real_dtype(dtype):
    """The dtype of the parts of complex numbers."""
    return f"f{dtype.itemsize // 2}" if dtype.kind == "c" else dtype


def complex_dtype(dtype):
    """The complex dtype of the same precision."""
    return dtype if dtype.kind == "c" else "complex128" if dtype.itemsize == 8 else "complex64"
