"""Initialisation by name: of a tensor, and of the weights and biases of a module."""
from functools import partial

from .. import api as tg
from .. import nn

__all__ = ["is_conv_module", "th_all_initializer_dict", "th_all_initializer_names", "th_all_nn_modules_dict",
           "th_all_nn_modules_names", "th_initialize_module",
           "th_initializer"]


def th_all_nn_modules_dict():
    """The module classes of `torch.nn` by name."""
    found = {name: getattr(nn, name) for name in dir(nn) if not name.startswith("_")}
    return {name: value for name, value in found.items() if isinstance(value, type) and issubclass(value, nn.Module)}


def th_all_nn_modules_names():
    """The names of the module classes of `torch.nn`.

    >>> "Conv2d" in th_all_nn_modules_names()
    True
    """
    return list(th_all_nn_modules_dict())


def is_conv_module(module, dim=None):
    """Return True for a convolution or transposed convolution, over `dim` axes if that is given.

    >>> import tensorgrad as torch
    >>> is_conv_module(torch.nn.Conv2d(1, 1, 1)), is_conv_module(torch.nn.Conv2d(1, 1, 1), dim=1)
    (True, False)
    """
    return isinstance(module, tuple(getattr(nn, f"{kind}{n}d") for kind in ("Conv", "ConvTranspose")
                                    for n in (1, 2, 3) if dim in (None, n)))


def th_all_initializer_dict():
    """The functions of `torch.nn.init` that fill a tensor, by their names without the underscore at the end; and
    'zero', which is 'zeros'.
    """
    found = {name[:-1]: getattr(nn.init, name) for name in dir(nn.init)
             if name.endswith("_") and not name.startswith("_")}
    return {**found, "zero": nn.init.zeros_}


def th_all_initializer_names():
    """The names that `th_initializer` knows.

    >>> {"xavier_uniform", "constant", "zero"} <= set(th_all_initializer_names())
    True
    """
    return list(th_all_initializer_dict())


def th_initializer(spec):
    """A function that fills a tensor: from a name, a dict with the name under 'method' and its arguments, or such a
    function itself.

    Errors: ValueError for a name that is not known.

    >>> import tensorgrad as torch
    >>> th_initializer({"method": "constant", "val": 3})(torch.empty(2))
    tensor([3., 3.])
    """
    if callable(spec):
        return spec
    options = dict(spec) if isinstance(spec, dict) else {"method": spec}
    known, method = th_all_initializer_dict(), options.pop("method", None)
    if method not in known:
        raise ValueError(f"there is no initializer {method!r}: there are {', '.join(sorted(known))}")
    return partial(known[method], **options) if options else known[method]


def th_initialize_module(module, weight_init="xavier_uniform", bias_init="zero"):
    """Initialise the weights and biases of linear, convolutional, recurrent and other layers with matrices in a module,
    and return it.

    Each is a spec for `th_initializer`, or a pair for recurrent layers: the first for the input's weights `weight_ih…`,
    the second for the state's `weight_hh…` (biases likewise). Norms, whose weights are vectors, are skipped.

    >>> import tensorgrad as torch
    >>> linear = th_initialize_module(torch.nn.Linear(2, 1), bias_init={"method": "constant", "val": 4})
    >>> linear.bias.item()
    4.0
    """
    fills = {kind: [th_initializer(part) for part in (spec if isinstance(spec, tuple) else (spec, spec))]
             for kind, spec in (("weight", weight_init), ("bias", bias_init))}
    if any(len(pair) != 2 for pair in fills.values()):
        raise ValueError("a tuple of initializers has two parts: for the input and for the state of a recurrent layer")
    with tg.no_grad():
        for layer in module.modules():
            parameters = dict(layer.named_parameters(recurse=False))
            if any("weight" in name and p.dim() > 1 for name, p in parameters.items()):
                for name, p in parameters.items():
                    kind = next((kind for kind in fills if kind in name), None)
                    if kind is not None:
                        fills[kind]["_hh" in name](p)
    return module
