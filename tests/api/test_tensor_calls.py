"""Arguments and refusals of functions that make, index and look at tensors, beside PyTorch's."""
import copy

import numpy as np
import pytest
from side_by_side import same
from support import Programs

import tensorgrad

program = Programs()


@program
def sequences_keep_the_shape_of_out(torch):
    x, whole = torch.zeros(2, 3), torch.zeros(2, 2, dtype=torch.int32)
    turned = torch.zeros(2, 3).t()
    torch.arange(0, 4, out=x.narrow(1, 1, 2))
    torch.arange(0, 6, out=turned)
    return (x, torch.linspace(0, 3, 4, out=whole), turned, torch.logspace(0, 3, 4, out=torch.zeros(2, 2)),
            torch.arange(0, 4, out=torch.zeros(0)), torch.arange(0, 5, out=torch.zeros(2, 3)))


@program
def made_otherwise(torch):
    class Three:
        def __len__(self):
            return 3

        def __getitem__(self, place):
            return [1., 2., 3.][place]
    empty = torch.ones(0)
    return (torch.tensor(Three()), torch.cat([empty, empty], dim=1), torch.asarray(np.float64(0.5)),
            torch.add(torch.tensor(True), True, alpha=True), str(torch.float16.to_complex()),
            torch.bernoulli(torch.ones(2), out=torch.zeros(2, dtype=torch.int32)),
            torch.pow(self=2, exponent=torch.ones(2)), torch.remainder(self=7, other=torch.tensor([2, 3])),
            torch.empty(1).cauchy_(float("inf"), 0.5), torch.eye(2, out=torch.empty(3)))


@program
def strides_of_new_axes(torch):
    x = torch.arange(6).view(2, 3)
    return [y.stride() for y in (x[None], x[:, None], x[0, None, :, None], x.t()[None, None], x[..., None],
                                 x.expand(1, 1, 2, 3), torch.ones(3).expand(1, 3), torch.tensor(1).expand(1))]


@program
def chosen_elements_of_expanded_tensors(torch):
    def spread():
        return torch.zeros(2, 1).expand(2, 3)
    mask = torch.tensor([[True, False, False], [False] * 3])
    written = spread()
    written[torch.tensor([1])] = 3.
    added = spread().index_put_((torch.tensor([1, 1]),), torch.tensor(2.), accumulate=True)
    return (spread().masked_fill_(mask, 1.), spread().index_fill_(1, torch.tensor([1]), 2.),
            spread().index_fill_(0, torch.tensor([1]), 2.), written, added)


@program
def conversions_in_a_format(torch):
    x = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    plain, last = {"memory_format": torch.contiguous_format}, {"memory_format": torch.channels_last}
    made = (x.to(torch.float64, **plain), x.to(torch.float32, **plain), x.type(torch.float64, **plain), x.cpu(**plain),
            x.double(**plain), x.float(**plain), x.to(torch.float64), x.contiguous().to(torch.float64, **last),
            x.type("torch.DoubleTensor", **plain), x.to(torch.float32, copy=True, **plain))
    turned = torch.ones(2, 3).t()
    return [y.stride() for y in made], turned.to(torch.float32, **plain).stride(), turned.double(**plain).stride()


@program
def a_wrapped_diagonal(torch):
    return torch.zeros(7, 3, 3)[:, 1].fill_diagonal_(1., wrap=True), torch.zeros(9, 2).fill_diagonal_(2., wrap=True)


@program
def runs_with_nan(torch):
    x = torch.tensor([1, float("nan"), 3, 4, 4, 2], dtype=torch.float64)
    found = []
    for reduce in ("max", "min", "prod"):
        leaf = copy.deepcopy(x).requires_grad_()
        y = torch.segment_reduce(leaf, reduce, lengths=torch.tensor([1, 2, 3, 0]), initial=1)
        y.backward(torch.tensor([2., 3., 5., 7.], dtype=torch.float64))
        found += [y, leaf.grad]
    none = torch.ones(0, 2, requires_grad=True)
    return [*found, torch.segment_reduce(none, "max", lengths=torch.tensor([0])).requires_grad,
            torch.zeros(2).scatter_add(0, torch.ones(0, dtype=torch.int64), none.reshape(0)).requires_grad,
            torch._segment_reduce(x, "sum", lengths=torch.tensor([6]))]


@program
def unsigned_numbers_are_subtracted_in_the_common_dtype(torch):
    small, wide = torch.tensor([3, 4, 1], dtype=torch.uint8), torch.tensor([1, 0, 2], dtype=torch.int16)
    return (wide - small.to_sparse(), (wide.to_sparse() - small.to_sparse()).to_dense(),
            torch.ones(3) - torch.tensor([3, 4, 1]).to_sparse())


