"""Helpers that find what a package needs."""
from .is_from_package import is_from_package
from .trace_dependencies import trace_dependencies

__all__ = ["is_from_package", "trace_dependencies"]
