"""The named tuples that functions with several results return. https://pytorch.org/docs → torch.return_types

>>> import tensorgrad as torch
>>> torch.tensor([[1., 5.], [7., 3.]]).max(dim=1)
torch.return_types.max(
values=tensor([5., 7.]),
indices=tensor([1, 0]))
"""
from __future__ import annotations

from operator import itemgetter
from typing import Any

FIELDS = {
    "_lu_with_info": "LU pivots info",
    "aminmax": "min max", "cummax": "values indices", "cummin": "values indices", "frexp": "mantissa exponent",
    "geqrf": "a tau", "histogram": "hist bin_edges", "histogramdd": "hist bin_edges", "kthvalue": "values indices",
    "linalg_cholesky_ex": "L info", "linalg_eig": "eigenvalues eigenvectors", "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info", "linalg_ldl_factor": "LD pivots", "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values", "linalg_lu": "P L U", "linalg_lu_factor": "LU pivots",
    "linalg_lu_factor_ex": "LU pivots info", "linalg_qr": "Q R", "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info", "linalg_svd": "U S Vh", "lu_unpack": "P L U",
    "max": "values indices", "median": "values indices", "min": "values indices", "mode": "values indices",
    "nanmedian": "values indices", "qr": "Q R", "slogdet": "sign logabsdet", "sort": "values indices", "svd": "U S V",
    "topk": "values indices",
    "triangular_solve": "solution cloned_coefficient"}


WITHOUT_OUT = {"_lu_with_info", "histogramdd"}      # no function that returns these takes `out=`


def _shown(self: Any) -> str:
    parts = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self, strict=True))
    return f"torch.return_types.{type(self).__name__}(\n{parts})"


def _record(name: str, fields: str) -> type:
    """Make a named tuple class. (collections.namedtuple compiles each class, which would slow down import.)"""
    names = tuple(fields.split())

    def __new__(cls: Any, *parts: Any) -> Any:
        """From the parts, or from one sequence of them."""
        parts = tuple(parts[0] if len(parts) == 1 else parts)
        if len(parts) != len(names):
            raise TypeError(f"torch.return_types.{name}() takes {len(names)} parts ({', '.join(names)}), not "
                            f"{len(parts)}")
        return tuple.__new__(cls, parts)
    return type(name, (tuple,), {"__slots__": (), "_fields": names, "__match_args__": names, "__new__": __new__,
                                 "__repr__": _shown, "__module__": __name__,
                                 "__doc__": f"The results of `{name}`: {', '.join(names)}.",
                                 **{field: property(itemgetter(i)) for i, field in enumerate(names)}})


globals().update({name: _record(name, fields) for name, fields in FIELDS.items()})



def __getattr__(name: str) -> Any:
    """`max_out` is the class of what `max` returns if `out=` is given: made when it is first needed."""
    bare = name.removesuffix("_out")
    if bare == name or bare not in FIELDS or bare in WITHOUT_OUT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = _record(name, FIELDS[bare])
    return made


def given(kind: Any) -> Any:
    """Return the class of a function's results if `out=` was given, for the class of its results."""
    name = f"{kind.__name__}_out"
    return globals().get(name) or (__getattr__(name) if kind.__name__ in FIELDS and kind.__name__ not in WITHOUT_OUT
                                      else kind)


__all__ = list(FIELDS)
