"""Names that libraries use beside the documented ones: assertions, dtypes without tensors, operators, classes."""
import copy
import pickle
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from side_by_side import attempt, same

import tensorgrad as tg

CHECKS = """
_assert(False, 'm') ; _assert(True, 'm') ; _assert(t(False), 'm') ; _assert(t([True, False]), 'm')
_check(False) ; _check(True) ; _check(False, lambda: 'hi') ; _check(False, lambda: 3) ; _check(False, 'hi') ; _check(1) ; _check(t(True))
_check_index(False) ; _check_value(False) ; _check_type(False, lambda: 'x') ; _check_not_implemented(False)
_check_is_size(-1) ; _check_is_size(3, max=2) ; _check_is_size(3) ; _check_is_size(-3, lambda: 'foo')
_check_tensor_all(t([True, False])) ; _check_tensor_all(t([True]), lambda: 'a') ; _check_tensor_all(True) ; _check_tensor_all(t([1, 0]))
_check_tensor_all_with(ValueError, t([False]), lambda: 'q') ; _check_with(KeyError, False, lambda: 'q') ; _check_with(KeyError, False, None)
_assert_async(t(0)) ; _assert_async(t(1)) ; _assert_async(t([])) ; _assert_async(t([1, 1])) ; _assert_async(t(0), 'msg') ; _assert_async(1)
_assert_scalar(0, 'msg') ; _assert_scalar(1, 'msg') ; _assert_scalar(t(0), 'msg')
_assert_tensor_metadata(x) ; _assert_tensor_metadata(x, size=[2]) ; _assert_tensor_metadata(x, [1], [2]) ; _assert_tensor_metadata(x, None, None, torch.int64)
_assert_tensor_metadata(x, device='meta') ; _assert_tensor_metadata(x, dtype=torch.float32, device='cpu', layout=torch.strided)
_assert_tensor_metadata(x, layout=torch.sparse_coo) ; _assert_tensor_metadata(3)
get_device_module('foo') ; get_device_module('meta') ; get_device_module(3)
randint_like(t([1, 2]), high=1) ; randint_like(t([1, 2]), high=1, memory_format=torch.preserve_format) ; randint_like(t([1, 2]), low=0, high=1)
tensor_split(v, sections=2) ; tensor_split(v, indices=[1]) ; tensor_split(v, indices=(1,), dim=0) ; tensor_split(v, indices=2) ; tensor_split(v)
tensor_split(v, tensor_indices_or_sections=t(2)) ; Tensor.tensor_split(v, sections=2) ; Tensor.tensor_split(v, indices=[1]) ; Tensor.tensor_split(v)
native_layer_norm(m, [3], None, None, 1e-5) ; native_layer_norm(m, [3], w, w, 1e-5) ; native_layer_norm(m, [2], None, None, 1e-5)
native_layer_norm(m, 3, None, None, 1e-5) ; native_layer_norm(m.half(), [3], w, None, 1e-5)[1]
native_group_norm(g, None, None, 1, 2, 3, 1, 1e-5) ; native_group_norm(g, None, None, 1, 2, 3, 2, 0.1) ; native_group_norm(g, None, None, 2, 2, 3, 1, 1e-5)
native_group_norm(g, None, None, 1, 2, 3, 3, 1e-5) ; native_group_norm(g, None, None, 1, 2, 3, 0, 1e-5)
native_batch_norm(g, None, None, None, None, True, 0.1, 1e-5) ; native_batch_norm(g, w[:2], w[:2], v, v, True, 0.1, 1e-5) ; v
native_batch_norm(g, None, None, w[:2], w[:2], False, 0.1, 1e-5)
hash_tensor(m) ; hash_tensor(m, 1) ; hash_tensor(m, (0, 1), keepdim=True) ; hash_tensor(m.half(), 0) ; hash_tensor(m > 1, 0) ; hash_tensor(t(3.), 0) ; hash_tensor(m[:0])
hash_tensor(m[:0], 0) ; hash_tensor(m, 5) ; hash_tensor(m, (0, 0)) ; hash_tensor(m, mode=1) ; hash_tensor(m + 0j) ; hash_tensor(m, 0, out=torch.empty(3)) ; hash_tensor(3)
"""  # noqa: E501


