"""Nodes of a graph: inputs, properties of nodes, and new nodes."""
import copy
import gc
import operator
import pickle
import weakref

import numpy as np
import pytest
from symbolic_forms import check, equal, forms

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.nn import functional as F
from tensorgrad.symbolic import (
    CustomInput,
    Input,
    SymbolicCallable,
    SymbolicData,
    SymbolicModel,
    SymbolicTensor,
    add_to_graph,
    add_to_model,
)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# ── inputs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class TestInput:
    def test_shapes_and_what_is_known_of_the_batch(self):
        assert Input((3, 4)).shape == (None, 3, 4)
        assert Input(shape=(9,), batch_shape=(2, 3)).shape == (2, 3)
        assert Input((3,), batch_size=8).shape == (8, 3)
        assert Input(batch_shape=(None, 3, None)).shape == (None, 3, None)
        assert Input().shape == (None,) and Input(5).shape == (None, 5)
        known = [Input((3,)), Input((3,), 8), Input(batch_shape=(2, 3)), Input(batch_shape=(2, None))]
        assert [x.batch_size_known for x in known] == [False, True, True, False]

    def test_the_older_forms(self):
        forms = [Input(batch_shape=(2, 3, 4)), Input((2, 3, 4), batched=False), Input(shape=(3, 4), batch_size=2),
                 Input(custom_tensor=torch.ones(2, 3, 4))]
        assert {tuple(x.shape) for x in forms} == {(2, 3, 4)}
        with pytest.raises(ValueError, match="a shape is needed"):
            Input(batched=False)

    def test_examples_have_the_dtype_and_the_range(self):
        x = Input((50,), dtype=torch.int32, min_value=3, max_value=9)
        assert x.dtype == torch.int32 == x.v.dtype and x.v.min() >= 3 and x.v.max() < 9 and len(x.v.unique()) > 3
        assert 0 <= Input((99,)).v.min() < Input((99,)).v.max() <= 1
        assert Input((3,), dtype=torch.float64).dtype == torch.float64
        given = torch.tensor([[1., 2.]], dtype=torch.float64)
        assert Input(custom_tensor=given).v is given and (Input(custom_tensor=given) * 2).v.tolist() == [[2., 4.]]

    def test_no_generator_is_used_up(self):
        torch.manual_seed(0)
        expected = torch.rand(3)
        torch.manual_seed(0)
        x = Input((3,))
        nn.Dropout()(x).v, (x + torch.rand_like(x)).v
        assert torch.rand(3).tolist() == expected.tolist()

    @pytest.mark.parametrize(("error", "make"), [
        (TypeError, lambda: Input((2.5,))), (TypeError, lambda: Input("ab")), (ValueError, lambda: Input((-1,))),
        (TypeError, lambda: Input((3,), True)),
        (TypeError, lambda: Input(custom_tensor=[1, 2]))])
    def test_bad_ones(self, error, make):
        with pytest.raises(error, match="Input: "):
            make()

    def test_under_another_default_dtype(self):
        torch.set_default_dtype(torch.float64)
        try:
            assert Input((3,)).dtype == torch.float32
        finally:
            torch.set_default_dtype(torch.float32)


class TestCustomInput:
    def test_any_object(self):
        for data in ([1, 2], {"a": 1}, {1, 2}, 5, "ab", (1,), np.ones(3), 2.5):
            x = CustomInput(data)
            assert type(x).__name__ == f"SymbolicData({type(data).__name__})" and x.batch_size_known and not x.parents
            assert isinstance(x, SymbolicData) and type(x.v) is type(data)
        assert type(CustomInput(abs)) is SymbolicCallable and type(CustomInput(torch.ones(2))) is SymbolicTensor

    def test_arrays(self):
        x = CustomInput(np.arange(6.))
        y = x.reshape(2, 3).sum(axis=0) * 2
        assert SymbolicModel(x, y)(np.ones(6)).tolist() == [4., 4., 4.]

    def test_the_example_is_copied(self):
        data = [1, 2]
        x = CustomInput(data)
        x.append(3)
        assert data == [1, 2] == x.v

    def test_callables(self):
        f, x = CustomInput(abs), CustomInput(-3)
        y = f(x)
        check((f, x), y, (abs, -7), 7)
        assert SymbolicModel((f, x), y)(str, -7) == "-7"


