"""State dicts as NumPy's .npz files, for programs that have NumPy alone. Objects are never unpickled; a file is written whole or not at all.

>>> import tempfile, tensorgrad as torch
>>> from tensorgrad.utils import npz
>>> path = tempfile.mkdtemp() + "/weights.npz"
>>> npz.save_file(torch.nn.Linear(3, 2).state_dict(), path)
>>> {name: tuple(tensor.shape) for name, tensor in npz.load_file(path).items()}
{'weight': (2, 3), 'bias': (2,)}
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..api import Tensor, from_numpy
from ..serialization._atomic import replacing

__all__ = ["load_file", "save_file"]


def save_file(tensors: Mapping[str, Tensor], path: Any) -> None:
    """Write tensors under their names. TypeError for what is no tensor, and for dtypes that NumPy has no name for, such as bfloat16."""
    arrays = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name!r} is a {type(tensor).__name__}, and .npz files hold tensors")
        if tensor.array.dtype.kind not in "biufc":
            raise TypeError(f"{name!r} is of {tensor.dtype}, which .npz files cannot say: utils.safetensors can")
        arrays[name] = tensor.detach().cpu().numpy()
    with replacing(path) as file:
        np.savez(file, **arrays)


def load_file(path: Any) -> dict[str, Tensor]:
    """The tensors of a file, by their names. ValueError for files that hold anything else."""
    found = np.load(path, allow_pickle=False)
    if isinstance(found, np.ndarray):
        raise ValueError(f"{path} is not an .npz file: it holds a single array")
    with found as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, array in arrays.items():
        if array.dtype.kind not in "biufc":
            raise ValueError(f"{name!r} is of NumPy's dtype {array.dtype}, which tensors do not have")
    return {name: from_numpy(array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))) for name, array in arrays.items()}