@pytest.mark.parametrize("line", CHECKS.strip().splitlines())
def test_calls(line):
    def program(torch):
        t = torch.tensor
        names = {"torch": torch, "t": t, "x": t([1.]), "v": t([1., 2.]), "w": t([1., 0.5, 2.]),
                 "m": torch.arange(6.).view(2, 3), "g": torch.arange(6.).view(1, 2, 3)}
        return [attempt(partial(eval, text if text.strip() == "v" else f"torch.{text.strip()}", names))
                for text in line.split(" ; ")]
    same(program)


def test_modules_of_devices():
    assert tg.get_device_module() is tg.get_device_module("cpu") is tg.cpu
    assert tg.get_device_module(tg.device("cuda")) is tg.cuda and tg._nnpack_available() is False


# ── dtypes without tensors ────────────────────────────────────────────────────────────────────────────────────────────

NOMINAL = sorted(tg.nominal_dtypes.NOMINAL)


def test_facts_of_dtypes():
    def promoted(kinds):        # PyTorch fails an assertion for the others
        return [kind for kind in kinds if not str(kind).startswith(("torch.int", "torch.float4"))]

    def program(torch):
        names = [*NOMINAL, "chalf", "bit", "float16", "int8", "bool", "complex64", "float64", "bfloat16"]
        kinds = [getattr(torch, name) for name in names]
        return [[(str(d), d.itemsize, d.is_floating_point, d.is_complex, attempt(partial(getattr, d, "is_signed")),
                  str(d.to_real())) for d in kinds],
                [str(attempt(d.to_complex)) for d in kinds[:len(NOMINAL)]],
                [str(attempt(partial(torch.promote_types, a, b))) for a in promoted(kinds) for b in promoted(kinds)]]
    same(program)


@pytest.mark.parametrize("name", NOMINAL)
def test_dtypes_are_objects(name):
    kind = getattr(tg, name)
    assert isinstance(kind, tg.dtype) and pickle.loads(pickle.dumps(kind)) is copy.deepcopy(kind) is kind
    assert {kind: 1}[kind] and kind != tg.float32
    x = tg.ones(2)
    for make in (lambda: tg.zeros(2, dtype=kind), lambda: x.to(kind), lambda: tg.tensor([1], dtype=kind)):
        with pytest.raises(NotImplementedError, match=f"tensorgrad has no tensors of the dtype {name}"):
            make()


# ── operators ─────────────────────────────────────────────────────────────────────────────────────────────────────────

ATEN = """
add.Tensor(x, x, alpha=2) ; mul.Scalar(x, 3) ; sum.dim_IntList(x, [1], True) ; slice.Tensor(x, 1, 0, 2) ; slice(x, -1, None, None, 2) ; select.int(x, 0, 1)
index.Tensor(x, [None, t([1])]) ; _softmax(x, 1, False) ; _log_softmax.default(x, 1, False) ; _softmax(x.half(), 1, True) ; _to_copy(x, dtype=torch.float64)
lift_fresh(x) ; _unsafe_view(x, [3, 2]) ; relu_(x) ; t(x) ; item(x[0, 0]) ; threshold_backward(x, x, 1.) ; tanh_backward(x, x) ; sigmoid_backward(x, x)
sym_size.int(x, 0) ; view.default(x, [6]) ; full([2], 1) ; arange.start(1, 3) ; mse_loss(x, x + 1, 2) ; mse_loss(x, x + 1) ; l1_loss(x, x + 1, 0)
native_layer_norm.default(x, [3], None, None, 1e-5) ; where.self(x > 1, x, -x) ; gelu(x, approximate='tanh') ; cat([x, x], 1) ; huber_loss(x, x + 3, 1, 2.)
add.Tensor ; add.Tensor.name() ; relu.default.name() ; add.Tensor.__name__ ; add.Tensor._overloadname ; add.Tensor.namespace ; add._qualified_op_name ; add
_softmax_backward_data(x, x, 1, torch.float32) ; _log_softmax_backward_data(x, x, 1, torch.float32)
"""  # noqa: E501


