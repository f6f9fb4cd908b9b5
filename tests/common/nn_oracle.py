"""Run a small program with tensorgrad and with PyTorch, and compare all that shows from outside."""
import importlib
import warnings

import pytest

import tensorgrad


def agree(program):
    """Assert that `program(torch)` gives the same value or error, and the same warnings, with both libraries."""
    oracle = pytest.importorskip("torch")
    importlib.import_module("torch.nn.utils.prune")          # not imported by itself
    ours, theirs = outcome(program, tensorgrad), outcome(program, oracle)
    assert ours == theirs, f"\nours:   {ours}\ntheirs: {theirs}"


def outcome(program, torch):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.manual_seed(0)
        try:
            value = plain(program(torch), torch)
        except Exception as error:
            text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
            value = plain((type(error).__name__, text.split("\n")[0]), torch)
    return value, [(warning.category.__name__, str(warning.message)[:60]) for warning in caught]


def plain(value, torch):
    """Values that compare equal across libraries."""
    if isinstance(value, torch.Tensor):
        numbers = value.detach().to(torch.float64) if value.is_floating_point() else value
        return type(value).__name__, str(value.dtype), list(value.shape), value.requires_grad, rounded(numbers.tolist())
    if isinstance(value, torch.nn.Module):
        return repr(value)
    if isinstance(value, dict):
        return {key: plain(one, torch) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(one, torch) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, str):
        return value.replace("tensorgrad.", "torch.")
    return value if isinstance(value, (int, type(None))) else rounded(value)


def rounded(value):
    if isinstance(value, list):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.4g}") + 0.0 if abs(value) > 1e-6 else 0.0
    return value if isinstance(value, (int, bool, str)) else str(value)


# ── what programs are made of ─────────────────────────────────────────────────────────────────
def net(torch):
    """A module with everything: parameters, buffers of both kinds, children, a shared child, a missing one."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.register_buffer("scratch", torch.ones(2), persistent=False)
            self.register_buffer("empty", None)
            self.register_parameter("absent", None)
            self.first = torch.nn.Linear(2, 2)
            self.second = torch.nn.Sequential(torch.nn.Linear(2, 2, bias=False), torch.nn.ReLU())
            self.again = self.first
            self.nothing = None
            self.add_module("later", None)
            for i, parameter in enumerate(self.parameters()):
                with torch.no_grad():
                    parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) * 0.1 + i)

        def forward(self, x):
            return self.second(self.first(x)) * self.scale
    return Net()


def names(pairs):
    return [name for name, _ in pairs]


def cases(*programs):
    return pytest.mark.parametrize("program", programs, ids=lambda program: str(program.__code__.co_firstlineno))


def raising(action):
    """Return a program that returns the error of an action instead of raising it, so that one program can try
    several.
    """
    try:
        return action()
    except Exception as error:
        return type(error).__name__, str(error.args[0] if error.args else "").split("\n")[0]
