"""Single layers of `tensorgrad.layers`: what each does beyond inferring its sizes."""
import copy
import pickle
import warnings

import numpy as np
import pytest

import tensorgrad as tg
from tests.nn.test_layers import (
    IMAGE,
    STEPS,
    arrays,
    assert_same,
    build,
    floats,
    future,
    given,
    ints,
    oracle,
    padded,
    signs,
    tensors,
)

try:
    import torch
except ImportError:
    torch = None

pytestmark = [pytest.mark.filterwarnings(f"ignore:{text}") for text in (
    "enable_nested_tensor", "LSTM with projections", "dropout option adds", "Implicit dimension", "`NLLLoss2d`",
    "The PyTorch API of nested tensors", "Using padding='same'", "reduction. 'mean' divides",
    "size_average and reduce", "keyword argument `m", "input's size at dim")]


def test_documented():
    """Each layer documents its input, output and weights, with an example."""
    blocks = ("Parameters:", "Input:", "Output:", "Weights:", ">>> import tensorgrad as torch", "torch.nn.")
    families = [getattr(tg.nn.modules, name) for name in FAMILIES]
    names = [name for family in families for name in family.__all__]
    assert len(names) > 150
    lacking = {name: block for name in names for block in blocks if block not in (getattr(tg.nn, name).__doc__ or "")}
    assert not lacking


FAMILIES = """activation adaptive batchnorm channelshuffle conv distance dropout flatten fold instancenorm
linear linear_cross_entropy_options loss normalization padding pixelshuffle pooling rnn sparse transformer
upsampling""".split()


@oracle
def test_nothing_is_missing():
    assert set(torch.nn.modules.__all__) <= set(tg.nn.modules.__all__)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("name, args, shape", [
    ("Conv2d", (4, 2, 3), IMAGE), ("BatchNorm2d", (4,), IMAGE), ("LSTM", (4, 6, 2), STEPS), ("MaxPool2d", (2,), IMAGE),
    ("TransformerEncoderLayer", (4, 2, 8), STEPS), ("Embedding", (9, 3), None), ("ELU", (0.5,), IMAGE)])
def test_copies(copied, name, args, shape):
    module = build(tg, name, args, {}).eval()
    x = tg.tensor(floats(*shape) if shape else ints(9, 4))
    assert repr(copied(module)) == repr(module)
    assert_same(arrays(tensors(tg, copied(module)(x))), arrays(tensors(tg, module(x))))


def test_settings_can_be_named_or_counted():
    class Wide(tg.nn.MaxPool2d):
        def __init__(self):
            super().__init__(5, padding=2)

    assert (Wide().kernel_size, Wide().stride, Wide().padding) == (5, 5, 2)
    assert repr(tg.nn.ReLU(inplace=True)) == repr(tg.nn.ReLU(True)) == "ReLU(inplace=True)"
    assert tg.nn.ELU.__constants__ == ["alpha", "inplace"]
    assert tg.nn.L1Loss(None, None, "sum").reduction == "sum"


def test_inplace_writes_into_the_input():
    x = tg.tensor([-1.0, 2.0])
    assert tg.nn.ReLU(inplace=True)(x) is x
    assert x.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("flags, reduction", [
    ((None, None), "mean"), ((True, None), "mean"), ((False, None), "sum"), ((None, False), "none"),
    ((False, False), "none"), ((False, True), "sum")])
def test_old_flags_of_losses(flags, reduction):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert tg.nn.MSELoss(*flags).reduction == reduction
    assert len(caught) == (flags != (None, None))


def test_deprecated_names_warn():
    with pytest.warns(FutureWarning, match="`min_value` is deprecated and renamed to `min_val`"):
        assert tg.nn.Hardtanh(min_value=-3).min_val == -3
    with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
        tg.nn.NLLLoss2d()