@pytest.mark.parametrize("line", ATEN.strip().splitlines())
def test_operators(line):
    import importlib

    def program(torch):
        aten = importlib.import_module(f"{torch.__name__}._ops").ops.aten
        names = {"aten": aten, "torch": torch, "t": torch.tensor, "x": torch.arange(6.).view(2, 3) / 4}
        found = [attempt(partial(eval, f"aten.{text.strip()}", names)) for text in line.split(" ; ")]
        return [part if isinstance(part, (torch.Tensor, tuple, str, int)) else repr(part) for part in found]
    same(program)


def test_overloads_are_keys():
    from tensorgrad import _ops
    aten = _ops.ops.aten
    assert aten.add.Tensor is aten.add.Tensor is not aten.add.Scalar and aten.add.Tensor.overloadpacket is aten.add
    assert aten.add.Tensor._overloadpacket is aten.add
    assert copy.deepcopy([aten.add, aten.add.Tensor]) == [aten.add, aten.add.Tensor]
    assert isinstance(aten.mul.Tensor, _ops.OpOverload) and isinstance(aten.mul, _ops.OpOverloadPacket)
    assert not hasattr(aten.mul, "_no_overload")


# ── classes and tables ────────────────────────────────────────────────────────────────────────────────────────────────


def test_results_with_out():
    def program(torch):
        out = torch.empty(0), torch.empty(0, dtype=torch.int64)
        found = torch.max(torch.tensor([[1., 5.], [7., 3.]]), 0, out=out)
        records = torch.return_types
        return type(found).__name__, found, records.topk_out.__name__, attempt(lambda: records.nothing_out, True)[0]
    same(program)


def test_storage_tables():
    by_dtype = tg.storage._dtype_to_storage_type_map()
    assert by_dtype[tg.float32] == "FloatStorage" and getattr(tg, by_dtype[tg.complex64]) in tg._storage_classes
    assert {kind: name for name, kind in tg.storage._storage_type_to_dtype_map().items()} == by_dtype
    assert tg.LongTensor in tg._tensor_classes and tg.UntypedStorage in tg._storage_classes


def test_transforms_see_batches():
    functorch, seen = tg._C._functorch, []

    def double(x):
        seen.append((functorch.is_batchedtensor(x), functorch.maybe_get_level(x), functorch.maybe_current_level(),
                     tg._C._are_functorch_transforms_active(), list(functorch.get_unwrapped(x).shape)))
        return x * 2
    x = tg.arange(6.).view(3, 2)
    assert tg.equal(tg.func.vmap(double)(x), x * 2) and seen == [(True, 1, 1, True, [3, 2])]
    tg.func.grad(lambda x: (seen.append(tg._C._are_functorch_transforms_active()), x.sum())[1])(x)
    assert seen[1] is True and not tg._C._are_functorch_transforms_active() and not functorch.is_batchedtensor(x)
    level = functorch._vmap_increment_nesting(2, "error")
    try:
        inside = functorch._add_batch_dim(x, 1, level)
        out = functorch._remove_batch_dim(inside * inside.sum(), level, 2, 0)
    finally:
        assert functorch._vmap_decrement_nesting() == level == 1
    assert tg.equal(out, (x * x.sum(0)).T)


def test_functions_of_the_engine():
    def program(torch):
        from importlib import import_module
        functions = import_module(f"{torch.__name__}.autograd._functions")
        import_module(f"{torch.__name__}._C")
        x = torch.arange(1., 5, requires_grad=True)
        torch._C._functions.UndefinedGrad()(x).sum().backward()
        held = x.grad
        error = attempt(lambda: torch._C._functions.DelayedError("Boom!", 1)(x).sum().backward())
        y = functions.Resize.apply(x, (2, 2))
        (y * torch.tensor([[1., 2.], [3., 4.]])).sum().backward()
        return held, error, y, x.grad, attempt(lambda: functions.Resize.apply(x, (3,)))[0]
    same(program)


