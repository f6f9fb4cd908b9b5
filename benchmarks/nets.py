"""The networks that are trained and run: `net(engine, tiny)` gives a Net.

Most are those of the examples and of the tests, under either library.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .workloads import program


class Net(NamedTuple):
    model: Any
    draw: Callable[[int], Any]          # a batch of inputs
    classes: int = 0


def pictures(engine: Any, *shape: int) -> Callable[[int], Any]:
    return lambda batch: engine.randn(batch, *shape)


def tokens(engine: Any, vocabulary: int, length: int) -> Callable[[int], Any]:
    return lambda batch: engine.randint(0, vocabulary, (batch, length))


def mlp(engine: Any, tiny: bool) -> Net:
    nn = engine.nn
    a, b, c, d = (8, 6, 5, 4) if tiny else (784, 256, 128, 10)
    return Net(nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c), nn.ReLU(), nn.Linear(c, d)),
               pictures(engine, a), d)


def cnn(engine: Any, tiny: bool) -> Net:
    return Net(program("examples/mnist/cnn/model.py", engine).CNN(), pictures(engine, 1, 28, 28), 10)


def vit(engine: Any, tiny: bool) -> Net:
    sizes = dict(size=8, embed=16) if tiny else {}
    model = program("examples/mnist/vit/model.py", engine).ViT(**sizes)
    return Net(model, pictures(engine, 1, *2 * [sizes.get("size", 28)]), 10)


def chargpt(engine: Any, tiny: bool) -> Net:
    letters, context, width, heads, layers = (7, 8, 16, 4, 2) if tiny else (65, 64, 128, 4, 4)
    return Net(program("examples/chargpt/model.py", engine).GPT(letters, context, width, heads, layers),
               tokens(engine, letters, context), letters)


def lstm(engine: Any, tiny: bool) -> Net:
    words, width, length = (11, 8, 5) if tiny else (1000, 256, 32)
    model = program("tests/as_torch/architectures/lstm.py", engine).LanguageModel(words, width, dropout=0.2)
    return Net(model, lambda batch: engine.randint(0, words, (length, batch)), words)


def resnet(engine: Any, tiny: bool, name: str = "resnet18", size: int = 32, width: int = 64) -> Net:
    sizes = dict(num_classes=5, width=8) if tiny else dict(num_classes=10 if size == 32 else 1000, width=width)
    return Net(program("examples/inference/resnet.py", engine).resnet(name, **sizes),
               pictures(engine, 3, *2 * [32 if tiny else size]), sizes["num_classes"])


def mobilenet(engine: Any, tiny: bool) -> Net:
    model = program("tests/as_torch/architectures/mobilenet.py",
                    engine).MobileNetV2(**dict(width=0.25, last=16, classes=5) if tiny else {})
    return Net(model, pictures(engine, 3, *2 * [32 if tiny else 224]), 5 if tiny else 1000)


def gpt2(engine: Any, tiny: bool) -> Net:
    code = program("examples/inference/gpt2.py", engine)
    config = code.Config(61, 16, 24, 2, 4) if tiny else code.Config()
    model = code.GPT2(config)
    forward = model.forward
    model.forward = lambda text: forward(text, last=True)               # as generation does
    return Net(model, tokens(engine, config.vocab_size, 8 if tiny else 64), config.vocab_size)


def generator(engine: Any, tiny: bool) -> Net:
    noise, width = (4, 4) if tiny else (100, 32)
    return Net(program("tests/as_torch/architectures/dcgan.py", engine).Generator(noise, width),
               pictures(engine, noise, 1, 1))


def discriminator(engine: Any, tiny: bool) -> Net:
    return Net(program("tests/as_torch/architectures/dcgan.py", engine).Discriminator(4 if tiny else 32),
               pictures(engine, 3, 64, 64))


def vae(engine: Any, tiny: bool) -> Net:
    """Kingma & Welling, 2013: images to their reconstruction, and the mean and log variance of their code."""
    nn = engine.nn
    pixels, hidden, code = (12, 8, 3) if tiny else (784, 400, 20)

    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.mean, self.spread = (nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU()),
                                                    nn.Linear(hidden, code), nn.Linear(hidden, code))
            self.decoder = nn.Sequential(nn.Linear(code, hidden), nn.ReLU(), nn.Linear(hidden, pixels), nn.Sigmoid())

        def forward(self, x: Any) -> Any:
            x = self.encoder(x)
            mean, spread = self.mean(x), self.spread(x)
            z = mean + engine.randn_like(mean) * (0.5 * spread).exp() if self.training else mean
            return self.decoder(z), mean, spread
    return Net(VAE(), lambda batch: engine.rand(batch, pixels))
