"""Inputs split among devices, outputs put together again, whatever nest of tuples, lists and dicts they come in."""
from ... import api as tg
from ._functions import Gather, Scatter
from .comm import destination_of, place

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def is_namedtuple(obj):
    """Whether an object is a tuple with names."""
    return isinstance(obj, tuple) and hasattr(obj, "_fields") and hasattr(obj, "_asdict")


def scatter(inputs, target_gpus, dim=0):
    """For each device the inputs with a chunk of each tensor; what is no tensor goes to all of them.

    With fewer elements along `dim` than devices, there are as many results as chunks. See PyTorch's `torch.nn.parallel.scatter`.

    >>> from tensorgrad.nn.parallel import scatter
    >>> scatter({"scale": 2}, [0, 1])
    [{'scale': 2}, {'scale': 2}]
    """
    return scattered(inputs, [place(device) for device in target_gpus], dim)


def scattered(inputs, devices, dim):
    """`scatter` to devices of any kind."""
    if isinstance(inputs, tg.Tensor):
        return Scatter.apply(devices, None, dim, inputs)
    if isinstance(inputs, (tuple, list, dict)) and inputs:
        parts = zip(*(scattered(part, devices, dim) for part in (inputs.items() if isinstance(inputs, dict) else inputs)))
        if is_namedtuple(inputs):
            return [type(inputs)(*part) for part in parts]
        return [part if isinstance(inputs, tuple) else type(inputs)(part) if isinstance(inputs, dict) else list(part) for part in parts]
    return [inputs for _ in devices]


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """`scatter` for the arguments of a call: a tuple of argument tuples, and one of as many keyword dicts."""
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(args), len(named))
    return (*args, *[() for _ in range(count - len(args))]), (*named, *[{} for _ in range(count - len(named))])


def gather(outputs, target_device, dim=0):
    """What several devices gave, as one of its kind on the target device. See PyTorch's `torch.nn.parallel.gather`.

    Errors: AssertionError for tensors on the CPU, ValueError for dicts of unlike size.
    """
    return gathered(outputs, destination_of(target_device), dim)


def gathered(outputs, device, dim, cpu=False):
    """`gather`; with `cpu`, also from the CPU."""
    first = outputs[0]
    if isinstance(first, tg.Tensor):
        if not cpu and any(output.device.type == "cpu" for output in outputs):
            raise AssertionError("Gather function not implemented for CPU tensors")
        return Gather.apply(device, dim, *outputs)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gathered([output[key] for output in outputs], device, dim, cpu)) for key in first)
    if isinstance(first, str):
        raise TypeError("'str' object cannot be gathered")
    parts = [gathered(part, device, dim, cpu) for part in zip(*outputs, strict=True)]
    return type(first)._make(parts) if is_namedtuple(first) else type(first)(parts)
