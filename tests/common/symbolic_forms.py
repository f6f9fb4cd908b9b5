"""The forms in which a model lives: they all compute the same."""
import copy
import pickle

from tensorgrad import Tensor
from tensorgrad.symbolic import SymbolicModel, config


def forms(inputs, outputs, picklable=True, lengths=(2, 50)):
    """(name, model) for models with and without generated source and loops, detached, copied and unpickled."""
    before = config.CODEGEN_MIN_LOOP_LENGTH
    try:
        for length in lengths:
            config.CODEGEN_MIN_LOOP_LENGTH = length
            model = SymbolicModel(inputs, outputs)
            yield f"loops from {length} on", model
            yield f"detached, loops from {length} on", model.detach_from_graph()
    finally:
        config.CODEGEN_MIN_LOOP_LENGTH = before
    yield "copied", copy.deepcopy(model)
    plain = SymbolicModel(inputs, outputs, enable_forward_codegen=False)
    yield "without source", plain
    yield "without source, detached", plain.detach_from_graph()
    if picklable:
        yield "unpickled", pickle.loads(pickle.dumps(model))
        yield "without source, unpickled", pickle.loads(pickle.dumps(plain.detach_from_graph()))


def equal(a, b):
    """Return True if two results have equal structures and equal values."""
    if isinstance(a, Tensor):
        return (isinstance(b, Tensor) and a.dtype == b.dtype and a.shape == b.shape
                and ((a == b) | ((a != a) & (b != b))).all().item())
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return type(a) is type(b) and bool(a == b)


def check(inputs, outputs, values, expected, **options):
    """Assert that the model of a graph, in each of its forms, returns the expected result."""
    for name, model in forms(inputs, outputs, **options):
        found = model(*(copy.deepcopy(values) if not any(isinstance(v, Tensor) for v in values) else values))
        assert equal(found, expected), f"{name}: {found} is not {expected}"
