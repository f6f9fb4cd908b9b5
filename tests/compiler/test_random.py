"""A little of tests/campaign/compiled_graphs.py: random programs and samples of ops, compiled and eager."""
import pytest
from compiled_and_eager import Differs, check, compare, counts, names
from random_graphs import program, sampled
from support import cpu_only

from tensorgrad.compiler import passes
from tensorgrad.ops.base import OPS

pytestmark = cpu_only


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs(first):
    before = counts["compared"]
    for seed in range(first, first + 10):
        assert check(program(seed), names()) == (None, False), program(seed)
    assert counts["compared"] - before >= 8


def test_samples_of_ops():
    assert len(texts := sampled()) > 2000
    for text in texts[::37]:
        assert check(text, names())[0] is None, text


def broken(graph):
    """A pass that is wrong: relu becomes silu."""
    for node in graph.nodes:
        if node.target is OPS["relu"]:
            node.target = OPS["silu"]


NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)
    def forward(self, x):
        return F.relu(self.layer(x))
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_difference_is_found(monkeypatch, dtype):
    """The comparison, on which these tests depend, detects a wrong pass."""
    given = names()
    exec(NET, given)

    def inputs(batch, seed):
        return (given["draw"]((batch, 3), seed, dtype),)
    compare(given["Net"], inputs, seed=1, batch=2, dtype=dtype)
    monkeypatch.setattr(passes, "FIRST", [broken, *passes.FIRST])
    with pytest.raises(Differs, match="result 0 of the first call is off by"):
        compare(given["Net"], inputs, seed=1, batch=2, dtype=dtype)
