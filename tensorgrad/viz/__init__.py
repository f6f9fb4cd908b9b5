"""Pictures of the tape."""
from .graph import dot, render

__all__ = ["dot", "render"]
