"""Memory handed to other libraries and taken from them: DLPack capsules, beside PyTorch."""
import gc

import numpy as np
import pytest
from support import cpu_only, not_numpy_2_0

import tensorgrad as tg

pytestmark = [cpu_only, pytest.mark.filterwarnings("ignore")]


class Maker:
    """An object of another library, which records its requests; `old` ones follow an earlier protocol."""

    def __init__(self, array, old=False):
        self.array, self.old, self.asked = array, old, []

    def __dlpack__(self, **options):
        self.asked.append(sorted(options.items()))
        if self.old and options:
            raise TypeError("unexpected keyword")
        return self.array.__dlpack__(**{name: value for name, value in options.items() if name == "max_version"})

    def __dlpack_device__(self):
        return 1, 0


def asked(torch, **options):
    maker = Maker(np.arange(3.))
    return torch.from_dlpack(maker, **options).tolist(), maker.asked


def old_maker(torch):
    array = np.zeros(2)
    x = torch.from_dlpack(Maker(array, old=True))
    x[0] = 3.0
    return array.tolist(), x.tolist()


def shared(torch):
    x, line = torch.zeros(3), np.zeros(3)
    y, array, z = torch.from_dlpack(x), np.from_dlpack(x), torch.from_dlpack(line)
    capsule = torch.from_dlpack(x.__dlpack__())
    y[0], array[1], capsule[2], z[0] = 1, 2, 3, 4
    return x, line.tolist(), array.flags.writeable


def copied(torch):
    x = torch.zeros(2)
    for copy in (True, False, None):
        torch.from_dlpack(x, copy=copy).add_(1)
    np.from_dlpack(x, copy=True)[0] = 9
    return x


def consumed_once(torch):
    capsule = torch.utils.dlpack.to_dlpack(torch.ones(2))
    torch.utils.dlpack.from_dlpack(capsule)
    return torch.from_dlpack(capsule)


def lifetimes(torch):
    x, line = torch.arange(5.), np.arange(5.)
    capsule, array, y = torch.arange(5.).__dlpack__(), np.from_dlpack(x), torch.from_dlpack(line)
    del x, line
    gc.collect()
    return array.tolist(), y, torch.from_dlpack(capsule)


def layouts(torch):
    x = torch.arange(6.).reshape(2, 3)
    return [(torch.from_dlpack(view).stride(), torch.from_dlpack(view).tolist())
            for view in (x.t(), x[:, 1:], torch.ones(1).expand(3), torch.empty(0, 3),
                       torch.tensor(3.))]


def dtypes(torch):
    names = "float16 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128".split()
    return [str(torch.from_dlpack(np.ones(2, name)).dtype) for name in names], [
        str(np.from_dlpack(torch.ones(2, dtype=getattr(torch, name))).dtype) for name in names]


def named(value):
    return repr(value).split(" at")[0] if "capsule" in repr(value) else value


SAME = [shared, copied, consumed_once, lifetimes, layouts, dtypes, old_maker,
        *(pytest.param(what, marks=not_numpy_2_0) for what in (
            asked, "asked(torch, copy=True)", "asked(torch, copy=False)", "asked(torch, device='cpu')",
            "torch.ones(2).__dlpack__(max_version=(1, 0))", "torch.ones(2).__dlpack__(max_version=(1, 3))")),
        *(f"torch.ones(2).__dlpack__({options})"
          for options in ("", "max_version=(0, 8)", "max_version=3", "copy=True", "copy=False",
                         "dl_device=(1, 0)", "dl_device=3",
                          "dl_device=(2, 0), copy=False", "stream=None",
                         "stream=1", "stream='x'")),
        "torch.ones(2, requires_grad=True).__dlpack__()", "torch.from_dlpack(torch.ones(2, requires_grad=True))",
        "torch.ones(2, device='meta').__dlpack__()", "torch.utils.dlpack.to_dlpack(torch.ones(2, requires_grad=True))",
        "torch.from_dlpack(3)",
        "torch.from_dlpack([1])",
        "tuple(map(int, torch.ones(2).__dlpack_device__()))"]


@pytest.mark.parametrize("what", SAME, ids=lambda what: getattr(what, "__name__", what))
def test_the_same_in_both_libraries(what):
    torch = pytest.importorskip("torch")

    def said(library):
        try:
            return repr(named(eval(what, globals() | {"torch": library}) if isinstance(what, str) else what(library)))
        except Exception as error:
            return type(error), str(error)
    assert said(tg) == said(torch)


@not_numpy_2_0
def test_memory_that_must_not_be_written_to():
    line = np.zeros(2)
    line.flags.writeable = False
    x = tg.from_dlpack(line)
    with pytest.raises(ValueError, match="read-only"):
        x.fill_(1)
    assert line.tolist() == [0, 0]


@pytest.mark.parametrize("size", [(3, 4), (0,), ()])
def test_capsules_cross_over(size):
    torch = pytest.importorskip("torch")
    x, y = tg.ones(size), torch.ones(size)
    tg.from_dlpack(y).fill_(2)
    torch.from_dlpack(x).fill_(3)
    assert (x == 3).all() and (y == 2).all()
