"""Graphs of PyTorch's operators: run with PyTorch, they give the results of this package."""
import operator

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad._aten import OpOverload
from tensorgrad.fx.experimental.proxy_tensor import make_fx
from tensorgrad.graph.nesting import aggregate

F = tg.nn.functional
X, W = tg.arange(24.).reshape(2, 3, 4).sin(), tg.arange(24.).reshape(2, 3, 4).cos()
INDEX = tg.tensor([[2, 0], [1, 1]])
# programs, and the operators that PyTorch's own trace has for them
PROGRAMS = [
    (lambda x, w: (1 - x, 2 * x + w, x / 3, 2 ** x, x ** w, 1 < x, x == w), "rsub.Scalar mul.Tensor add.Tensor "
     "div.Tensor pow.Scalar pow.Tensor_Tensor gt.Scalar eq.Tensor"),
    (lambda x, w: (x[1], x[:, None, 1:], x[..., ::2], x[-1, 1:, 2]), "select.int unsqueeze.default slice.Tensor "
     "slice.Tensor select.int slice.Tensor select.int"),
    (lambda x, w: (2 / x, x // 2, x[0:2], x[:, 0:3], x.squeeze(), x[:1].squeeze(0), x.split(1)[1], x.argsort(1),
                   tg.special.zeta(x + 3, 2.)),
     "reciprocal.default mul.Tensor floor_divide.default slice.Tensor alias.default squeeze.default slice.Tensor "
     "squeeze.dim split.Tensor sort.default add.Tensor special_zeta.other_scalar"),
    (lambda x, w: (x.sum(), x.mean((0, 2)), x.amax(1, keepdim=True), x.var(1), x.prod(-1), (x > 0).all(1)),
     "sum.default mean.dim amax.default var.correction prod.dim_int gt.Scalar all.dim"),
    (lambda x, w: (x.max(1), x.sort(-1)[1], x.topk(2)[0], x.cummax(2)[0]), "max.dim sort.default topk.default "
     "cummax.default"),
    (lambda x, w: (tg.cat([x, w], 1), tg.stack([x, w]), x.split([1, 2], 1)[1], x.permute(2, 0, 1), x.transpose(0, 1)),
     "cat.default stack.default split_with_sizes.default permute.default transpose.int"),
    (lambda x, w: (F.pad(x, (1, 2, 0, 1), value=2.), x.flip(0), x.roll(1, 2), x.unfold(2, 2, 1), x.tril()),
     "constant_pad_nd.default flip.default roll.default unfold.default tril.default"),
    (lambda x, w: (x[0][INDEX], x.gather(2, INDEX[None].expand(2, 2, 2)), x.index_select(1, INDEX[0]),
                   x[0].scatter_add(1, INDEX, w[0])), "select.int index.Tensor gather.default index_select.default "
     "select.int select.int scatter_add.default"),
    (lambda x, w: (F.conv1d(x, w, tg.ones(2), padding=1), F.conv_transpose1d(x, w.transpose(0, 1), stride=2),
                   F.max_pool1d(x, 2), F.layer_norm(x, (4,)), F.softmax(x, 1)), None),
    (lambda x, w: (F.elu(x, 1.5), F.gelu(x, approximate="tanh"), F.hardtanh(x, -.5, .5), F.softplus(x), x.clamp(max=.3),
                   x.where(x > 0, 1.), x.masked_fill(x > 0, 2.), x.to(tg.int32), x.lerp(w, .3)), None),
    (lambda x, w: (F.mse_loss(x, w), F.cross_entropy(x, INDEX.new_tensor([[0, 2, 1, 1], [0, 0, 1, 2]])),
                   F.scaled_dot_product_attention(x, w, w), F.linear(x, w[0]), x.norm(dim=1),
                   x.logsumexp((0, 1))), None),
]


def with_pytorch(torch, module, *args):
    """Run the nodes of a trace with PyTorch's operators."""
    def theirs(value):
        if isinstance(value, tg.dtype):
            return getattr(torch, str(value).removeprefix("torch."))
        if isinstance(value, tg.device):
            return torch.device(str(value))
        return torch.from_numpy(np.array(value.numpy())) if isinstance(value, tg.Tensor) else value
    values, given = {}, iter(args)

    def argument(leaf):
        return values[leaf] if type(leaf) is tg.fx.Node else theirs(leaf)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            values[node] = theirs(next(given))
        elif node.op == "get_attr":
            values[node] = theirs(getattr(module, node.target))
        elif node.op == "call_function":
            target = node.target
            if isinstance(target, OpOverload):
                target = getattr(getattr(torch.ops.aten, target._opname), target._overloadname)
            given_args = [list(each) if isinstance(each, list) else each for each in aggregate(node.args, argument)]
            values[node] = target(*given_args, **aggregate(node.kwargs, argument))
        else:
            return tg.utils._pytree.tree_leaves(aggregate(node.args[0], argument))


@pytest.mark.parametrize("k", range(len(PROGRAMS)))
def test_operators(torch, k):
    program, names = PROGRAMS[k]
    traced = make_fx(program)(X, W)
    calls = [node for node in traced.graph.nodes if node.op == "call_function"
             and node.target is not operator.getitem]
    assert all(isinstance(node.target, OpOverload) for node in calls), [str(node.target) for node in calls]
    if names is not None:
        assert [str(node.target).removeprefix("aten.") for node in calls] == names.split()
    expected = tg.utils._pytree.tree_leaves(program(X, W))
    for found in (tg.utils._pytree.tree_leaves(traced(X, W)), with_pytorch(torch, traced, X, W)):
        for a, b in zip(found, expected, strict=True):
            assert str(a.dtype) == str(b.dtype) and a.shape == b.shape
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_ops_without_an_operator_stay():
    traced = make_fx(lambda x: tg.linalg.inv(x))(tg.eye(2))
    assert [node.target.__name__ for node in traced.graph.nodes if node.op == "call_function"] == [
        "inverse_matrix", "getitem"]
    assert tg.equal(traced(tg.eye(2) * 2), tg.eye(2) / 2)


def test_operators_by_name():
    assert tg.ops.aten.add.Tensor(tg.ones(1), 2).tolist() == [3] and "aten.mul" in str(tg.ops.aten.mul)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        tg.ops.nothing
