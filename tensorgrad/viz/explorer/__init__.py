"""An explanation as a page to explore: steps on the graph, leaves whose values can be changed, and everything that
follows from them.
"""
from .page import framed, page

__all__ = ["framed", "page"]
