"""Parts of ``DataLoader``: collating, fetching, workers."""
import sys

from ....nn.parallel._errors import ExceptionWrapper
from . import collate, fetch, pin_memory, worker

__all__ = ['ExceptionWrapper', 'collate', 'fetch', 'pin_memory', 'worker']

IS_WINDOWS, HAS_NUMPY = sys.platform == 'win32', True
# seconds after which PyTorch looks whether a process that it waits for is alive; a pipe that closes says so here
MP_STATUS_CHECK_INTERVAL = 5.0
