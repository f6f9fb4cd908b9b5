"""Sobol sequences are PyTorch's, bit for bit; and they fill the cube evenly."""
import sys

import pytest
from side_by_side import attempt, same

import tensorgrad as tg
from tensorgrad.quasirandom import SobolEngine, directions


@pytest.mark.parametrize("dimension, scramble, seed", [(1, False, None), (3, True, 5), (40, True, None),
                                                       (300, False, None), (directions.PACKED_DIMENSIONS, False, None)])
def test_points(dimension, scramble, seed):
    def program(torch):
        from importlib import import_module
        sobol = import_module(f"{torch.__name__}.quasirandom").SobolEngine(dimension, scramble, seed)
        drawn = [sobol.draw(n, dtype=kind) for n in (1, 1, 5, 0, 8) for kind in (torch.float32, torch.float64)]
        drawn += [sobol.fast_forward(37).draw(3), sobol.reset().fast_forward(7).draw(3), sobol.reset().draw_base2(4)]
        out = torch.empty(0)
        return drawn, sobol.sobolstate, sobol.quasi, sobol.num_generated, repr(sobol), sobol.draw(2, out=out), out
    same(program, rtol=0, atol=0)


def test_errors():
    def program(torch):
        from importlib import import_module
        engine = import_module(f"{torch.__name__}.quasirandom").SobolEngine
        return [attempt(lambda: engine(0)), attempt(lambda: engine(21202)),
                attempt(lambda: engine(2).fast_forward(3).draw_base2(2))]
    same(program)


def test_dimensions_beyond_the_packed_ones(monkeypatch):
    pytest.importorskip("scipy")
    few = SobolEngine(directions.PACKED_DIMENSIONS).sobolstate
    many = SobolEngine(directions.PACKED_DIMENSIONS + 1).sobolstate         # all of them from SciPy's table
    assert tg.equal(many[:-1], few) and bool((many[-1] % 2 ** 29 != 0).any())
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match="1111 dimensions; for 1112 it reads the table of the package scipy"):
        SobolEngine(directions.PACKED_DIMENSIONS + 1)


@pytest.mark.parametrize("scramble", [False, True])
def test_evenness(scramble):
    """The first 2ᵏ points have one in each interval of length 2⁻ᵏ, along each axis."""
    points = SobolEngine(20, scramble, seed=2).draw_base2(7)
    assert all(sorted(column) == list(range(128)) for column in (points.T * 128).floor().long().tolist())
