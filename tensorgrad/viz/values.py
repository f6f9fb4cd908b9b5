"""Numbers as people read them: four digits, and of a long array its beginning and its end."""
from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from ..core.mode import no_grad
from ..core.tape import TensorBase

WHOLE = 256        # up to so many elements are kept; of a larger array, its corners
MINUS = "−"
CORNER = 3         # elements at each end of each axis


class Value:
    """An array's numbers, as they were: all of a small one, the corners of a large one.

    >>> import numpy as np
    >>> print(Value(np.array([1 / 3, 2.0])), Value(np.arange(1000.)))
    [0.3333, 2] [0, 1, 2, …, 997, 998, 999]
    """

    __slots__ = ("shape", "dtype", "kept")

    def __init__(self, array: Any) -> None:
        self.shape, self.dtype = tuple(array.shape), array.dtype
        for axis, n in enumerate(self.shape if prod(self.shape) > WHOLE else ()):
            if n > 2 * CORNER:
                array = np.take(array, (*range(CORNER), *range(n - CORNER, n)), axis=axis)
        self.kept = np.array(array)

    @staticmethod
    def of(value: Any, backend: Any = None) -> Value:
        """The value of a tensor, of a backend's array, or of a number."""
        if isinstance(value, TensorBase):
            value, backend = value.array, type(value._storage)
        if isinstance(value, (int, float, complex)):
            return Value(np.array(value))
        if not isinstance(value, (np.ndarray, np.generic)) or value.dtype.kind == "V":      # on another device, or in a dtype that is not NumPy's own
            from ..core.dispatch import wrap
            with no_grad():
                tensor = wrap(value, backend()).cpu()
                value = np.array(tensor.tolist()).reshape(tensor.shape)
        return Value(value)

    @property
    def whole(self) -> bool:
        return self.kept.shape == self.shape

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def scalar(self) -> bool:
        return prod(self.shape) == 1

    def text(self, width: int = 60) -> str:
        """In one line of at most so many characters, if there is a way: the fewest elements shown are the first and the last of each axis."""
        if self.scalar and len(self.shape) < 2:
            return short(self.kept.reshape(-1)[0])
        for corner in (None, 3, 2, 1):
            text = self._listed(corner)
            if len(text) <= width:
                return text
        flat, deep = self.kept.reshape(-1), len(self.shape)
        text = f"{'[' * deep}{short(flat[0])}, …, {short(flat[-1])}{']' * deep}" if flat.size else "[]"
        return text if len(text) <= width else f"{shape_text(self.shape)} numbers"

    def _listed(self, corner: int | None) -> str:
        def listed(part: Any, axis: int) -> str:
            if axis == len(self.shape):
                return short(part)
            n, left = self.shape[axis], len(part)
            ends = left // 2 if left < n else corner
            if ends is None or n <= 2 * ends:
                return f"[{', '.join(listed(p, axis + 1) for p in part)}]"
            ends = min(ends, corner or ends)
            return f"[{', '.join([*(listed(p, axis + 1) for p in part[:ends]), '…', *(listed(p, axis + 1) for p in part[-ends:])])}]"
        return listed(self.kept, 0)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Value({self})"


def short(number: Any) -> str:
    """A number with four digits; whole numbers with up to six.

    >>> short(2 / 3), short(12345.0), short(-1e-9), short(True)
    ('0.6667', '12345', '−1e−09', 'True')
    """
    if isinstance(number, (bool, np.bool_)):
        return str(bool(number))
    if isinstance(number, (complex, np.complexfloating)):
        return f"{short(number.real)}{'+' if number.imag >= 0 or number.imag != number.imag else ''}{short(number.imag)}j"
    if isinstance(number, (int, np.integer)):
        return str(int(number)).replace("-", MINUS)
    number = float(number)
    whole = isfinite(number) and number == round(number) and abs(number) < 1e6
    return (str(int(number)) if whole else f"{number:.4g}").replace("-", MINUS)


def shape_text(shape: tuple[int, ...]) -> str:
    """A shape as it is spoken of: '2 × 3', or nothing for a single number."""
    return " × ".join(map(str, shape))
