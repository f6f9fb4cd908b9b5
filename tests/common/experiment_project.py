"""A project of small things, in which tests of commands run: in this process, and in others."""

import contextlib
import os
import sys
from pathlib import Path

from tensorgrad.experiment import callbacks, datasets, losses, models
from tensorgrad.experiment.__main__ import main

FILES = {
    "models/__init__.py": """
import tensorgrad as torch
from tensorgrad.experiment import models

@models.register("tiny")
class Tiny(torch.nn.Module):
    def __init__(self, width: int = 5):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(width, 3))
    def forward(self, batch):
        return self.net(batch["img"])
""",  # noqa: E501
    "datasets/__init__.py": """
import tensorgrad as torch
from tensorgrad.experiment import DataModule, datasets

@datasets.register("tiny-ds")
class Tiny(torch.utils.data.Dataset):
    def __init__(self, size: int = 48, seed: int = 0):
        generator = torch.Generator().manual_seed(seed)
        self.x = torch.randn(size, 8, generator=generator)
        self.y = self.x[:, :3].argmax(1).tolist()
    def __len__(self):
        return len(self.y)
    def __getitem__(self, i):
        return {"img": self.x[i], "label": self.y[i]}

@datasets.register("tiny-dm")
class TinyModule(DataModule):
    def train_dataloader(self):
        return torch.utils.data.DataLoader(Tiny(), 8, shuffle=True)
    def val_dataloader(self):
        return torch.utils.data.DataLoader(Tiny(16, 1), 8)
""",
    "losses/__init__.py": "",
    "callbacks/__init__.py": """
import os, resource, signal, sys
from tensorgrad.experiment import Callback, callbacks

@callbacks.register("at-step")
class AtStep(Callback):
    '''Does something after a step: raises, sends a signal to this process or its parent, or limits the size of files.'''
    def __init__(self, step: int = -1, what: str = "raise", once: str = ""):
        self.step, self.what, self.once = step, what, once
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step != self.step or self.once and os.path.exists(self.once):
            return
        if self.once:
            open(self.once, "w").close()
        if self.what == "raise":
            raise RuntimeError("this went wrong")
        if self.what == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
            return
        who, name = (os.getppid(), self.what.removeprefix("parent-")) if self.what.startswith("parent-") else (os.getpid(), self.what)
        os.kill(who, getattr(signal, name))
""",  # noqa: E501
    "configs/plain.yaml": """
train_dataset: {dataset: {name: tiny-ds, args: {size: 48}}, batch_size: 8, shuffle: true}
val_dataset: {dataset: {name: tiny-ds, args: {size: 16, seed: 1}}, batch_size: 8, shuffle: false}
model: {name: tiny, args: {width: 6}}
optimizer: {name: Adam, args: {lr: 5.e-2}}
scheduler: {name: StepLR, args: {step_size: 2, gamma: 0.5}}
loss: {name: mnist_ce}
epoch_max: 4
epoch_val: 1
epoch_save: 2
step_save: 2
run_step: true
load_optimizer: true
callbacks: [{name: at-step, args: {}}]
seed: 42
""",
    "configs/trainer.yaml": """
data_module: {name: tiny-dm}
train_wrapper:
  name: base
  args:
    model_spec: {name: tiny, args: {width: 6}}
    loss_spec: {name: mnist_ce}
    optim_spec: {name: Adam, args: {lr: 0.05}}
    scheduler_spec: {name: StepLR, args: {step_size: 2}}
trainer_params: {max_epochs: 3, log_every_n_steps: 2}
checkpoint: {every_n_train_steps: 2, monitor: loss, mode: min, save_top_k: 1}
callbacks: [{name: at-step, args: {}}]
seed: 42
""",
    "train.py": "",
}
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
PACKAGES = ("models", "datasets", "losses", "callbacks", "utils")


def write(folder):
    """The project, in a new directory."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.lstrip())
    return folder


@contextlib.contextmanager
def inside(folder):
    """Work in a project; what it imports and registers is forgotten afterwards."""
    registries = [part.registry for part in (models, datasets, losses, callbacks)]
    for registry in registries:
        registry.names()
    before = [dict(registry._classes) for registry in registries]
    modules, path, where = {name: sys.modules.pop(name) for name in _ours()}, list(sys.path), os.getcwd()
    for registry in registries:
        for name in [name for name, made in registry._classes.items() if made.__module__.partition(".")[0] in PACKAGES]:
            del registry._classes[name]
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(where)
        sys.path[:] = path
        for name in _ours():
            del sys.modules[name]
        sys.modules.update(modules)
        for registry, classes in zip(registries, before):
            registry._classes.clear()
            registry._classes.update(classes)


def _ours():
    return [name for name in sys.modules if name.partition(".")[0] in PACKAGES]


def run(*words):
    """The exit code of `run` with these words, on the CPU."""
    return main(["run", *words, "--gpu", "cpu"])


def rows(path, without=("time",)):
    """metrics.csv as lists of cells, without some columns."""
    lines = [line.split(",") for line in (path / "metrics.csv").read_text().splitlines()]
    kept = [i for i, name in enumerate(lines[0]) if name not in without]
    return [[line[i] for i in kept] for line in lines]
