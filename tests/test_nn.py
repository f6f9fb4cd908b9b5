"""Modules beside PyTorch's, with the same state: results, gradients of inputs and parameters, buffers.

    python -m unittest -v tests/test_nn.py
    DEVICE=cuda SHOW_DIFF=1 python -m unittest discover -s tests -p "test_nn.py"
"""
import os
import sys
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "common"))

import numpy as np
from parameterized import parameterized
from parity import DEVICE, alike, close, copied, needs_torch, normal, ours, theirs, torch, uniform, values, weighted

import tensorgrad


def engines():
    return (tensorgrad, ours), (torch, theirs)


def twins(name, *args, **options):
    """A module of ours and PyTorch's, with the state of the latter."""
    torch.manual_seed(0)
    source = getattr(torch.nn, name)(*args, **options)
    return copied(getattr(tensorgrad.nn, name)(*args, **options), source), source


def alike_modules(pair, *arrays, tolerance=1e-5, call=None):
    """Assert that both modules have equal results, gradients and buffers."""
    inputs = [[make(a, np.asarray(a).dtype.kind == "f") for a in arrays] for _, make in engines()]
    results = [(call or (lambda module, *xs: module(*xs)))(module, *xs)
               for module, xs in zip(pair, inputs, strict=True)]
    results = [r if isinstance(r, tuple) else (r,) for r in results]
    for mine, reference in zip(*results, strict=True):
        close(mine, reference, tolerance, "result")
    for outputs in results:
        sum(weighted(out) for out in outputs if out.requires_grad).backward()
    for place, (mine, reference) in enumerate(zip(*inputs, strict=True)):
        if mine.grad is not None or reference.grad is not None:
            close(mine.grad, reference.grad, tolerance, f"gradient of input {place}")
    for (name, mine), (other, reference) in zip(pair[0].named_parameters(), pair[1].named_parameters(), strict=True):
        assert name == other
        close(mine.grad, reference.grad, tolerance, f"gradient of {name}")
    for (name, mine), (other, reference) in zip(pair[0].named_buffers(), pair[1].named_buffers(), strict=True):
        assert name == other
        close(mine, reference, tolerance, f"buffer {name}")


@needs_torch
class TestSequential(unittest.TestCase):
    def test_a_stack(self):
        def build(nn):
            return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        source = build(torch.nn)
        alike_modules((copied(build(tensorgrad.nn), source), source), normal(5, 4))

    def test_as_a_container(self):
        parts = tensorgrad.nn.Linear(4, 8), tensorgrad.nn.ReLU(), tensorgrad.nn.Linear(8, 3)
        stack = tensorgrad.nn.Sequential(*parts)
        self.assertEqual(len(stack), 3)
        self.assertIs(stack[-1], parts[2])
        self.assertEqual(list(stack), list(parts))
        reference = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
        self.assertEqual(list(stack.state_dict()), list(reference.state_dict()))
        with self.assertRaises(IndexError):
            stack[3]


@needs_torch
class TestLinear(unittest.TestCase):
    @parameterized.expand([((4,), 4, 3), ((5, 4), 4, 3), ((2, 5, 4), 4, 3), ((2, 3, 5, 4), 4, 1), ((32, 64), 64, 128),
                           ((0, 4), 4, 3)])
    def test_linear(self, shape, features, out):
        for bias in (True, False):
            alike_modules(twins("Linear", features, out, bias=bias), normal(*shape), tolerance=1e-4)

    def test_bilinear(self):
        alike_modules(twins("Bilinear", 3, 4, 5), normal(2, 3), normal(2, 4, seed=1), tolerance=1e-4)