# ── what a node knows ─────────────────────────────────────────────────────────────────────────────────────────────────


class TestNodes:
    def test_classes(self):
        with pytest.raises(AssertionError, match="base of nodes"):
            SymbolicData(1)
        assert (repr(Input((3,))).startswith("<SymbolicTensor at 0x")
                and repr(Input((3,))).endswith("; 0 parents; 0 children>"))
        class First:
            pass
        one, first = First, First()
        class First:
            pass
        # by the type, not by its name
        assert type(CustomInput(first)) is type(CustomInput(one())) is not type(CustomInput(First()))

    def test_attributes(self):
        x = Input((3,))
        y = x + 2
        assert y.parents == (x,) and x.children == (y,) and (x.depth, y.depth, (y * (x + y)).depth) == (0, 1, 3)
        layer = nn.Linear(3, 3)
        assert x.layer is None and layer(x).layer is layer and layer(x, custom_name="mine").custom_name == "mine"
        assert y.v.tolist() == (x.v + 2).tolist()

    def test_the_batch_is_known_if_that_of_all_parents_is(self):
        known, unknown = Input(batch_shape=(2, 3)), Input((3,))
        assert ((known + known).batch_size_known and not (known + unknown).batch_size_known
                and not (unknown + known).batch_size_known)
        assert (known * unknown).shape == (2, 3)                                      # it goes with one row, or two
        eight = unknown + torch.ones(8, 3) + unknown
        assert eight.shape == (8, 3) and not eight.batch_size_known and eight.relu().flatten().shape == (24,)
        assert (unknown + torch.ones(1, 3)).shape == (None, 3)

    def test_shapes(self):
        x = Input((3, 8, 6))
        assert (x.C, x.channels, x.H, x.W, x.HW, x.CHW, x.HWC) == (3, 3, 8, 6, (8, 6), (3, 8, 6), (8, 6, 3))
        assert x.features == 6 and x.batch_size is None and Input(batch_shape=(4, 2)).batch_size == 4
        assert x.numel() == 144 and Input(batch_shape=(4, 2)).numel() == 8
        assert (x.ndim, x.dim(), x.size(), x.size(1), x.size(-1), x.size(0)) == (4, 4, (None, 3, 8, 6), 3, 6, None)
        with pytest.raises(AssertionError, match=r"not of \[C,H,W\] form"):
            Input((4,)).C
        with pytest.raises(IndexError):
            x.size(4)

    def test_shapes_that_depend_on_the_batch(self):
        x = Input((3, 4))
        assert (x.reshape(-1, 4).shape == (None, 4) and x.flatten().shape == (None,)
                and x.transpose(0, 1).shape == (3, None, 4))
        assert torch.cat((x, x)).shape == (None, 3, 4) and x.sum(0).shape == (3, 4) and x[:1].shape == (1, 3, 4)
        assert (x.view(*x.shape[:2], 2, 2).shape == (None, 3, 2, 2)
                and x.sum(0, keepdim=True).expand(x.shape[0], 3, 4).shape == (1, 3, 4))

    def test_len_and_truth(self):
        assert len(Input(batch_shape=(7, 2))) == 7 and len(CustomInput([1, 2])) == 2
        with pytest.raises(TypeError, match="size of the batch is not known"):
            len(Input((2,)))
        with pytest.raises(TypeError, match="0-d"):
            len(Input(batch_shape=(2,)).sum())
        with pytest.raises(TypeError, match="truth of a SymbolicTensor is not known"):
            if Input((2,)):
                pass

    def test_identity(self):
        x, y = Input((3,)), Input((3,))
        assert x == x and x != y and x in (y, A, x) and len({x, y, x}) == 2 and not A == x and not x == A and x != A      # noqa: PLR0124

    def test_probing_adds_nothing(self):
        x = Input((3,))
        for probe in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be pickled or copied"):
                probe(x)
        assert not hasattr(x, "_repr_html_") and not hasattr(x, "__array__") and x.children == ()

    def test_what_nobody_holds_goes_away(self):
        x = Input((3,))
        y = weakref.ref(x.relu() + 1)
        gc.collect()
        assert y() is None and x.children == ()

    def test_slots(self):
        with pytest.raises(AttributeError):
            Input((3,)).anything = 1


