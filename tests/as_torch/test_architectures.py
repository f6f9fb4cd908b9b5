"""Whole models, written as PyTorch programs, with `torch` and with tensorgrad under that name: the same weights,
losses, gradients, training.
"""
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from support import DEVICE, needed

import tensorgrad

torch = needed("torch")

FOLDER = Path(__file__).parent / "architectures"
TOLERANCE = 1e-4
DROPOUT = {"dropout": 0.1 if DEVICE == "cpu" else 0.0}       # PyTorch's masks are those of its CPU
STEPS = 3


def program(name, engine):
    """The module `architectures/name.py`, with `engine` for what it imports as torch."""
    def imported(module, *context):
        if module.partition(".")[0] == "torch":
            module = engine.__name__ + module.removeprefix("torch")
        return __import__(module, *context)
    loaded = ModuleType(f"architectures.{name}")
    builtins = __builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)
    loaded.__dict__.update(__builtins__={**builtins, "__import__": imported}, __file__=str(FOLDER / f"{name}.py"))
    exec(compile((FOLDER / f"{name}.py").read_text(encoding="utf-8"), loaded.__file__, "exec"), loaded.__dict__)
    return loaded


# ── small sizes, full structure ───────────────────────────────────────────────────────────────────────────────────────

rng = np.random.default_rng(0)


def images(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def labels(high, *shape, low=0):
    return rng.integers(low, high, shape)


def classify(engine, program, model, x, y):
    return engine.nn.functional.cross_entropy(model(x), y)


def segment(engine, program, model, x, y):
    return program.pixel_loss(model(x), y)


def next_token(engine, program, model, x):
    logits = model(x[:, :-1])
    return engine.nn.functional.cross_entropy(logits.reshape(-1, logits.size(-1)), x[:, 1:].reshape(-1))


def guess(engine, program, model, tokens, segments, words, order):
    return program.masked_loss(model(tokens, segments), words, order)


def through_time(engine, program, model, x):
    """Train on two windows of text; the state carries over, its gradient does not."""
    state, loss = model.start(x.shape[1]), 0.0
    for window in x.split(5):
        logits, state = model(window[:-1], program.detached(state))
        loss = loss + engine.nn.functional.cross_entropy(logits.flatten(0, 1), window[1:].flatten())
    engine.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    return loss


def masked(tokens):
    """The words to guess: every fifth, where there is one."""
    return np.where((np.arange(tokens.size).reshape(tokens.shape) % 5 == 0) & (tokens != 0), tokens, -100)


SENTENCES = np.where(np.arange(9) < np.array([9, 7, 6])[:, None], labels(29, 3, 9, low=1), 0)
PIXELS = labels(2, 1, 92, 92)
PIXELS[:, :30] = 255


class Case(NamedTuple):
    name: str
    build: Callable        # of the program
    batch: tuple           # of arrays
    loss: Callable
    optimizer: Callable    # of the engine, of the model
    dtype: str = "float32"     # in the deepest, norms over few values blow rounding errors up beyond any tolerance


def sgd(engine, model):
    return engine.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


# the bias of keys has a gradient of rounding errors alone: `eps` keeps it from steps of full length
def adamw(engine, model):
    groups = model.groups(0.1) if hasattr(model, "groups") else model.parameters()
    return engine.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-4)


CASES = [
    Case("resnet", lambda p: p.ResNet(width=6, classes=5), (images(4, 3, 40, 40), labels(5, 4)), classify,
         lambda engine, model: engine.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)),
    Case("vgg", lambda p: p.VGG(width=4, hidden=20, classes=5, **DROPOUT), (images(3, 3, 36, 36), labels(5, 3)),
         classify, sgd),
    Case("densenet", lambda p: p.DenseNet(growth=3, stem=6, classes=5, **DROPOUT), (images(4, 3, 64, 64), labels(5, 4)),
         classify, sgd, "float64"),
    Case("mobilenet", lambda p: p.MobileNetV2(width=0.2, last=24, by=2, classes=5, **DROPOUT),
         (images(4, 3, 64, 64), labels(5, 4)), classify,
         lambda engine, model: engine.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9, eps=1e-2), "float64"),
    Case("unet", lambda p: p.UNet(width=3, depth=2, **DROPOUT), (images(1, 1, 92, 92), PIXELS), segment,
         lambda engine, model: engine.optim.SGD(model.parameters(), lr=0.01, momentum=0.99)),
    Case("vit", lambda p: p.ViT(size=24, patch=8, width=16, depth=3, heads=4, hidden=32, classes=5, **DROPOUT),
         (images(3, 3, 24, 24), labels(5, 3)), classify, adamw),
    Case("gpt", lambda p: p.GPT(vocabulary=31, context=12, layers=3, heads=4, width=16, **DROPOUT),
         (labels(31, 3, 11),), next_token, adamw),
    Case("bert", lambda p: p.Bert(vocabulary=29, width=16, heads=4, layers=3, hidden=32, length=12, **DROPOUT),
         (SENTENCES, labels(2, 3, 9), masked(SENTENCES), labels(2, 3)), guess, adamw),
    Case("lstm", lambda p: p.LanguageModel(vocabulary=23, width=12, **DROPOUT), (labels(23, 10, 4),), through_time,
         lambda engine, model: engine.optim.SGD(model.parameters(), lr=0.5)),
]
ids = [case.name for case in CASES]


