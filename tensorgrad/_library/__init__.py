"""torch._library: the parts of `torch.library`, at the paths that programs import them from."""
from .infer_schema import infer_schema

__all__ = ["infer_schema"]
