"""torch.utils.tensorboard: logs for TensorBoard, as the package tensorboardX writes them. https://pytorch.org/docs/stable/tensorboard.html"""

__all__ = ["FileWriter", "SummaryWriter"]


def _writers():
    try:
        from tensorboardX import FileWriter, SummaryWriter
    except ImportError as error:
        raise ImportError("torch.utils.tensorboard needs tensorboardX: pip install 'tensorgrad-engine[tensorboard]'") from error
    return FileWriter, SummaryWriter


FileWriter, SummaryWriter = _writers()
