"""Layers of several inputs that become one, as layers and as functions."""
import pytest

import tensorgrad as tg
from tensorgrad import layers as L

XS = [tg.randn(12, 37, 9, generator=tg.Generator().manual_seed(i)) for i in range(3)]
SHAPE = (12, 37, 9)


@pytest.mark.parametrize("name, expected", [
    ("Add", XS[0] + XS[1] + XS[2]), ("Multiply", XS[0] * XS[1] * XS[2]), ("Average", (XS[0] + XS[1] + XS[2]) / 3),
    ("Maximum", tg.stack(XS).amax(0)), ("Minimum", tg.stack(XS).amin(0))])
def test_of_any_number(name, expected):
    layer, function = getattr(L, name)(), getattr(L, name.lower())
    for result in (layer(*XS), layer(XS), layer(tuple(XS)), function(*XS), function(XS)):
        assert tg.allclose(result, expected)
    assert layer.input_shape == [SHAPE] * 3
    assert getattr(L, name)().get_output_shape([SHAPE] * 3) == SHAPE
    assert getattr(L, name)().get_output_shape([(None, 37, 9)] * 3) == (None, 37, 9)
    assert tg.equal(function(XS[0]), XS[0])


@pytest.mark.parametrize("name, expected", [("Subtract", XS[0] - XS[1]), ("Divide", XS[0] / XS[1])])
def test_of_two(name, expected):
    layer, function = getattr(L, name)(), getattr(L, name.lower())
    for result in (layer(*XS[:2]), layer(XS[:2]), function(*XS[:2]), function(x1=XS[0], x2=XS[1])):
        assert tg.equal(result, expected)
    assert getattr(L, name)().get_output_shape([SHAPE] * 2) == SHAPE
    for inputs in (XS, XS[:1]):
        with pytest.raises(AssertionError, match=f"{name} takes exactly 2 inputs, not {len(inputs)}"):
            getattr(L, name)()(*inputs)


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -1])
def test_concat(axis):
    expected = tg.cat(XS, axis)
    for result in (L.Concat(axis)(*XS), L.Concat(axis=axis)(XS), L.concat(*XS, axis=axis), L.concat(XS, axis=axis)):
        assert tg.equal(result, expected)
    assert L.Concat(axis).get_output_shape([SHAPE] * 3) == tuple(expected.shape)
    assert tg.equal(L.Concat()(*XS), tg.cat(XS, -1))


@pytest.mark.parametrize("name", ["Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Average"])
def test_shapes_must_be_the_same(name):
    """No broadcasting: a merge of unequal shapes is a mistake more often than not."""
    for other in (tg.ones(12, 37, 1), tg.ones(37, 9), tg.ones(1, 37, 9)):
        with pytest.raises(AssertionError, match="must have the same shape for all input tensors"):
            getattr(L, name)()(XS[0], other)
        with pytest.raises(AssertionError, match="must have the same shape for all input tensors"):
            getattr(L, name)().get_output_shape([SHAPE, tuple(other.shape)])


@pytest.mark.parametrize("axis, other", [(0, (12, 37, 8)), (-1, (11, 37, 9)), (1, (12, 37)), (3, SHAPE), (-4, SHAPE)])
def test_other_axes_must_agree(axis, other):
    with pytest.raises(AssertionError, match="concat dim error"):
        L.Concat(axis)(XS[0], tg.ones(other))
    with pytest.raises(AssertionError, match="concat dim error"):
        L.Concat(axis).get_output_shape([SHAPE, other])


def test_the_batch_may_change_and_nothing_else():
    layer = L.Add()
    layer(tg.ones(2, 3), tg.ones(2, 3))
    assert layer(tg.ones(4, 3), tg.ones(4, 3)).shape == (4, 3)
    with pytest.raises(RuntimeError, match="was built for input of shape"):
        layer(tg.ones(2, 5), tg.ones(2, 5))


@pytest.mark.parametrize("inputs", [(), ([],), (1, 2), (XS[0], 2.0)])
def test_inputs_are_tensors(inputs):
    with pytest.raises(AssertionError, match="takes"):
        L.Add()(*inputs)


def test_names_and_texts():
    assert repr(L.Concat()) == "Concat()" and repr(L.Concat(axis=1)) == "Concat(axis=1)" and repr(L.Add()) == "Add()"
    assert L.add.__name__ == "add" and L.subtract.__doc__.startswith("`Subtract()(x1, x2)`")
    assert L.Layer.from_spec(L.Concat(axis=0).to_spec()).axis == 0