# ── calls of layers ───────────────────────────────────────────────────────────────────────────────────────────────────


class TestLayers:
    @pytest.mark.parametrize("seed", range(10))
    def test_two_notations(self, seed):
        torch.manual_seed(seed)
        first, second, join = nn.Linear(4, 5), nn.Linear(5, 3), nn.Bilinear(5, 3, 2)
        x = Input((4,))
        a = first(x)
        a = join(a, second(a))
        b = x(first)
        b = b(join, b(second))
        data = torch.randn(6, 4)
        results = [SymbolicModel(x, out)(data) for out in (a, b)]
        assert equal(*results) and equal(results[0], join(first(data), second(first(data))))

    def test_chains_and_names(self):
        x = Input((3, 8, 8))
        y = x(nn.Conv2d(3, 4, 3), custom_name="TEST_LAYER_777")(nn.ReLU())
        z = nn.Flatten()(y, custom_name="flat")
        model = SymbolicModel(x, z)
        assert "TEST_LAYER_777" in str(model) and "flat" in str(model) and model.TEST_LAYER_777 is y.parents[0].layer

    def test_the_class_follows_the_result(self):
        lstm, x = nn.LSTM(4, 3), Input((5, 4))
        assert isinstance(lstm(x), SymbolicData) and not isinstance(lstm(x), SymbolicTensor)
        assert type(nn.Linear(4, 2)(x)) is SymbolicTensor

    def test_plain_and_keyword_arguments_beside_nodes(self):
        five = Input(batch_shape=(5, 4))
        weight = torch.randn(5, 3)
        layer, attention = nn.Bilinear(4, 3, 2), nn.MultiheadAttention(4, 2, batch_first=True)
        data = torch.randn(5, 4)
        check(five, layer(five, weight), (data,), layer(data, weight))
        q, sequence = Input((6, 4)), torch.randn(5, 6, 4)
        with torch.no_grad():
            expected = attention(sequence, key=sequence, value=sequence, need_weights=False)[0]
            check(q, attention(q, key=q, value=q, need_weights=False)[0], (sequence,), expected)
            # by name alone
            check(q, attention(query=q, key=q, value=q, need_weights=False)[0], (sequence,), expected)

    def test_errors_tell_what_was_added_to_what(self):
        x = Input((4,))
        with pytest.raises(RuntimeError, match=r"(?s)mat1 and mat2 shapes.*adding Linear\(in_features=3.*shape \(None, "
                                               r"4\)"):
            nn.Linear(3, 2)(x)
        assert x.children == ()


# ── operators ─────────────────────────────────────────────────────────────────────────────────────────────────────────

A, B, N = torch.tensor([[1., -2., 3.]]), torch.tensor([[4., 5., -6.]]), np.array([[2., 3., 4.]], "float32")
EXPRESSIONS = [
    lambda x, y: abs(x), lambda x, y: -x, lambda x, y: +x, lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y,
    lambda x, y: x / y, lambda x, y: x % y,
    lambda x, y: x ** 2, lambda x, y: 2 ** x, lambda x, y: x @ y.T, lambda x, y: x // 2, lambda x, y: 2 // y,
    lambda x, y: x + B, lambda x, y: B + x,
    lambda x, y: x - 3, lambda x, y: 3 - x, lambda x, y: x * 3, lambda x, y: 3 * x, lambda x, y: x / 3,
    lambda x, y: 3 / x, lambda x, y: 3 % y,
    lambda x, y: B @ x.T, lambda x, y: x @ B.T, lambda x, y: x + N, lambda x, y: x / N,
    lambda x, y: sum([x, y, x]), lambda x, y: x < 2, lambda x, y: x <= y, lambda x, y: x > B,
    lambda x, y: 1 >= x,
    lambda x, y: (x > 0) & (y > 0), lambda x, y: (x > 0) | (y > 0), lambda x, y: (x > 0) ^ (y > 0),
    lambda x, y: ~(x > 0), lambda x, y: x.int() << 2,
    lambda x, y: x.int() >> 1, lambda x, y: x + y.T, lambda x, y: 1 << y.abs().int(), lambda x, y: -(-x) ** 2,
    lambda x, y: (x - y) - (x - (y - x)),
    lambda x, y: x + 1j, lambda x, y: x + float("inf"), lambda x, y: -x.abs() ** 0.5, lambda x, y: (-2) ** x.int(),
    lambda x, y: x.abs() ** -1,
]


