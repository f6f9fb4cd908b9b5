"""Settings of `torch.save` and `torch.load`, as attributes.

https://pytorch.org/docs/stable/notes/serialization.html#torch-serialization-config

>>> import tensorgrad as torch
>>> config = torch.utils.serialization.config
>>> config.load.mmap, config.save.storage_alignment
(False, 64)
"""
from __future__ import annotations

from typing import Any

from ..serialization._options import options

__all__ = ["config"]


class Section:
    """Settings under PyTorch's names. names: PyTorch's name → the name of the option."""

    __slots__ = ("_names",)

    def __init__(self, names: dict[str, str]) -> None:
        object.__setattr__(self, "_names", names)

    def _named(self, name: str) -> str:
        try:
            return self._names[name]
        except KeyError:
            raise AttributeError(f"there is no setting {name!r}") from None

    def __getattr__(self, name: str) -> Any:
        return getattr(options, self._named(name))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(options, self._named(name), value)

    def __dir__(self) -> list[str]:
        return list(self._names)


class config:
    """`config.load`: mmap, endianness, mmap_flags, mmap_crc32 (verify the checksums of mapped files as well, which
    reads them entirely; PyTorch has no such setting), calculate_storage_offsets (no effect). `config.save`:
    compute_crc32, storage_alignment, use_pinned_memory_for_d2h (no effect)."""

    load = Section({"mmap": "mmap", "endianness": "endianness", "mmap_flags": "mmap_flags",
                    "mmap_crc32": "mapped_crc32",
                    "calculate_storage_offsets": "offsets"})
    save = Section({"compute_crc32": "crc32", "use_pinned_memory_for_d2h": "pinned", "storage_alignment": "alignment"})