def test_batch_norm_follows_its_batches():
    norm, x = tg.nn.BatchNorm1d(3, momentum=None), tg.tensor(floats(8, 3))
    norm(x[:4])
    norm(x[4:])
    halves = floats(8, 3).reshape(2, 4, 3)
    np.testing.assert_allclose(norm.running_mean.numpy(), halves.mean(1).mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(norm.running_var.numpy(), halves.var(1, ddof=1).mean(0), rtol=1e-5)
    assert norm.num_batches_tracked.item() == 2
    norm.reset_running_stats()
    assert norm.running_var.tolist() == [1, 1, 1] and norm.num_batches_tracked.item() == 0


def test_batch_norm_loads_a_state_without_the_count():
    norm = tg.nn.BatchNorm1d(3)
    norm.num_batches_tracked.fill_(7)
    norm.load_state_dict({n: t for n, t in norm.state_dict().items() if n != "num_batches_tracked"})
    assert norm.num_batches_tracked.item() == 7


def test_instance_norm_refuses_running_statistics_that_it_does_not_track():
    state = {"running_mean": tg.zeros(3), "running_var": tg.ones(3)}
    with pytest.raises(RuntimeError, match="Unexpected running stats buffer"):
        tg.nn.InstanceNorm1d(3).load_state_dict(state)


def test_convert_sync_batchnorm():
    model = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.Sequential(tg.nn.BatchNorm1d(4, momentum=0.3))).eval()
    norm = model[1][0]
    converted = tg.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert converted is model and type(model[1][0]) is tg.nn.SyncBatchNorm
    assert model[1][0].weight is norm.weight and model[1][0].momentum == 0.3 and not model[1][0].training


def test_lazy_modules_take_their_shapes_from_a_state():
    full, lazy = tg.nn.Linear(3, 2), tg.nn.LazyLinear(2)
    assert lazy.has_uninitialized_params()
    lazy.load_state_dict(full.state_dict())
    assert_same(arrays([lazy(tg.ones(4, 3))]), arrays([full(tg.ones(4, 3))]))
    assert type(lazy) is tg.nn.Linear and lazy.in_features == 3


def test_lazy_modules_in_a_model():
    tg.manual_seed(0)
    model = tg.nn.Sequential(tg.nn.LazyConv2d(4, 3), tg.nn.LazyBatchNorm2d(), tg.nn.Flatten(), tg.nn.LazyLinear(2))
    assert model(tg.tensor(floats(2, 3, 5, 5))).shape == (2, 2)
    assert [type(m).__name__ for m in model] == ["Conv2d", "BatchNorm2d", "Flatten", "Linear"]
    assert model[0].weight.shape == (4, 3, 3, 3) and model[1].num_features == 4 and model[3].in_features == 36


def test_dropout_keeps_what_a_mask_keeps():
    dropout, x = tg.nn.Dropout(0.2), tg.tensor(floats(3, 4), requires_grad=True)
    mask = tg.tensor(signs(3, 4) > 0)
    dropout._generate_mask = lambda input: mask
    out = dropout(x)
    out.sum().backward()
    assert_same(arrays([out, x.grad]), [np.where(mask.numpy(), floats(3, 4) / 0.8, 0).astype(np.float32),
                                        (mask.numpy() / 0.8).astype(np.float32)])
    assert (dropout.eval()(x) == x).all()


def test_embeddings_from_pretrained():
    table = tg.tensor(floats(5, 3))
    layer = tg.nn.Embedding.from_pretrained(table, padding_idx=1)
    assert not layer.weight.requires_grad and (layer(tg.tensor([1, 4])) == table[[1, 4]]).all()
    assert tg.nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    bags = tg.nn.EmbeddingBag.from_pretrained(table, mode="sum")
    assert_same(arrays([bags(tg.tensor([[0, 2]]))]), arrays([(table[0] + table[2]).unsqueeze(0)]))
    with pytest.raises(AssertionError, match="expected to be 2-dimensional"):
        tg.nn.Embedding.from_pretrained(tg.zeros(3))


