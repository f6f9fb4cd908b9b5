"""torch.utils.tensorboard: logs for TensorBoard. https://pytorch.org/docs/stable/tensorboard.html

The files are written here, without TensorBoard or protobuf: `summary` makes their contents, `_wire` encodes messages,
`_files` writes them.
"""
from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