@needs_torch
class TestConvolutions(unittest.TestCase):
    @parameterized.expand([
        (3, {}), ((3, 2), {"stride": (2, 1)}), (3, {"padding": 1}), (3, {"stride": 2, "padding": (1, 0)}),
        (3, {"padding": "same"}), (4, {"padding": "same"}), (3, {"padding": "valid"}), (8, {}), (3, {"bias": False}),
        (3, {"padding": 2, "padding_mode": "reflect"}), (3, {"padding": 1, "padding_mode": "circular"}),
        (3, {"dilation": 2}), (1, {"stride": 3}),
    ])
    def test_conv2d(self, kernel, options):
        with warnings.catch_warnings():          # PyTorch: even kernels with padding='same' cost a copy
            warnings.simplefilter("ignore")
            alike_modules(twins("Conv2d", 3, 4, kernel, **options), normal(2, 3, 9, 8), tolerance=1e-4)

    def test_same_size_with_even_kernels(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            conv = tensorgrad.nn.Conv2d(1, 1, (4, 2), padding="same").to(DEVICE)
            self.assertEqual(conv(ours(normal(1, 1, 7, 6))).shape, (1, 1, 7, 6))
        with self.assertRaisesRegex(ValueError, "padding='same' is not supported for strided convolutions"):
            tensorgrad.nn.Conv2d(1, 1, 3, padding="same", stride=2)

    @parameterized.expand([("Conv1d", (2, 4, 9)), ("Conv3d", (2, 4, 5, 6, 5)), ("ConvTranspose1d", (2, 4, 5)),
                           ("ConvTranspose2d", (2, 4, 5, 4)),
                           ("ConvTranspose3d", (1, 4, 3, 4, 3))])
    def test_other_convolutions(self, name, shape):
        alike_modules(twins(name, 4, 6, 3, stride=2, padding=1, groups=2), normal(*shape), tolerance=1e-4)


MASKS = {"none": None, "causal": np.triu(np.ones((5, 5), bool), 1), "float": normal(5, 5, seed=9),
         "heads": np.triu(np.ones((3 * 2, 5, 5), bool), 1)}


@needs_torch
class TestAttention(unittest.TestCase):
    @parameterized.expand([(mask, bias, first) for mask in MASKS for bias in (True, False) for first in (True, False)])
    def test_self_attention(self, mask, bias, batch_first):
        pair = twins("MultiheadAttention", 8, 2, bias=bias, batch_first=batch_first)
        shape = (3, 5, 8) if batch_first else (5, 3, 8)

        def call(module, x):
            chosen = (None if MASKS[mask] is None
                      else (ours if isinstance(module, tensorgrad.nn.Module) else theirs)(MASKS[mask]))
            return module(x, x, x, attn_mask=chosen)
        alike_modules(pair, normal(*shape), tolerance=1e-4, call=call)

    def test_cross_attention_with_padding(self):
        pair = twins("MultiheadAttention", 8, 4, kdim=6, vdim=5, batch_first=True)
        padding = np.array([[False, False, True, True], [False, False, False, True]])

        def call(module, q, k, v):
            hidden = (ours if isinstance(module, tensorgrad.nn.Module) else theirs)(padding)
            return module(q, k, v, key_padding_mask=hidden, average_attn_weights=False)
        alike_modules(pair, normal(2, 3, 8), normal(2, 4, 6, seed=1), normal(2, 4, 5, seed=2), tolerance=1e-4,
                      call=call)


@needs_torch
class TestNormalizations(unittest.TestCase):
    @parameterized.expand([(shape, options) for shape in ((8, 3), (4, 3, 5), (4, 3, 5, 2)) for options in
                           ({}, {"affine": False}, {"momentum": None}, {"track_running_stats": False},
                            {"momentum": 0.5, "eps": 1e-2})])
    def test_batch_norm(self, shape, options):
        pair = twins("BatchNorm2d" if len(shape) == 4 else "BatchNorm1d", 3, **options)
        alike_modules(pair, normal(*shape), tolerance=1e-4)
        for module in pair:
            module.zero_grad()
        alike_modules(pair, normal(*shape, seed=1) * 2 + 1, tolerance=1e-4)
        for module in pair:
            module.eval().zero_grad()
        alike_modules(pair, normal(*shape, seed=2), tolerance=1e-4)

    def test_batch_norm_keeps_its_buffers(self):
        norm = tensorgrad.nn.BatchNorm1d(3).to(DEVICE)
        mean = norm.running_mean
        norm(ours(normal(8, 3)))
        self.assertIs(norm.running_mean, mean)
        self.assertIs(dict(norm.named_buffers())["running_mean"], mean)
        self.assertEqual(norm.num_batches_tracked.item(), 1)
        self.assertEqual(str(norm.to(tensorgrad.float64).running_mean.dtype), "torch.float64")

    @parameterized.expand([(4, (3, 4)), ((4,), (2, 3, 4)), ((3, 4), (2, 3, 4)), ((2, 3, 4), (5, 2, 3, 4))])
    def test_layer_norm(self, size, shape):
        for options in ({}, {"elementwise_affine": False}, {"bias": False, "eps": 1e-3}):
            alike_modules(twins("LayerNorm", size, **options), normal(*shape), tolerance=1e-4)

    @parameterized.expand([("GroupNorm", (2, 4), (3, 4, 5)), ("RMSNorm", (4,), (2, 3, 4)),
                           ("InstanceNorm2d", (3,), (2, 3, 4, 5))])
    def test_other_norms(self, name, args, shape):
        alike_modules(twins(name, *args), normal(*shape), tolerance=1e-4)


@needs_torch
class TestEmbedding(unittest.TestCase):
    @parameterized.expand([((4,),), ((2, 3),), ((2, 1, 3),)])
    def test_embedding(self, shape):
        index = np.random.default_rng(0).integers(0, 6, shape)
        for options in ({}, {"padding_idx": 2}, {"scale_grad_by_freq": True}, {"max_norm": 1.0}):
            alike_modules(twins("Embedding", 6, 4, **options), index)

    def test_starts_from_the_normal_distribution(self):
        tensorgrad.manual_seed(0)
        table = values(tensorgrad.nn.Embedding(1000, 50, padding_idx=3).weight)
        self.assertLess(abs(np.delete(table, 3, 0).std() - 1), 0.02)
        self.assertEqual(table[3].tolist(), [0.0] * 50)


@needs_torch
class TestDropout(unittest.TestCase):
    def test_draws_the_same_mask(self):
        """From one seed, both engines drop the same elements."""
        found = []
        for engine in (tensorgrad, torch):
            engine.manual_seed(5)
            x = engine.ones(8, 6, requires_grad=True)
            y = engine.nn.Dropout(0.3)(x)
            weighted(y).backward()
            found.append((y, x.grad))
        for mine, reference in zip(*found, strict=True):
            close(mine, reference, 1e-6)

    def test_extremes(self):
        x = ours(normal(5, 4))
        self.assertEqual(tensorgrad.nn.Dropout(1.0)(x).abs().sum().item(), 0)
        close(tensorgrad.nn.Dropout(0.0)(x), x, 0)
        self.assertIs(tensorgrad.nn.Dropout(0.5).eval()(x), x)
        for p in (-0.1, 1.1):
            with self.assertRaisesRegex(ValueError, "dropout probability has to be between 0 and 1"):
                tensorgrad.nn.Dropout(p)

    def test_kept_elements_are_scaled(self):
        tensorgrad.manual_seed(0)
        x = ours(np.ones((100, 100), "float32"), True)
        y = tensorgrad.nn.Dropout(0.2)(x)
        self.assertEqual(set(np.unique(values(y))), {0.0, np.float32(1.25)})
        self.assertLess(abs((y == 0).float().mean().item() - 0.2), 0.02)
        y.sum().backward()
        close(x.grad, y, 0)


@needs_torch
class TestShapesAndPools(unittest.TestCase):
    @parameterized.expand([((2, 3, 4), {}), ((2, 3), {}), ((2, 3, 4, 5), {"start_dim": 2}),
                           ((2, 3, 4, 5), {"end_dim": 2}),
                           ((2, 3, 4), {"start_dim": 0})])
    def test_flatten(self, shape, options):
        alike(lambda engine, x: engine.nn.Flatten(**options)(x), normal(*shape))

    @parameterized.expand([((8, 8), 2, {}), ((8, 8), (2, 4), {}), ((9, 7), 2, {}), ((8, 8), 3, {"stride": 1}),
                           ((8, 8), 3, {"stride": 2, "padding": 1}), ((8, 8), 8, {}),
                           ((9, 10), (4, 4), {"stride": (2, 1), "padding": (1, 2)})])
    def test_pools(self, shape, kernel, options):
        for name in ("MaxPool2d", "AvgPool2d"):
            alike(lambda engine, x, name=name: getattr(engine.nn, name)(kernel, **options)(x), normal(2, 3, *shape),
                  tolerance=1e-4)

    @parameterized.expand([("MaxPool1d", (2, 3, 9)), ("MaxPool3d", (1, 2, 5, 4, 5)), ("AvgPool1d", (2, 3, 9)),
                           ("AvgPool3d", (1, 2, 5, 4, 5))])
    def test_pools_of_other_dimensions(self, name, shape):
        alike(lambda engine, x: getattr(engine.nn, name)(3, 2, 1)(x), normal(*shape), tolerance=1e-4)

    @parameterized.expand([("AdaptiveAvgPool2d", (3, 2)), ("AdaptiveMaxPool2d", 4)])
    def test_adaptive_pools(self, name, size):
        alike(lambda engine, x: getattr(engine.nn, name)(size)(x), normal(2, 3, 7, 8), tolerance=1e-4)


@needs_torch
class TestActivations(unittest.TestCase):
    @parameterized.expand("ReLU Sigmoid Identity Tanh GELU SiLU ELU LeakyReLU Softplus Hardswish".split())
    def test_elementwise(self, name):
        for shape in ((5,), (3, 4), (2, 3, 4), (2, 3, 4, 5)):
            alike(lambda engine, x: getattr(engine.nn, name)()(x), normal(*shape))

    @parameterized.expand([(shape, dim) for shape in ((5,), (3, 4), (2, 3, 4), (2, 3, 4, 5))
                           for dim in range(-len(shape), len(shape))])
    def test_softmax(self, shape, dim):
        alike(lambda engine, x: (engine.nn.Softmax(dim)(x), engine.nn.LogSoftmax(dim)(x)), normal(*shape))


@needs_torch
class TestLosses(unittest.TestCase):
    @parameterized.expand([(shape, how) for shape in ((4, 3), (8, 10), (5, 1), (3,), (2, 3, 4))
                           for how in ("mean", "sum", "none")])
    def test_cross_entropy(self, shape, reduction):
        classes = shape[0] if len(shape) == 1 else shape[1]
        target = np.random.default_rng(0).integers(0, classes, shape[:1] * (len(shape) > 1) + shape[2:])
        for options in ({}, {"label_smoothing": 0.1}, {"ignore_index": 0 if classes > 1 else -1}):
            alike(lambda engine, x, t, more=options: engine.nn.CrossEntropyLoss(reduction=reduction, **more)(x, t),
                  normal(*shape), target)
        weight = uniform(classes, low=0.5)
        alike(lambda engine, x, t, w: engine.nn.CrossEntropyLoss(w.detach(), reduction=reduction)(x, t), normal(*shape),
              target, weight)

    def test_cross_entropy_with_probabilities(self):
        target = uniform(4, 3)
        target /= target.sum(1, keepdims=True)
        for how in ("mean", "sum", "none"):
            alike(lambda engine, x, t, how=how: engine.nn.CrossEntropyLoss(reduction=how, label_smoothing=0.2)(x, t),
                  normal(4, 3), target)

    def test_cross_entropy_of_large_logits(self):
        x = np.array([[1e3, -1e3, 0.0], [-1e3, 1e3, 1e3]], "float32")
        alike(lambda engine, x, t: engine.nn.CrossEntropyLoss()(x, t), x, np.array([1, 0]))

    @parameterized.expand([("mean",), ("sum",), ("none",)])
    def test_mse(self, reduction):
        alike(lambda engine, x, y: engine.nn.MSELoss(reduction=reduction)(x, y), normal(4, 3), normal(4, 3, seed=1))

    def test_mse_reduces_as_it_is_told(self):
        self.assertEqual(tensorgrad.nn.MSELoss(reduction="sum")(ours([1.0, 2.0]), ours([0.0, 0.0])).item(), 5)

    @parameterized.expand(
        "L1Loss SmoothL1Loss HuberLoss BCEWithLogitsLoss SoftMarginLoss KLDivLoss PoissonNLLLoss".split())
    def test_other_losses(self, name):
        target = uniform(4, 3, low=0.1, high=0.9, seed=1)
        for how in ("sum", "none"):
            alike(lambda engine, x, y, how=how: getattr(engine.nn, name)(reduction=how)(x, y.detach()), normal(4, 3),
                  target)


@needs_torch
class TestRecurrentLayers(unittest.TestCase):
    @parameterized.expand([(name, options) for name in ("RNN", "LSTM", "GRU") for options in
                           ({}, {"num_layers": 2, "batch_first": True}, {"bidirectional": True})])
    def test_recurrent(self, name, options):
        def call(module, x):
            y, h = module(x)
            return (y, *(h if isinstance(h, tuple) else (h,)))
        alike_modules(twins(name, 4, 5, **options), normal(3, 6, 4), tolerance=1e-4, call=call)


if __name__ == "__main__":
    unittest.main()