class TestOperators:
    @pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda e: str(EXPRESSIONS.index(e)))
    def test_as_on_tensors(self, expression):
        x, y = Input((3,)), Input((3,))
        expected = expression(A, B)
        node = expression(x, y)
        assert node.dtype == expected.dtype and node.ndim == expected.ndim
        check((x, y), node, (A, B), expected)

    @pytest.mark.parametrize("expression", [operator.add, operator.mul, operator.sub])
    def test_arrays_on_the_left(self, expression):
        x = Input((3,))
        check((x,), expression(N, x), (A,), expression(torch.tensor(N), A))

    def test_augmented_assignment_makes_a_new_node(self):
        x = y = Input((3,))
        y += 1
        assert y is not x and y.parents == (x,)
        check(x, (x, y), (A,), (A, A + 1))

    def test_what_python_refuses(self):
        with pytest.raises(TypeError, match="unsupported operand"):
            CustomInput({1}) + CustomInput({2})
        with pytest.raises(TypeError, match="bad operand"):
            abs(CustomInput("a"))

    def test_sets(self):
        x, y, z = CustomInput({1, 2, 3}), CustomInput({2, 3, 4}), CustomInput({3, 4, 5})
        const = {1, 2, 3, 9}

        def algebra(x, y, z):
            return ((x & y ^ z) | (x ^ z - y)) & const
        node = algebra(x, y, z)
        model = SymbolicModel((x, y, z), node)
        rng = np.random.default_rng(0)
        for _ in range(10):
            values = [set(rng.integers(0, 10, 5).tolist()) for _ in range(3)]
            assert (model(*values) == algebra(*values)
                    == node.layer(*[SymbolicModel((x, y, z), p)(*values) for p in node.parents], const))

    def test_numbers_lists_and_strings(self):
        n, items, text = CustomInput(3), CustomInput([1]), CustomInput("ab")
        check((n, items, text), (5 + n, n - 5, [0] + items, items * 2, "x" + text, 2 ** n, n % 2, n < 4),
              (7, [1], "ab"),
              (12, 2, [0, 1], [1, 1], "xab", 128, 1, False))

    def test_names_of_steps(self):
        x = Input((3,))
        assert list(SymbolicModel(x, ((x + 1) - x) * x % 2 @ torch.ones(3, 1)).nodes)[1:] == [
            "AddOpLayer_1", "SubOpLayer_1", "MulOpLayer_1", "ModOpLayer_1", "MatmulOpLayer_1"]


# ── attributes, methods, indices ──────────────────────────────────────────────────────────────────────────────────────


