"""torch.utils.benchmark: measure the run time of statements. https://pytorch.org/docs/stable/benchmark_utils.html"""
from ...messages.unsupported import unsupported
from .utils.common import (
           Measurement,
           TaskSpec,
           ordered_unique,
           select_unit,
           set_torch_threads,
           trim_sigfig,
           unit_to_english,
)
from .utils.compare import Colorize, Compare
from .utils.timer import Language, Timer, timer

_ABSENT = ("CallgrindStats CopyIfCallgrind FunctionCount FunctionCounts FuzzedParameter FuzzedSparseTensor "
           "FuzzedTensor Fuzzer ParameterAlias")
__all__ = ["Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit",
           "set_torch_threads", "timer", "trim_sigfig",
           "unit_to_english", *_ABSENT.split()]
globals().update(unsupported(_ABSENT, "torch.utils.benchmark", "Valgrind is not called, and inputs are not made up"))
