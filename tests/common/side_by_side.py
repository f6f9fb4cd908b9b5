"""Run a small program with tensorgrad and with PyTorch, and compare all that it returns, raises and warns of."""
import importlib
import re
import warnings
from collections import UserList

import numpy as np
import pytest

import tensorgrad


def same(program, rtol=1e-6, atol=1e-7):
    """Assert that ``program(torch)`` comes to the same with both libraries."""
    oracle = pytest.importorskip('torch')
    importlib.import_module('torch.optim.swa_utils')
    ours, theirs = outcome(program, tensorgrad), outcome(program, oracle)
    compare(ours, theirs, rtol, atol, 'result')


def outcome(program, torch):
    """Return the program's result or its exception, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        # Python's, from 3.12 on, to PyTorch
        warnings.filterwarnings('ignore', r'the \(type, exc, tb\) signature of throw')
        torch.manual_seed(0)
        torch.set_warn_always(True)         # else each warning comes once in a process, whichever test is the first
        if hasattr(torch._C, '_functorch'):     # how vmap does it inside, which varies with what was imported before
            torch._C._functorch._set_vmap_fallback_warning_enabled(False)
        try:
            result = neutral(program(torch), torch)
        except Exception as error:
            text = str(error.args[0]) if isinstance(error, KeyError) else str(error)
            result = type(error).__name__, text.split('\n')[0].replace('[torch.cuda.', '[torch.')
        finally:
            torch.set_warn_always(False)
    return result, [(warning.category.__name__, str(warning.message)[:70]) for warning in caught]


def neutral(value, torch):
    """The value with NumPy arrays in place of tensors, in lists and dicts."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.detach().cpu().numpy()
    if isinstance(value, dict):
        return {key: neutral(part, torch) for key, part in value.items()}
    if isinstance(value, (list, tuple, UserList)):
        return [type(value).__name__, *(neutral(part, torch) for part in value)]
    return value


def compare(ours, theirs, rtol, atol, where):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), where
        for key in theirs:
            compare(ours[key], theirs[key], rtol, atol, f'{where}[{key!r}]')
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), (where, ours, theirs)
        for index, (one, other) in enumerate(zip(ours, theirs)):
            compare(one, other, rtol, atol, f'{where}[{index}]')
    elif isinstance(theirs, np.ndarray) and theirs.dtype.kind not in 'fc':
        assert isinstance(ours, np.ndarray), (where, ours, theirs)
        np.testing.assert_array_equal(ours, theirs, err_msg=where, strict=True)
    elif isinstance(theirs, (np.ndarray, float)):
        assert type(ours) is type(theirs) and np.shape(ours) == np.shape(theirs), (where, ours, theirs)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=where)
    else:
        assert ours == theirs, (where, ours, theirs)


def attempt(function, whole=False):
    """Return the result of a part of a program, or its error: the type and the first line (or all) of its message.

    Some NotImplementedErrors have no message in PyTorch; ours is dropped.
    """
    try:
        return function()
    except Exception as error:
        text = str(error).replace('tensorgrad', 'torch')
        says = (not isinstance(error, NotImplementedError) or text.endswith(' mode')
                or not re.search('does not implement|is not known', text))
        return type(error).__name__.lstrip('_'), (text if whole else text.split('\n')[0]) if says else ''
