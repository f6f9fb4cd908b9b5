"""A plugin for pytest, `-p sanitized`: the package takes its compiled kernels from the file that SANITIZED_KERNELS names."""
import importlib.util
import os
import sys

if path := os.environ.get("SANITIZED_KERNELS"):
    spec = importlib.util.spec_from_file_location("tensorgrad._compiled", path)
    sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[spec.name])
