"""Where packages find the class of the values while a program is traced."""
from . import Proxy

__all__ = ["Proxy"]
