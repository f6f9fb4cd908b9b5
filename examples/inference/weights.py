"""Read files of weights, and explain why a file does not fit a model."""

import pickle
from pathlib import Path

import tensorgrad as torch


def read(file):
    """Return the state dict in a file: .safetensors, or a file of `torch.save` (.pt, .pth, .bin).

    No code in it is run; tensors are memory-mapped if possible. OSError, or ValueError for a file without a state dict.
    """
    with open(file, "rb") as opened:
        head = opened.read(9)
    try:
        if Path(file).suffix == ".safetensors" or head[8:] == b"{":
            from tensorgrad.utils import safetensors
            state = safetensors.load_file(file)
        else:
            state = torch.load(file, map_location="cpu", weights_only=True, mmap=head.startswith(b"PK\x03\x04"))
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        raise ValueError(f"{file} cannot be read: {' '.join(str(error).splitlines())}") from None
    except Exception as error:
        if type(error).__name__ != "SafetensorError":
            raise
        raise ValueError(f"{file} cannot be read: {' '.join(str(error).splitlines())}") from None
    for name in ("state_dict", "model_state_dict", "model"):                # a checkpoint of a training run
        if isinstance(state, dict) and isinstance(state.get(name), dict):
            state = state[name]
    if not isinstance(state, dict) or not state or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise ValueError(f"{file} does not hold a state dict: a table of names and tensors")
    return {name.removeprefix("module."): value for name, value in state.items()}


def misfit(model, state):
    """Describe the differences between a model's parameters and a state dict; "" if there are none."""
    expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    # old files lack it
    missing = [name for name in expected if name not in state and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in state if name not in expected]
    shapes = [f"{name} is {tuple(state[name].shape)}, not {shape}" for name, shape in expected.items()
              if name in state and tuple(state[name].shape) != shape]
    found = [("lacks", missing), ("has besides", unexpected), ("has other shapes:", shapes)]
    return "; ".join(f"it {says} {', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"
                     for says, names in found if names)


def fitted(build, state, file, name, others=()):
    """Return the model of `build()` with these weights, in evaluation mode.

    ValueError tells the differences, and which of `others`, (name, build), fits.
    """
    with torch.device("meta"):          # no memory and no random numbers for weights that are about to be replaced
        model = build()
        if wrong := misfit(model, state):
            better = next((other for other, build in others if other != name and not misfit(build(), state)), None)
            raise ValueError(f"{file} does not fit {name}: {wrong}" + (f". It fits {better}" if better else ""))
    model.load_state_dict(state, assign=True)
    return model.float().eval()
