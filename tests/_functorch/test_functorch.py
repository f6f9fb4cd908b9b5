"""functorch: modules as functions of tuples, and transforms under their first names."""
import pytest

import tensorgrad as tg
from tensorgrad._functorch import apis, make_functional, vmap
from tensorgrad._functorch.deprecated import make_functional as deprecated
from tensorgrad._vmap_internals import vmap as first_vmap


def test_modules_as_functions():
    model = tg.nn.Sequential(tg.nn.Linear(2, 3), tg.nn.BatchNorm1d(3))
    function, parameters, buffers = make_functional.make_functional_with_buffers(model)
    assert [len(parameters), len(buffers)] == [4, 3] and all(a is not b for a, b in zip(parameters, model.parameters()))
    assert {p.device.type for p in function.stateless_model.parameters()} == {"meta"}
    x = tg.arange(8.).reshape(4, 2).sin()
    y = function(parameters, buffers, x)
    assert tg.equal(y, model(x)) and tg.equal(buffers[0], model[1].running_mean)
    (g,) = tg.autograd.grad((y * tg.arange(12.).reshape(4, 3)).sum(), parameters[:1])
    assert g.shape == (3, 2) and g.abs().sum() > 0
    with pytest.raises(RuntimeError, match=r"make_functional\(model\): `model` has buffers"):
        make_functional.make_functional(model)
    tied = tg.nn.Sequential(tg.nn.Linear(2, 2, bias=False), tg.nn.Linear(2, 2, bias=False))
    tied[1].weight = tied[0].weight
    function, (weight,) = make_functional.make_functional(tied, disable_autograd_tracking=True)
    assert not weight.requires_grad
    assert tg.allclose(function((2 * tg.eye(2),), x), 4 * x)


def test_ensembles():
    models = [tg.nn.Linear(2, 3) for _ in range(4)]
    function, parameters, buffers = make_functional.combine_state_for_ensemble(models)
    x = tg.ones(5, 2)
    assert tg.allclose(tg.vmap(function, (0, 0, None))(parameters, buffers, x), tg.stack([m(x) for m in models]))
    weights, function, names = make_functional.functional_init(tg.nn.Linear, (3,))(2, 1)
    assert [w.shape[0] for w in weights] == [3, 3] and names == ("weight", "bias")
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        make_functional.combine_state_for_ensemble([])
    with pytest.raises(FutureWarning, match="`functorch.make_functional` is deprecated"):
        deprecated(models[0])


def test_the_first_vmap():
    with pytest.warns(FutureWarning, match="Please use torch.vmap instead of"):
        assert first_vmap(tg.sum, 1)(tg.ones(2, 3)).tolist() == [2, 2, 2]


def test_vmap_in_parts():
    x = tg.arange(10.).reshape(2, 5)
    assert tg.equal(apis.chunk_vmap(tg.sin, in_dims=1, out_dims=1, chunks=3)(x), x.sin())
    (y, z, text), dims = vmap.restore_vmap(lambda a, b: (a + 1, b, "text"), (1, None), 5, "error")(x, x)
    assert dims == (0, None, None) and tg.equal(y, x.T + 1) and z is x and text == "text"
