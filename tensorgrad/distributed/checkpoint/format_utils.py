"""From a folder of a checkpoint to one file of `torch.save`, and back. https://pytorch.org/docs → torch.distributed.checkpoint.format_utils

    python -m tensorgrad.distributed.checkpoint.format_utils dcp_to_torch folder model.pt
"""
from __future__ import annotations

import argparse
import os
from typing import Any

from ... import serialization
from ._together import Together
from .default_planner import _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .state_dict_loader import _load_state_dict
from .state_dict_saver import _save_state_dict

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write a checkpoint that `save` wrote as one file, which `torch.load` reads. https://pytorch.org/docs → dcp_to_torch_save"""
    state_dict: dict[str, Any] = {}
    _load_state_dict(state_dict, FileSystemReader(dcp_checkpoint_dir), Together(None, True), _EmptyStateDictLoadPlanner())
    serialization.save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Write a file of `torch.save`, which is read without running it, as a checkpoint. https://pytorch.org/docs → torch_save_to_dcp"""
    _save_state_dict(serialization.load(torch_save_path), FileSystemWriter(dcp_checkpoint_dir), Together(None, True), None)


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.format_utils", description=(__doc__ or "").split(". ")[0])
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"])
    parser.add_argument("src", help="what to read")
    parser.add_argument("dst", help="what to write")
    given = parser.parse_args(arguments)
    (torch_save_to_dcp if given.mode == "torch_to_dcp" else dcp_to_torch_save)(given.src, given.dst)


if __name__ == "__main__":
    main()
