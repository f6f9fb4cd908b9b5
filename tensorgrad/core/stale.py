"""The errors for saved values that cannot be used any more: freed, or modified since."""
from __future__ import annotations

from typing import Any

from ..advice import advised
from ..dtype import FROM_NUMPY, SCALAR_TYPES
from .mode import mode


def second_time(step: Any) -> RuntimeError:
    """Return the error for a step that a backward has freed."""
    error = RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
        "saved tensors after calling backward.")
    return advised(error, "of_second_time", step)


def stale(node: Any, array: Any, storage: Any, source: Any, expected: int | None) -> RuntimeError:
    """Return the error for a value that `node` saved and that was modified since.

    `source` is the step that computed it.
    """
    kind = (f"{'torch' if storage.device.type == 'cpu' else 'torch.cuda'}."
            f"{SCALAR_TYPES[FROM_NUMPY[array.dtype].name]}Tensor")
    step, place = (None, 0) if source is None else source.as_function()
    came_from = (f", which is output {place} of {step.name().rpartition('Backward')[0] or step.name()},"
                 if step is not None and step.edges else "")
    error = RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: [{kind} "
        f"{list(array.shape)}]{came_from} is at version {storage.version}; expected "
        f"{'an earlier version' if expected is None else f'version {expected}'} instead. Hint: " + (
            "the backtrace further above shows the operation that failed to compute its gradient. The variable in "
            "question was changed in there or anywhere later. Good luck!" if mode.watching.anomaly else
            "enable anomaly detection to find the operation that failed to compute its gradient, with "
            "torch.autograd.set_detect_anomaly(True, check_nan=False)."))
    return advised(error, "of_write", node, storage, source, getattr(node, "since", getattr(node, "time", 0)))
