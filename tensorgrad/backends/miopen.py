"""torch.backends.miopen: not used. https://pytorch.org/docs → torch.backends.miopen"""
from ._switches import flags_of

immediate = False
set_flags, flags = flags_of(__name__, immediate=False)