test_programs = program.test()


def again():
    whole = [0]
    whole.append(whole)
    return whole


REFUSED = [
    lambda t: t.tensor(again()), lambda t: t.asarray(np.float64(1), copy=False), lambda t: t.from_numpy(np.float64(3)),
    lambda t: t.frombuffer(b"1234", dtype=t.int8), lambda t: t.repeat_interleave(t.tensor([1, -1])),
    lambda t: t.repeat_interleave(t.tensor([1, 2]), -1), lambda t: t.empty([0, 4, 2**61]),
    lambda t: t.empty_strided((2, 3), (-1, 1)), lambda t: t.empty_strided([8, 8], [2**61, 1]),
    lambda t: t.meshgrid(t.tensor([1]), t.tensor([2], device="meta"), indexing="ij"),
    lambda t: t.finfo("a"), lambda t: t.iinfo(1), lambda t: t.int8.to_complex(), lambda t: t.bool.to_complex(),
    lambda t: t.tensor_split(t.tensor(1.), 2), lambda t: t.tensor_split(t.ones(3), t.tensor([[1]])),
    lambda t: t.unravel_index(t.tensor(3), 2.5), lambda t: t.unravel_index(t.tensor(3), t.tensor([2, 3])),
    lambda t: t.view_as_complex(t.ones(3, 3).as_strided((2, 2), (1, 1))),
    lambda t: t.view_as_complex(t.ones(4, 4).as_strided((2, 2), (4, 1), 1)), lambda t: t.ones(2, 2, 2).to_sparse().t(),
    lambda t: t.ones(3).map_(t.ones(3, requires_grad=True), min), lambda t: t.arange(3).apply_(lambda k: "a"),
    lambda t: t.ones(3).apply_(lambda k: [1]), lambda t: t.index_select(t.ones(0, 3), 0, t.tensor([0])),
    lambda t: t.index_select(t.tensor(3.), 0, t.tensor([1])), lambda t: t.ones(2).__delitem__(0),
    lambda t: t.ones(2, 3).scatter(0, t.tensor([[0, 1, 1]]), t.zeros(1, 2)),
    lambda t: t.ones(2, 3).scatter_add(0, t.tensor([[0, 1, 1, 1]]), t.zeros(1, 4)),
    lambda t: t.ones(2, 3).scatter_add(0, t.tensor([[0.]]), t.zeros(1, 1)),
    lambda t: t.ones(3).bool().scatter_reduce(0, t.tensor([0]), t.ones(1).bool(), "mean"),
    lambda t: t.ones(2, 3).index_add(0, t.tensor([[0, 1]]), t.ones(2, 3)),
    lambda t: t.ones(2).repeat(-1), lambda t: t.ones(2, 6)[:, ::2].view(t.float64),
    lambda t: t.as_strided(t.ones(4), (2,), (1,), -1),
    lambda t: t.ones(2, 3).masked_scatter(t.ones(2, 3).int(), t.ones(6)),
]


@pytest.mark.parametrize("call", REFUSED, ids=range(len(REFUSED)))
def test_refusals(call):
    same(call)


def test_grown_memory_is_filled_if_algorithms_must_be_deterministic():
    """PyTorch's switch imports its compiler, which takes seconds."""
    tensorgrad.use_deterministic_algorithms(False, warn_only=True)
    assert tensorgrad.is_deterministic_algorithms_warn_only_enabled()
    tensorgrad.use_deterministic_algorithms(True)
    try:
        x, y = tensorgrad.ones(1).resize_(3), tensorgrad.ones(1, dtype=tensorgrad.int32).resize_(2)
    finally:
        tensorgrad.use_deterministic_algorithms(False)
    assert x.isnan().tolist() == [False, True, True] and y.tolist() == [1, 2 ** 31 - 1]
    assert not tensorgrad.is_deterministic_algorithms_warn_only_enabled()


def test_a_functions_output_leaves_other_parts_of_a_view_as_they_are():
    class First(tensorgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            parts.extend(x.unbind(0))
            return parts[0]

    parts = []
    First.apply(tensorgrad.ones(2, 2, requires_grad=True))
    assert parts[0].origin.kind == "function" and parts[1].origin.kind != "function"


def test_a_list_of_arrays_is_slow():
    with pytest.warns(UserWarning, match="Creating a tensor from a list of numpy.ndarrays is extremely slow"):
        tensorgrad.tensor([np.array([0]), np.array([1])])


def test_a_dropped_element():
    x = tensorgrad.ones(3)
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del x[0]
    assert len(x) == 3
