import pytest

import tensorgrad as tg


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def both(torch):
    """(this package, PyTorch)."""
    return tg, torch
