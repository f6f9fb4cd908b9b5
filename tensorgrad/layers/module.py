"""`layers.Module`: PyTorch's Module with helpers that move weights between models, and save, rebuild and clone
models.
"""
import copy
import os

import numpy as np

from .. import api as tg
from .. import nn, serialization
from ..nn.parameter import is_lazy
from .scope import get_default_device_dtype, in_device_scope
from .tensors import th_hard_update, th_soft_update
from .utils.arguments import captured

__all__ = ["Module"]

PLAIN = (type(None), bool, int, float, complex, str, bytes, tg.dtype, tg.device, tg.Size)
TABLES = ("_parameters", "_buffers", "_modules")


class Module(nn.Module):
    """A `torch.nn.Module` that knows how it was made, follows the `device_scope` it is called in, and need not call
    `super().__init__()`.

    `init_args_dict` holds the arguments of the constructor: positional ones in a list under None, keyword arguments by
        name.

    >>> import tensorgrad as torch
    >>> from tensorgrad.layers.module import Module
    >>> class Net(Module):
    ...     def __init__(self, width, *, bias=True):
    ...         self.linear = torch.nn.Linear(3, width, bias=bias)
    ...     def forward(self, x):
    ...         return self.linear(x)
    >>> net = Net(2, bias=False)
    >>> net.init_args_dict, net(torch.ones(1, 3)).shape
    ({None: [2], 'bias': False}, torch.Size([1, 2]))
    """

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        self.__dict__["call_super_init"] = False        # super().__init__() of the next class is called in __init__
        nn.Module.__init__(self)
        del self.__dict__["call_super_init"]
        self.__dict__["init_args_dict"] = captured(args, kwargs)
        return self

    def __init__(self, *args, **kwargs):
        early = {name: self.__dict__[name] for name in TABLES}
        super().__init__(*args, **kwargs)
        for name, table in early.items():               # keep what a subclass assigned before this call
            self.__dict__[name] = {**table, **self.__dict__[name]}

    def __call__(self, *args, **kwargs):
        if in_device_scope() and not getattr(self, "_is_replica", False):
            self._follow(*get_default_device_dtype())
        return super().__call__(*args, **kwargs)

    def _follow(self, device, dtype):
        """Move parameters and buffers, those of floating point in this dtype. Parameters stay the same objects."""
        def placed(tensor):
            return tensor.to(device, dtype) if tensor.is_floating_point() else tensor.to(device)
        if any(t.device != device or t.dtype != dtype and t.is_floating_point()
               for t in (*self.parameters(), *self.buffers())):
            self._apply(placed)

    # ── weights ───────────────────────────────────────────────────────────────────────────────

    def copy_from(self, module):
        """Take the parameters and buffers of another module of the same form; returns this one.

        Errors: ValueError if the forms differ.
        """
        th_hard_update(self, module)
        return self

    def copy_to(self, module):
        """Give the parameters and buffers to another module of the same form; returns this one."""
        th_hard_update(module, self)
        return self

    def soft_update(self, module, tau):
        """Move all parameters towards another module's: p ← (1 − tau)·p + tau·q.

        Buffers are copied. Returns this module.

        >>> import tensorgrad as torch
        >>> from tensorgrad.layers.module import Module
        >>> slow, fast = Module(), Module()
        >>> slow.p, fast.p = torch.nn.Parameter(torch.zeros(1)), torch.nn.Parameter(torch.ones(1))
        >>> slow.soft_update(fast, 0.1).p.item()
        0.10000000149011612
        """
        th_soft_update(self, module, tau)
        return self

    def hard_update(self, module):
        """Take another module's parameters and buffers: an alias of `copy_from`."""
        return self.copy_from(module)

    def freeze(self):
        """Let no parameter require a gradient."""
        return self.requires_grad_(False)

    def unfreeze(self):
        """Let all parameters require gradients."""
        return self.requires_grad_(True)

    def clip_grad_value(self, clip_value):
        """Clip all gradients to [−clip_value, clip_value], in place."""
        nn.utils.clip_grad_value_(self.parameters(), clip_value)

    def clip_grad_norm(self, max_norm, norm_type=2):
        """Scale all gradients, in place, such that their common norm is at most `max_norm`; returns the norm before."""
        return nn.utils.clip_grad_norm_(list(self.parameters()), max_norm, norm_type)

    def parameters_to_binary(self):
        """The elements of all parameters, one after the other, as bytes of float32."""
        return b"".join(p.detach().to("cpu", tg.float32).numpy().astype("<f4", order="C").tobytes()
                        for p in self.parameters())

    def parameters_from_binary(self, binary):
        """Take the parameters from what `parameters_to_binary` gave.

        Errors: ValueError for another length; nothing is changed then.
        """
        parameters = list(self.parameters())
        expected = 4 * sum(p.numel() for p in parameters)
        if len(binary) != expected:
            raise ValueError(f"the parameters take {expected} bytes, got {len(binary)}")
        values = tg.from_numpy(np.frombuffer(binary, "<f4").astype(np.float32))
        with tg.no_grad():
            for p, part in zip(parameters, values.split([p.numel() for p in parameters])):
                p.copy_(part.view(p.shape))
        return self

    # ── copies and files ──────────────────────────────────────────────────────────────────────

    def clone(self):
        """Another module, made with the same arguments, with copies of the weights, on the same devices, in the same
        mode.

        Later changes of the module are not copied: `copy.deepcopy` does that. Errors: ValueError
        if its form has changed.
        """
        arguments = copy.deepcopy(self.init_args_dict)
        twin = type(self)(*arguments.pop(None, []), **arguments)
        with tg.no_grad():
            for ours, theirs in zip((*self.parameters(), *self.buffers()), (*twin.parameters(), *twin.buffers())):
                if theirs.device != ours.device or theirs.dtype != ours.dtype:
                    theirs.data = theirs.to(ours.device, ours.dtype)
        th_hard_update(twin, self)
        for ours, theirs in zip(self.parameters(), twin.parameters()):
            if theirs.requires_grad != ours.requires_grad:
                theirs.requires_grad_(ours.requires_grad)
        for ours, theirs in zip(self.modules(), twin.modules()):
            theirs.training = ours.training
        return twin

    def save(self, f):
        """Write the weights, and the arguments that the module was made with, to a file; `~` in a path is the home
        directory.

        A file that is there stays whole until the new one is. Errors: TypeError, and no file, unless the arguments are
            plain data: numbers, text, None,
        dtypes, devices, tensors, and lists, tuples and dicts of these; ValueError for a parameter that waits for its
        shape.
        """
        arguments = self.init_args_dict
        check_plain(arguments, "the constructor's arguments")
        for name, tensor in (*self.named_parameters(), *self.named_buffers()):
            if is_lazy(tensor):
                raise ValueError(f"{name} waits for its shape: call the module before it is saved")
        keywords = {name: value for name, value in arguments.items() if name is not None}
        serialization.save({"args": arguments.get(None, []), "kwargs": keywords, "state_dict": self.state_dict()},
                           expanded(f))

    def load(self, f):
        """Take the weights from a file that `save` wrote; returns the module.

        Errors: RuntimeError if they do not fit; nothing is changed then.
        """
        self._take(contents(f)["state_dict"])
        return self

    @classmethod
    def load_with_init(cls, f):
        """A new module, made with the arguments that are in the file, with its weights.

        The file runs no code; the class is this one.
        """
        data = contents(f)
        module = cls(*data["args"], **data["kwargs"])
        module._take(data["state_dict"])
        return module

    def _take(self, state):
        before = copy.deepcopy(self.state_dict())
        try:
            self.load_state_dict(state)
        except Exception:
            self.load_state_dict(before)
            raise


def expanded(f):
    return os.path.expanduser(f) if isinstance(f, (str, os.PathLike)) else f


def contents(f):
    """Read a file of `Module.save`, without running code that the file names. ValueError if it is another file."""
    data = serialization.load(expanded(f), map_location="cpu", weights_only=True)
    kinds = {"args": list, "kwargs": dict, "state_dict": dict}
    if not isinstance(data, dict) or any(not isinstance(data.get(name), kind) for name, kind in kinds.items()):
        raise ValueError("this is no file of a layers.Module: it must hold the constructor's arguments and the weights")
    return data


def check_plain(value, path):
    """Raise TypeError, with the path, for a value that can only be rebuilt by running code."""
    if type(value) is dict:
        for key, part in value.items():
            check_plain(key, f"{path}: key {key!r}")
            check_plain(part, f"{path}[{key!r}]")
    elif type(value) in (list, tuple):
        for i, part in enumerate(value):
            check_plain(part, f"{path}[{i}]")
    elif type(value) not in PLAIN and not isinstance(value, tg.Tensor):
        raise TypeError(f"{path} cannot be saved: {type(value).__name__} is no plain data (numbers, text, None, "
                        "dtypes, devices, tensors, and lists, tuples and dicts of these)")
