"""Edges of layers that PyTorch's own tests meet: shapes without elements, arguments of `to`, halves, strides."""
import numpy as np
import pytest
from side_by_side import same


def attempt(function):
    """Return a function's result, or the exception's type and first line."""
    try:
        return function()
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error).__name__, str(error).partition(", but expected")[0].partition("\n")[0]


def test_module_to_checks_its_arguments():
    def program(torch):
        net, cpu, dtype = torch.nn.Linear(2, 2), torch.device("cpu"), torch.float64
        calls = (lambda: net.to(cpu, True), lambda: net.to(None, True), lambda: net.to("cpu", copy=True),
                 lambda: net.to(cpu, True, dtype), lambda: net.to(cpu, foo=3), lambda: net.to(dtype, cpu),
                 lambda: net.to(torch.long), lambda: str(net.to(cpu, dtype, True).weight.dtype),
                 lambda: str(net.to(tensor=torch.ones(1)).weight.dtype))
        return [attempt(call) for call in calls]
    same(program)


def test_formats_of_modules_and_pools():
    def program(torch):
        conv = torch.nn.Conv2d(1, 4, 3).to(memory_format=torch.channels_last)
        weights = [t.stride() for t in (conv.weight, torch.randint_like(conv.weight, 3), torch.rand_like(conv.weight))]
        back = conv.to(memory_format=torch.contiguous_format).weight.stride()
        x = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
        volume = torch.rand(1, 3, 4, 4, 4).to(memory_format=torch.channels_last_3d)[0].clone()
        pooled = torch.nn.functional.max_pool3d(volume, 2)
        return weights, back, torch.nn.functional.adaptive_avg_pool2d(x, 1).stride(), pooled.stride(), pooled.shape
    same(lambda torch: [str(part) for part in program(torch)])


def test_pools_and_packs_without_elements():
    def program(torch):
        functional, pack = torch.nn.functional, torch.nn.utils.rnn.pack_padded_sequence
        x = torch.ones(1, 1, 4)
        return [attempt(call) for call in (
            lambda: tuple(functional.fractional_max_pool2d(torch.rand(2, 3, 8, 8), 2, output_size=(0, 1)).shape),
            lambda: tuple(functional.fractional_max_pool3d(torch.rand(2, 8, 8, 8), 2, output_size=(0, 1, 1)).shape),
            lambda: functional.max_pool1d_with_indices(x, 3, stride=2, dilation=2),
            lambda: functional.max_pool1d(x, 3, stride=2, dilation=2),
            lambda: pack(torch.ones(0, 2, 2), torch.ones(1, 2)))]
    same(program)


def test_rows_of_embeddings():
    """Rows of halves are scaled down by factors that are halves; bags take rows of indices, and refuse other shapes."""
    def program(torch):
        found = []
        for dtype in (torch.bfloat16, torch.float16, torch.float32):
            table = torch.tensor(np.random.RandomState(0).randn(6, 5) * 3).to(dtype)
            found.append(torch.embedding_renorm_(table, torch.tensor([0, 1, 3]), 1.5, 2.).double())
        table, index = torch.arange(15.).reshape(5, 3), torch.zeros(2, 2, dtype=torch.int64)
        calls = ((table, index, index[0, :1]), (table, index[None], index[0]), (table, index[0], index),
                 (table[0], index[0], index[0]))
        return found, [attempt(lambda args=args: torch.embedding_bag(*args)[0]) for args in calls]
    same(program)


def test_attention_over_an_empty_batch():
    def program(torch):
        attention = torch.nn.MultiheadAttention(8, 2)
        x = torch.ones(3, 0, 8)
        return tuple(attention(x, x, x)[0].shape)
    same(program)


@pytest.mark.parametrize("name, n, sizes", [("adaptive_avg_pool1d", 1, 0), ("adaptive_max_pool1d", 1, 0),
                                            ("adaptive_avg_pool2d", 2, (7, 0)), ("adaptive_max_pool3d", 3, (1, 0, 2))])
def test_backward_refuses_empty_results_of_adaptive_pooling(name, n, sizes):
    def found(lib):
        x = lib.ones(2, 3, *[5] * n, requires_grad=True)
        y = getattr(lib.nn.functional, name)(x, sizes)
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
        return tuple(y.shape), str(caught.value).splitlines()[0]
    assert found(pytest.importorskip("tensorgrad")) == found(pytest.importorskip("torch"))