class TestParts:
    def test_methods(self):
        x = Input((3,))
        check(x, (x.relu(), x.unsqueeze(1), x.clamp(min=0).sum(dim=1, keepdim=True)), (A,),
              (A.relu(), A.unsqueeze(1), A.clamp(min=0).sum(1, keepdim=True)))
        s, lst = CustomInput("ab"), CustomInput([3, 1])
        check((s, lst), (s.upper(), lst.index(1), s.replace("a", "c")), ("abc", [2, 1]), ("ABC", 1, "cbc"))

    def test_one_step_for_a_method(self):
        x = Input((3,))
        assert list(SymbolicModel(x, x.relu()).nodes) == ["Input_1", "relu_1"]

    def test_attributes(self):
        class Point:
            def __init__(self):
                self.x, self.inner = 1, {"a": 2}
        p = CustomInput(Point())
        check(p, (p.x, p.inner["a"]), (Point(),), (1, 2), picklable=False)
        with pytest.raises(AttributeError, match="nope"):
            p.nope
        with pytest.raises(AttributeError, match="nope"):
            Input((3,)).nope
        assert getattr(Input((3,)), "nope", 5) == 5

    def test_facts_are_no_nodes(self):
        x = Input((3,), dtype=torch.float64)
        assert (x.dtype is torch.float64 and x.is_cuda is False and x.device.type == "cpu" and x.requires_grad is False
                and x.children == ())
        assert (x.itemsize == 8 and Input(batch_shape=(2, 3)).nbytes == 24
                and SymbolicModel(x, x.nbytes)(torch.ones(4, 3)) == 48)
        assert type(torch.zeros(2, device=x.device) + 1) is torch.Tensor

    @pytest.mark.parametrize("call", [
        lambda x: x.reshape(-1, 2), lambda x: x.reshape((4, -1)), lambda x: x.view(2, 6), lambda x: x.view((-1,)),
        lambda x: x.view(torch.int32),
        lambda x: x.t(),
        lambda x: x.T, lambda x: x.mean(), lambda x: x.mean(dim=1), lambda x: x.sum(1, True), lambda x: x.median(),
        lambda x: x.median(dim=1)[0],
        lambda x: x.argmax(), lambda x: x.argmin(dim=0), lambda x: x.argmax(1, keepdim=True), lambda x: x.flatten(),
        lambda x: x.flatten(0, 1),
        lambda x: x.max(1).values, lambda x: x.max(1).indices, lambda x: x.chunk(2)[1], lambda x: x.split([1, 3])[0],
        lambda x: x.unbind(1)[2],
        lambda x: x.size(0) * x, lambda x: x.view(x.size(0), -1), lambda x: x.reshape(x.shape),
        lambda x: x.masked_fill(x > 0, 0.),
        lambda x: x.to(torch.float64), lambda x: x.double().type_as(x), lambda x: x.new_zeros(2) + x[:2, 0],
        lambda x: x.mT, lambda x: x.real,
        lambda x: x.expand(2, 4, 3), lambda x: x.permute(1, 0), lambda x: x.svd()[1],
    ])
    def test_methods_that_are_used_most(self, call):
        data = torch.arange(12.).view(4, 3).sin()
        x = Input(batch_shape=(4, 3))
        expected = call(data)
        node = call(x)
        assert node.shape == expected.shape and node.dtype == expected.dtype
        check(x, node, (data,), expected)

    def test_named_results_unpack(self):
        x = Input((5,))
        values, indices = x.median(dim=1)
        data = torch.randn(4, 5)
        check(x, (values, indices), (data,), tuple(data.median(dim=1)))

    @pytest.mark.parametrize("index", [0, -1, slice(1, 3), slice(None, None, 2), (0, 1), (..., 0),
                                       (slice(None), None, 1), [0, 2], torch.tensor([1, 1]),
                                       (slice(1, None), [1, 0, 1]), None, ..., (),
                                       torch.tensor([True, False, True, False]), np.array([0, 3])], ids=str)
    def test_indices(self, index):
        x = Input(batch_shape=(4, 3))
        data = torch.randn(4, 3)
        assert x[index].shape == data[index].shape
        check(x, x[index], (data,), data[index])

    def test_symbolic_indices(self):
        table, key = CustomInput({"a": torch.ones(2), "b": torch.zeros(2)}), CustomInput("a")
        value = table[key]
        assert type(value) is SymbolicTensor
        model = SymbolicModel((table, key), value)
        real = {"a": torch.full((2,), 5.), "b": torch.full((2,), 6.)}
        assert [model(real, k).tolist() for k in real] == [[5., 5.], [6., 6.]]
        x, i, n = Input(batch_shape=(4, 3)), Input(batch_shape=(2,), dtype=torch.int64), CustomInput(2)
        data, places = torch.randn(4, 3), torch.tensor([3, 0])
        check((x, i, n), (x[i], x[:n], x[n, :], x[i, 1]), (data, places, 3),
              (data[places], data[:3], data[3, :], data[places, 1]))

    def test_items_cannot_be_assigned(self):
        with pytest.raises(TypeError, match="item assignment"):
            Input((3,))[0] = 1