def test_marks_and_warnings():
    from tensorgrad._dynamo import mark_static_address, utils
    x = tg.ones(1)
    mark_static_address(x, guard=True)
    assert x._dynamo_static_input_type == "guarded"
    with pytest.raises(TypeError, match="mark_static_address expects a tensor but received <class 'int'>"):
        mark_static_address(3)
    with pytest.warns(UserWarning, match="only this time"):
        utils.warn_once("only this time")
    utils.warn_once("only this time")


def test_references_are_the_functions():
    from tensorgrad import _refs
    assert _refs.sum is tg.sum and _refs.linalg.vector_norm is tg.linalg.vector_norm and _refs.add_ is tg.Tensor.add_
    assert _refs.nn.functional.relu is tg.nn.functional.relu and not hasattr(_refs, "no_such_function")


@pytest.mark.filterwarnings("ignore:at..nuclear_norm|torch.chain_matmul:UserWarning")
def test_small_names_compute_what_pytorch_computes():
    torch = pytest.importorskip("torch")

    def answers(lib, linalg, dirichlet, kl):
        a = lib.tensor([[2.0, 1.0], [1.0, 3.0]], dtype=lib.float64)
        p, q = (lib.distributions.Gamma(lib.tensor(x), lib.tensor(2.0)) for x in (1.5, 3.0))
        out = lib.empty(0, dtype=lib.float64)
        lib.nuclear_norm(a, out=out)
        with pytest.raises(RuntimeError, match="Tensor dimension is 1, expected 2 instead"):
            lib.chain_matmul(a, a[0])
        return [linalg.qform(a, a[:, :1]), linalg.symeig(a, largest=True)[0], linalg.matmul(None, a), out,
                lib.nuclear_norm(a.expand(2, 2, 2), keepdim=True), kl._kl_expfamily_expfamily(p, q),
                dirichlet._Dirichlet_backward(lib.tensor([0.2, 0.8]), lib.tensor([1.5, 2.0]), lib.tensor([1.0, 3.0]))]
    results = [answers(lib, *(import_module(f"{lib.__name__}.{name}") for name in (
        "_linalg_utils", "distributions.dirichlet", "distributions.kl"))) for lib in (tg, torch)]
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64",
                                  "float8_e5m2"])
def test_helpers_of_definitions_of_operators(name):
    torch = pytest.importorskip("torch")
    from torch import _prims_common as theirs

    from tensorgrad import _prims_common as ours
    from tensorgrad._refs import _conversions

    def answers(lib, helpers):
        dtype, found = getattr(lib, name), []
        for helper in ("is_boolean_dtype", "is_integer_dtype", "is_float_dtype", "is_complex_dtype", "is_grad_dtype",
                       "is_low_precision_dtype", "corresponding_real_dtype", "corresponding_complex_dtype",
                       "dtype_to_type", "get_computation_dtype"):
            try:
                found.append(str(getattr(helpers, helper)(dtype)))
            except KeyError:
                found.append("KeyError")
        for kind in helpers.ELEMENTWISE_TYPE_PROMOTION_KIND:
            if not name.startswith("float8"):
                x = lib.ones(2, dtype=dtype)
                found.append(str(helpers.elementwise_dtypes(x, 2, type_promotion_kind=kind)))
        x = lib.ones(2, 3, 4, 5)
        turned = x.contiguous(memory_format=lib.channels_last)
        return [*found, str(helpers.suggest_memory_format(turned)), helpers.make_channels_last_strides_for(x.shape),
                helpers.make_contiguous_strides_for((2, 0, 3)), helpers.canonicalize_dims(3, (0, -1)),
                helpers.check_all_strides(x, turned, only_cuda=False), helpers.reduction_dims((2, 3), None),
                helpers.check_significant_strides(x[:, :1], turned[:, :1], only_cuda=False)]
    assert answers(tg, ours) == answers(torch, theirs)
    assert _conversions.double(tg.ones(2)).dtype is tg.float64


def test_deprecated_overloads_warn_once_in_all():
    import tensorgrad
    x = tensorgrad.ones(2)
    with pytest.warns(UserWarning, match="This overload of add_ is deprecated") as found:
        x.add_(1, x)
        x.addcdiv_(2, x, x)
    assert len(found) == 1
