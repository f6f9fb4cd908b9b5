import sys
from pathlib import Path

import pytest

import tensorgrad as tg

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def both(torch):
    """(this package, PyTorch)."""
    return tg, torch