class TestUnpacking:
    def test_rows(self):
        x = Input(batch_shape=(10, 4))
        layers = [nn.Linear(4, 4) for _ in range(10)]
        total = sum(layer(row) for layer, row in zip(layers, x, strict=True))
        data = torch.randn(10, 4)
        check(x, total, (data,), sum(layer(row) for layer, row in zip(layers, data, strict=True)))

    def test_parts(self):
        x = CustomInput([5, 6, 7])
        check(x, (*x,), ([9, 0, 1],), (9, 0, 1))
        first, *rest = x
        check(x, (rest[1], first), ([9, 0, 1],), (1, 9))
        assert len({node.parents for node in (*x,)}) == 1

    def test_another_number_of_parts_is_an_error(self):
        x = CustomInput([5, 6, 7])
        for name, model in forms(x, (*x,)):
            with pytest.raises(ValueError, match="values to unpack"):
                model([1, 2])
            with pytest.raises(ValueError, match="values to unpack"):
                model([1, 2, 3, 4])
            assert name

    def test_nested(self):
        lstm, x = nn.LSTM(4, 3, batch_first=True), Input((5, 4))
        out, (h, c) = lstm(x)
        assert out.shape == (None, 5, 3) and h.shape == (1, None, 3)
        data = torch.randn(2, 5, 4)
        expected, (eh, ec) = lstm(data)
        check(x, (out, h, c), (data,), (expected, eh, ec))
        check(x, c, (data,), ec)
        check(x, (h, lstm(x)), (data,), (eh, (expected, (eh, ec))))

    def test_an_unknown_batch_has_one_row_and_a_warning(self):
        x = Input((3,))
        with pytest.warns(UserWarning, match="size is not known gives one row"):
            rows = list(x)
        assert len(rows) == 1 and rows[0].shape == (3,)
        with pytest.raises(TypeError, match="0-d"):
            iter(Input(batch_shape=(3,)).sum())

    def test_dicts_strings_and_sets_of_keys(self):
        d = CustomInput({"a": 1, "b": 2})
        a, b = d.values()
        first, second = CustomInput("ab")
        check(d, (a, b), ({"a": 5, "b": 6},), (5, 6))
        assert SymbolicModel(first.parents[0].parents, second)("xy") == "y"


# ── functions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

FUNCTIONS = [
    lambda x, y: torch.abs(x), lambda x, y: torch.cat((x, y), 1), lambda x, y: torch.cat([x, y], dim=0),
    lambda x, y: F.relu(x),
    lambda x, y: torch.add(x, y, alpha=2),
    lambda x, y: torch.where(x > 0, x, y), lambda x, y: torch.stack([x, y]), lambda x, y: torch.max(x, 1).values,
    lambda x, y: F.linear(x, torch.ones(2, 3)),
    lambda x, y: F.linear(input=x, weight=torch.ones(2, 3)), lambda x, y: torch.einsum("ij,ij->i", x, y),
    lambda x, y: torch.clamp(x, min=0),
    lambda x, y: torch.maximum(input=x, other=y), lambda x, y: torch.softmax(x, dim=-1),
    lambda x, y: torch.matmul(x, y.T),
    lambda x, y: torch.outer(x[0], y[0]),
    lambda x, y: torch.linalg.norm(x), lambda x, y: torch.special.expit(x), lambda x, y: torch.fft.rfft(x),
    lambda x, y: F.mse_loss(x, y),
    lambda x, y: torch.zeros_like(x) + y, lambda x, y: torch.split(x, 1, dim=1)[0],
    lambda x, y: torch.meshgrid(x[0], y[0], indexing="ij")[1],
    lambda x, y: torch.flatten(x), lambda x, y: F.cross_entropy(x, torch.tensor([1])),
    lambda x, y: torch.full_like(x, 3.),
    lambda x, y: F.one_hot(x.long() ** 2, 10),
    lambda x, y: torch.broadcast_tensors(x, y.T)[1], lambda x, y: torch.atleast_3d(x), lambda x, y: torch.add(B, x),
    lambda x, y: B.add(x), lambda x, y: B * x,
]


