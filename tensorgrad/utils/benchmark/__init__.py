"""torch.utils.benchmark: how long a statement takes. https://pytorch.org/docs/stable/benchmark_utils.html"""
from .timer import Measurement, Timer, timer

__all__ = ["Measurement", "Timer", "timer"]