def test_padding_index_gets_no_gradient():
    layer = tg.nn.Embedding(5, 3, padding_idx=-4)
    assert layer.padding_idx == 1 and (layer.weight[1] == 0).all()
    layer(tg.tensor([1, 2, 2])).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [0, 0, 6, 0, 0]


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_packed_sequences_stop_at_their_ends(kind):
    """Each sequence of a packed batch has the result that it has alone, in any order of lengths."""
    tg.manual_seed(0)
    rnn, x, lengths = getattr(tg.nn, kind)(4, 6, 2, bidirectional=True), tg.tensor(floats(5, 3, 4)), [2, 5, 3]
    packed = tg.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    output, hidden = rnn(packed)
    output, _ = tg.nn.utils.rnn.pad_packed_sequence(output)
    for i, n in enumerate(lengths):
        alone, last = rnn(x[:n, i])
        assert_same(arrays([output[:n, i]]), arrays([alone]))
        assert_same(arrays(h[:, i] for h in tensors(tg, hidden)), arrays(tensors(tg, last)))
    again, _ = rnn(packed, _like(hidden))
    assert again.data.shape == (10, 12)


def _like(hidden):
    return tuple(map(tg.zeros_like, hidden)) if isinstance(hidden, tuple) else tg.zeros_like(hidden)


def test_recurrent_weights_are_found_where_they_are():
    rnn = tg.nn.LSTM(4, 6, 2, bidirectional=True, proj_size=3)
    names = [n for n, _ in rnn.named_parameters()]
    assert names[:5] == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    assert names[5:7] == ["weight_ih_l0_reverse", "weight_hh_l0_reverse"] and len(names) == 20
    assert [len(weights) for weights in rnn.all_weights] == [5] * 4
    rnn.weight_ih_l0 = tg.nn.Parameter(tg.zeros_like(rnn.weight_ih_l0))
    assert rnn.all_weights[0][0] is rnn.weight_ih_l0 and rnn._flat_weights[0] is rnn.weight_ih_l0
    assert rnn.flatten_parameters() is None


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_cells_are_steps_of_layers(kind):
    tg.manual_seed(0)
    layer, cell, x = getattr(tg.nn, kind)(4, 6), getattr(tg.nn, kind + "Cell")(4, 6), tg.tensor(floats(5, 3, 4))
    cell.load_state_dict({n.removesuffix("_l0"): t for n, t in layer.state_dict().items()})
    hidden, outputs = None, []
    for step in x:
        hidden = cell(step, hidden)
        outputs.append(hidden[0] if kind == "LSTM" else hidden)
    assert_same(arrays([tg.stack(outputs)]), arrays([layer(x)[0]]))


def test_attention_does_not_look_where_a_mask_hides():
    tg.manual_seed(0)
    attention, x = tg.nn.MultiheadAttention(8, 2, batch_first=True), tg.tensor(floats(3, 5, 8))
    _, weights = attention(x, x, x, key_padding_mask=tg.tensor(padded(5, 3, 4)))
    assert (weights[1, :, 3:] == 0).all() and tg.allclose(weights.sum(-1), tg.ones(3, 5))
    _, weights = attention(x, x, x, attn_mask=tg.tensor(future(5)), average_attn_weights=False)
    assert weights.shape == (3, 2, 5, 5) and (weights.triu(1) == 0).all()
    assert attention(x, x, x, need_weights=False)[1] is None


@oracle
def test_masks_merge_as_in_pytorch():
    for attn, padding in ((None, None), (future(5), None), (None, padded(5, 3, 4)), (future(5), padded(5, 3, 4))):
        merged = []
        for lib in (tg, torch):
            masks = [None if m is None else lib.tensor(m.astype(np.float32)) for m in (attn, padding)]
            merged.append(lib.nn.MultiheadAttention(8, 2).merge_masks(*masks, lib.zeros(3, 5, 8)))
        assert merged[0][1] == merged[1][1]
        assert_same(arrays([merged[0][0]]), arrays([merged[1][0]]))


def test_transformer_masks():
    mask = tg.nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]
    assert tg.nn.Transformer.generate_square_subsequent_mask(2, dtype=tg.float64).dtype == tg.float64


@oracle
@pytest.mark.parametrize("hidden, mask_check", [
    (padded(5, 3, 4), True), (padded(5, 3, 4), False), (padded(5, 3, 4)[:, ::-1].copy(), True)])
def test_encoder_without_gradients_sets_padding_to_zero(hidden, mask_check):
    """As PyTorch's nested tensors do, where they take part."""
    outputs = []
    for lib in (tg, torch):
        lib.manual_seed(0)
        layer = lib.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = lib.nn.TransformerEncoder(layer, 2, mask_check=mask_check).eval()
        with lib.no_grad():
            outputs.append(encoder(lib.tensor(floats(3, 5, 8)), src_key_padding_mask=lib.tensor(hidden)))
    assert_same(arrays(outputs[:1]), arrays(outputs[1:]))