# ── one side ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def device_of(engine):
    return DEVICE if engine is tensorgrad else "cpu"


def tensors(engine, arrays):
    return [engine.tensor(array, device=device_of(engine)) for array in arrays]


def array(tensor):
    return tensor.detach().cpu().numpy().copy()


def arrays(named):
    return {name: array(tensor) for name, tensor in named}


class Trained:
    """Return a model, the results of its steps, and its output in evaluation mode."""

    def __init__(self, case, engine, seed=3):
        self.case, self.engine = case, engine
        self.program = program(case.name, engine)
        engine.manual_seed(seed)
        self.model = case.build(self.program).to(device_of(engine), getattr(engine, case.dtype))
        self.start = arrays(self.model.named_parameters())
        self.batch = [x.to(getattr(engine, case.dtype)) if x.is_floating_point() else x
                      for x in tensors(engine, case.batch)]

    def steps(self):
        optimizer = self.case.optimizer(self.engine, self.model)
        self.model.train()
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = self.loss()
            loss.backward()
            yield {"loss": array(loss), **{f"gradient of {name}": array(p.grad)
                                           for name, p in self.model.named_parameters()}}
            optimizer.step()

    def loss(self):
        return self.case.loss(self.engine, self.program, self.model, *self.batch)

    def evaluated(self):
        self.model.eval()
        with self.engine.no_grad():
            return {"loss in eval mode": array(self.loss())}


def close(ours, theirs):
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        assert ours[name].shape == expected.shape and ours[name].dtype == expected.dtype, name
        np.testing.assert_allclose(ours[name], expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


def given(engine, state):
    return {name: engine.tensor(value) for name, value in arrays(state.items()).items()}


# ── both ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")       # which its encoder uses in eval mode
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_training(case):
    ours, theirs = (Trained(case, engine) for engine in (tensorgrad, torch))
    assert repr(ours.model) == repr(theirs.model)
    assert ({name: value.shape for name, value in ours.start.items()}
            == {name: value.shape for name, value in theirs.start.items()})
    for name, value in theirs.start.items():
        np.testing.assert_allclose(ours.start[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    for mine, reference in zip(ours.steps(), theirs.steps(), strict=True):
        close(mine, reference)
    close(arrays(ours.model.state_dict().items()), arrays(theirs.model.state_dict().items()))
    close(ours.evaluated(), theirs.evaluated())

    for one, other in ((ours, theirs), (theirs, ours)):          # the state goes across, in both directions
        fresh = Trained(case, other.engine, seed=4)
        assert (str(fresh.model.load_state_dict(given(other.engine, one.model.state_dict())))
                == "<All keys matched successfully>")
        close(fresh.evaluated(), one.evaluated())


def test_adversaries():
    """DCGAN: two models and two optimizers, one loss against the other."""
    runs = []
    real, noise = images(4, 3, 64, 64), images(4, 7, 1, 1)
    for engine in (tensorgrad, torch):
        dcgan = program("dcgan", engine)
        engine.manual_seed(5)
        forger, judge = (dcgan.Generator(noise=7, width=3).to(device_of(engine)),
                         dcgan.Discriminator(width=3).to(device_of(engine)))
        criterion = engine.nn.BCELoss()
        forging, judging = (engine.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999), eps=1e-4)
                            for m in (forger, judge))
        x, z = tensors(engine, (real, noise))
        seen = {}
        for step in range(STEPS):
            judging.zero_grad()
            fake = forger(z)
            for truth, shown in ((1.0, x), (0.0, fake.detach())):
                opinion = judge(shown)
                loss = criterion(opinion, engine.full_like(opinion, truth))
                loss.backward()
                seen[f"judge {truth}, step {step}"] = array(loss)
            judging.step()
            forger.zero_grad()
            opinion = judge(fake)
            loss = criterion(opinion, engine.ones_like(opinion))
            loss.backward()
            forging.step()
            seen[f"forger, step {step}"] = array(loss)
        for model in (forger, judge):
            seen |= {f"{type(model).__name__}.{name}": value
                     for name, value in arrays(model.state_dict().items()).items()}
        runs.append((seen, [repr(forger), repr(judge)]))
    assert runs[0][1] == runs[1][1]
    close(runs[0][0], runs[1][0])


def test_every_architecture_is_trained():
    assert {file.stem for file in FOLDER.glob("[a-z]*.py")} == {case.name for case in CASES} | {"dcgan"}