class TestFunctions:
    @pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: str(FUNCTIONS.index(f)))
    def test_of_the_package(self, function):
        x, y = Input(batch_shape=(1, 3)), Input(batch_shape=(1, 3))
        expected, node = function(A, B), function(x, y)
        assert isinstance(node, SymbolicTensor) and node.shape == expected.shape and node.dtype == expected.dtype
        check((x, y), node, (A, B), expected)

    def test_in_place_methods_are_kept_where_they_lead_to_an_output(self):
        x = CustomInput([3, 4, 5])
        outs = x.append(1), x.append(2), x.append(3)
        data = [3, 4, 5]
        result = SymbolicModel(x, (x, *outs))(data)
        assert result == ([3, 4, 5, 1, 2, 3], None, None, None) and data == [3, 4, 5, 1, 2, 3]


class TestAddToGraph:
    def test_nodes_at_any_depth(self):
        symbols = [Input(batch_shape=(1,)) for _ in range(3)]

        def total(*tree, **more):
            values, found = [*tree, *more.values()], 0
            for value in values:
                values.extend(value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple))
                              else ())
                found = found + value if isinstance(value, (int, torch.Tensor)) else found
            return found
        for nest in (lambda a, b, c: (([1, (2, {"a": [3, a, 4]})],), {"k": b, "rest": [5, 6, {"z": (c, 7)}]}),
                     lambda a, b, c: (({"x": {"y": {"z": [a]}}}, 1, 2, b, [[[3, 4]]]), {"deep": [[(c, 5)], 6, 7]})):
            args, kwargs = nest(*symbols)
            node = add_to_graph(total, *args, **kwargs)
            assert node.parents == tuple(symbols)
            model = SymbolicModel(symbols, node)
            for k in range(5):
                assert model(*[torch.tensor([10. * (k + i)]) for i in range(3)]).item() == 28 + 30 * k + 30

    def test_convolution_with_symbolic_weights(self):
        x, weight, bias = Input((3, 6, 6)), Input(batch_shape=(4, 3, 3, 3)), Input(batch_shape=(4,))
        y = add_to_graph(F.conv2d, input=x, weight=weight, bias=bias, padding=1)
        assert y.shape == (None, 4, 6, 6)
        values = torch.randn(2, 3, 6, 6), torch.randn(4, 3, 3, 3), torch.randn(4)
        check((x, weight, bias), y, values, F.conv2d(*values, padding=1))

    def test_two_ways_to_concatenate(self):
        x, y = Input((2, 3)), Input((4, 3))
        for node in (add_to_model(torch.concat, tensors=(x, y), dim=1), add_to_model(torch.concat, (x, y), dim=1),
                     add_to_graph(torch.concat, (x, y), 1)):
            assert node.shape == (None, 6, 3)
        assert add_to_model is add_to_graph

    def test_any_name_of_an_argument(self):
        """S20: functions and modules may call their arguments as this package calls its own."""
        x, y = Input((3,)), Input((3,))
        one, two = torch.randn(4, 3), torch.randn(4, 3)
        node = add_to_graph(F.mse_loss, input=x, target=y)
        assert equal(SymbolicModel((x, y), node)(one, two), F.mse_loss(one, two))
        node = nn.MSELoss()(input=x, target=y)
        assert equal(SymbolicModel((x, y), node)(one, two), F.mse_loss(one, two))

        def odd(func, target, self, layer, args, kwargs):
            return (func + target) * (self - layer) + args * kwargs
        names = "func target self layer args kwargs".split()
        node = add_to_graph(odd, **dict(zip(names, (x, y, 2, x, y, 3), strict=True)))
        assert equal(SymbolicModel((x, y), node)(one, two), odd(one, two, 2, one, two, 3))

    def test_a_dict_with_noise(self):
        x = Input((3,))
        noise = torch.tensor([0.1, 0.2, 0.3])

        def noisy(data, scale):
            return data["x"] + scale * data["noise"]
        check(x, add_to_graph(noisy, {"x": x, "noise": noise}, scale=2.), (A,), A + 2. * noise, picklable=False)

    def test_constants_alone_are_an_error(self):
        with pytest.raises(AssertionError, match="No Symbolic Data detected"):
            add_to_graph(torch.cat, (A, B))

    def test_names(self):
        def addTwo(x):
            return x + 2
        x = Input((3,))
        assert (list(SymbolicModel(x, add_to_graph(addTwo, add_to_graph(addTwo, x))).nodes)[1:]
                == ["wrap(addTwo)_1", "wrap(addTwo)_2"])
        assert list(SymbolicModel(x, add_to_graph(addTwo, x, custom_name="two")).nodes)[1:] == ["two"]
        assert list(SymbolicModel(x, add_to_graph(lambda x: x, x)).nodes)[1:] == ["wrap(<lambda>)_1"]

    def test_called_once(self):
        calls = []
        y = add_to_graph(lambda x: calls.append(1) or x * 2, Input(batch_shape=(1, 3)))
        assert y.shape == (1, 3) and len(calls) == 1

    def test_modules(self):
        x = Input((3,))
        layer = nn.Linear(3, 2)
        node = add_to_graph(layer, x)
        assert node.layer is layer and "Linear_1" in dict(SymbolicModel(x, node).named_children())
        assert [*SymbolicModel(x, add_to_graph(layer, input=x)).state_dict()] == ["Linear_1.weight", "Linear_1.bias"]

    def test_modules_and_methods_of_modules_among_the_arguments_are_part_of_the_model(self):
        x, layer = Input((3,)), nn.Linear(3, 2)
        by_argument = SymbolicModel(x, add_to_graph(lambda module, x: module(x), layer, x))
        by_method = SymbolicModel(x, add_to_graph(layer.forward, x))
        for model in (by_argument, by_method):
            assert [id(p) for p in model.parameters()] == [id(p) for p in layer.parameters()]
        copied = by_method.detach_from_graph()
        with torch.no_grad():
            layer.weight.zero_(), layer.bias.zero_()
        assert by_method(A).any().item() is False and copied(A).any().item() is True

    def test_structures_arrive_as_they_were_given(self):
        from collections import OrderedDict, namedtuple
        Pair = namedtuple("Pair", "a b")
        x = Input((3,))
        seen = []

        def look(*args, **kwargs):
            seen.append([*map(type, args), *map(type, kwargs.values())])
            return x_of(args[0])

        def x_of(parts):
            return parts[0] * 1
        add_to_graph(look, (x, 1), [x], {"a": x}, Pair(x, 2), OrderedDict(z=x), k=(x,))
        assert seen[0] == [tuple, list, dict, Pair, OrderedDict, tuple]

    def test_the_given_structures_stay_as_they_are(self):
        x = Input((3,))
        given = [x, {"a": (x, A)}]
        node = add_to_graph(lambda tree: tree[0] + tree[1]["a"][1], given)
        SymbolicModel(x, node)(B)
        assert given[0] is x and given[1]["a"][0] is x and given[1]["a"][1] is A
        given.clear()
        assert SymbolicModel(x, node)(B).tolist() == (A + B).tolist()

    def test_operator_functions(self):
        x = Input((3,))
        check(x, add_to_graph(operator.mul, x, 2), (A,), A * 2)
        check(x, add_to_graph(max, x.sum(), torch.tensor(1.)), (A,), max(A.sum(), torch.tensor(1.)))

    def test_functions_that_read_values_see_examples(self):
        x = Input((3,))

        def halves(x):
            return x[:, :2] if float(x.abs().max()) >= 0 else x
        assert add_to_graph(halves, x).shape == (None, 2)
