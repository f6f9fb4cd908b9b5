"""`make_fx`, at the path of functorch. https://pytorch.org/docs/stable/fx.html"""
from ..fx.experimental.proxy_tensor import make_fx

__all__ = ["make_fx"]