@oracle
@pytest.mark.parametrize("options, more", [
    ({}, {}), ({"batch_first": True}, {}), ({"batch_first": True, "norm_first": True}, {}),
    ({"batch_first": True, "nhead": 1}, {}), ({"batch_first": True, "bias": False}, {}),
    ({"batch_first": True, "activation": lambda lib: lib.tanh}, {}), ({}, {"enable_nested_tensor": False}),
    ({"batch_first": True}, {"enable_nested_tensor": False})])
def test_encoder_warns_as_pytorch(options, more):
    said = []
    for lib in (tg, torch):
        options = {"d_model": 8, "nhead": 2, "dim_feedforward": 4, **options}
        layer = lib.nn.TransformerEncoderLayer(**given(lib, options))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            encoder = lib.nn.TransformerEncoder(layer, 1, **more)
        said.append(([str(w.message) for w in caught], encoder.use_nested_tensor, layer.activation_relu_or_gelu))
    assert said[0] == said[1]


@oracle
def test_adaptive_softmax_tells_all_classes():
    results = []
    for lib in (tg, torch):
        lib.manual_seed(0)
        softmax = lib.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [3, 10], div_value=2.0)
        with lib.no_grad():
            for parameter in softmax.parameters():
                parameter.mul_(4)
        x = lib.tensor(floats(30, 8))
        results.append(arrays([softmax.log_prob(x), softmax.predict(x), *softmax(x, softmax.predict(x))]))
    assert_same(*results)
    assert len(np.unique(results[0][1])) > 5


def test_device_and_dtype_reach_the_weights():
    for name, args in (("Linear", (3, 2)), ("Conv2d", (3, 2, 1)), ("BatchNorm1d", (3,)), ("LSTM", (3, 2)),
                       ("LayerNorm", (3,)), ("Embedding", (3, 2)), ("MultiheadAttention", (4, 2)), ("PReLU", ()),
                       ("GRUCell", (3, 2)), ("TransformerDecoderLayer", (4, 2)),
                       ("AdaptiveLogSoftmaxWithLoss", (4, 6, [2]))):
        module = getattr(tg.nn, name)(*args, device="cpu", dtype=tg.float64)
        assert {p.dtype for p in module.parameters()} == {tg.float64}


@oracle
@pytest.mark.parametrize("prefix", ["module.", "a"])
def test_prefixes_are_taken_off(prefix):
    states = []
    for lib in (tg, torch):
        state = lib.nn.Sequential(lib.nn.Linear(1, 1)).state_dict(prefix="module.")
        lib.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, prefix)
        states.append((list(state), list(state._metadata)))
    assert states[0] == states[1]


def test_a_causal_hint_stands_for_the_mask():
    """Where no weights are asked for, PyTorch goes by the hint alone, also over the keys that are added."""
    from nn_oracle import agree

    def program(torch):
        found = []
        x = torch.randn(3, 2, 4)
        for options in ({}, {"add_bias_kv": True}, {"add_zero_attn": True}):
            attention = torch.nn.MultiheadAttention(4, 2, **options)
            mask = torch.ones(3, 3).triu(1).bool()
            found += [attention(x, x, x, attn_mask=mask, is_causal=True, need_weights=needed)[0]
                      for needed in (True, False)]
        return found
    agree(program)


@pytest.mark.parametrize("name", ["ReLU", "Softmax", "Hardtanh", "CrossEntropyLoss", "Linear", "Conv2d", "LSTM",
                                  "LayerNorm", "Embedding", "Fold"])
def test_arguments_that_do_not_fit(name):
    """Python's own errors, whichever way the constructor is made."""
    from nn_oracle import agree, raising

    def program(torch):
        layer = getattr(torch.nn, name)
        return [raising(lambda args=args, options=options: layer(*args, **options)) for args, options in (
            ((1,) * 20, {}), ((), {"foo": 1}), ((2,), {"foo": 1}), ((2, 2), {"foo": 1, "bar": 2}))]
    agree(program)
