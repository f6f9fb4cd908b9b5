"""torch.utils.tensorboard: logs for TensorBoard. https://pytorch.org/docs/stable/tensorboard.html

The files are written here, without TensorBoard or protobuf: `summary` says what stands in them, `_wire` how messages are coded, `_files` how a file is
made of them.
"""
from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
