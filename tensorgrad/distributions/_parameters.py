"""Parameters that come in two forms: probabilities, or their logarithms."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import api as tg
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits, same_as

if TYPE_CHECKING:
    from .._tensor import Tensor


def one_of(probs: Any, logits: Any) -> None:
    """Raise ValueError unless exactly one of them is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class TwoForms:
    """Parameters given in one form; the other is computed on first access."""

    _expands = ("probs", "logits")
    _is_binary = False

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _param(self):
        return self.probs if "probs" in self.__dict__ else self.logits

    @property
    def param_shape(self) -> Any:
        return self._param.size()


class BinaryParameters(TwoForms):
    """Parameters of binary trials: probs, or logits = ln(probs / (1 − probs))."""

    _is_binary = True

    def _set_parameters(self, probs, logits, *others):
        """Keep the given form; return the others in its shape and dtype."""
        one_of(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        *others, value = broadcast_all(*others, given)
        setattr(self, name, value)
        return [other.type_as(value) for other in others]


class CategoricalParameters:
    """Parameters kept in a Categorical."""

    _expands = ("_categorical",)

    probs = same_as("_categorical.probs")
    logits = same_as("_categorical.logits")
    _param = same_as("_categorical._param")
    param_shape = same_as("_categorical.param_shape")


def counted(count: Any, dtype: Any, distribution: Any, expand: Any) -> Any:
    """Return 0 … count − 1 along a new first dimension: the values of a variable, for the whole batch."""
    batch_shape = distribution.batch_shape
    values = tg.arange(count, dtype=dtype, device=distribution._param.device).view((-1,) + (1,) * len(batch_shape))
    return values.expand((-1,) + batch_shape) if expand else values
