"""Compiles the kernels while the package is built or installed.

Without a C compiler, or with TENSORGRAD_PURE=1, it is pure Python.
"""
from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or os.environ.get("TENSORGRAD_PURE", "0") not in ("", "0"):
            return
        sys.path.insert(0, str(Path(self.root, "native")))
        from build import build
        package = Path(self.root, "tensorgrad")
        self.scratch = tempfile.TemporaryDirectory()
        try:
            module = build(package if version == "editable" else Path(self.scratch.name))
        except (OSError, subprocess.CalledProcessError) as error:
            self.app.display_warning(f"Without compiled kernels: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(module)] = f"tensorgrad/{module.name}"
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "scratch"):
            self.scratch.cleanup()
