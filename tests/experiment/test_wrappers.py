"""Wrappers: models, losses, optimizers and schedules from specs; GANs."""

import experiment_parts as parts
import pytest
from experiment_parts import rows
from support import cpu_only

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.experiment import BaseWrapper, GANWrapper, Run, Trainer, losses, models, wrappers

pytestmark = cpu_only


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Images(torch.utils.data.Dataset):
    """Small images whose class is where they are bright."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        image = torch.zeros(1, 4, 4)
        image[0, index % 4] = 1 + index / 24
        return {"img": image, "label": index % 4}


@models.register("test-flat", replace=True)
class Flat(nn.Module):
    def __init__(self, out_dim=4):
        super().__init__()
        self.layer = nn.Linear(16, out_dim)

    def forward(self, batch):
        return self.layer(batch["img"].flatten(1))


@losses.register("test-terms", replace=True)
class Terms(nn.Module):
    def forward(self, pred, batch, batch_idx=None, stage=None, model=None):
        assert stage in ("train", "val", "test") and isinstance(model, Flat) and batch_idx >= 0
        entropy, size = nn.functional.cross_entropy(pred, batch["label"]), pred.square().mean()
        return {"loss": entropy + 0.01 * size, "entropy": entropy, "size": size}


MODEL, LOSS = {"name": "test-flat", "args": {"out_dim": 4}}, {"name": "test-terms"}
OPTIMIZER = {"name": "Adam", "args": {"lr": 0.1}}


def loader(batch_size=6):
    return torch.utils.data.DataLoader(Images(), batch_size=batch_size, shuffle=True)


def wrapper(**more):
    return models.make(
        {"name": "base", "args": {"model_spec": MODEL, "loss_spec": LOSS, "optim_spec": OPTIMIZER} | more}
    )


def test_E5_wrappers_are_models_by_name():
    assert (
        isinstance(wrapper(), BaseWrapper)
        and {"base", "gan", "mlp"} <= set(models.names())
        and wrappers.names() == models.names()
    )


def test_E15_E32_base_wrapper_logs_every_term(tmp_path):
    yaml = pytest.importorskip("yaml")
    module = wrapper(scheduler_spec={"name": "StepLR", "args": {"step_size": 1, "gamma": 0.5}})
    with Run(tmp_path / "run", events=False, quiet=True) as run:
        made = Trainer(max_epochs=3, run=run, accelerator="cpu", log_every_n_steps=2)
        made.fit(module, loader(), loader())
        assert {"loss", "entropy", "size", "val_loss"} <= set(made.progress_bar_metrics)
        (tested,) = made.test(module, loader())
    found = [row for row in rows(tmp_path / "run") if "loss_epoch" in row]
    assert len(found) == 3 and float(found[2]["loss_epoch"]) < float(found[0]["loss_epoch"]) / 2
    assert all(
        {f"{name}_epoch" for name in ("loss", "entropy", "size")} | {"val_loss", "val_entropy", "val_size"} < set(row)
        for row in found
    )
    assert set(tested) == {"test_loss", "test_entropy", "test_size"}
    assert made.optimizers[0].param_groups[0]["lr"] == 0.1 / 8
    (path,) = (tmp_path / "run").rglob("hparams.yaml")
    assert yaml.safe_load(path.read_text()) == {
        "model_spec": MODEL,
        "loss_spec": LOSS,
        "optim_spec": OPTIMIZER,
        "scheduler_spec": {"name": "StepLR", "args": {"step_size": 1, "gamma": 0.5}},
    }
    again = BaseWrapper.load_from_checkpoint(tmp_path / "run" / "ckpt" / "last.ckpt")
    assert parts.equal(again.state_dict(), module.state_dict()) and again.hparams == module.hparams


@pytest.mark.parametrize(
    "spec, rate",
    [
        (None, 0.1),
        (
            {
                "name": "LambdaLR",
                "args": {"lr_lambda": {"name": "warmup_lr", "args": {"start": 0.1, "total_iters": 3}}},
            },
            0.1,
        ),
        ({"name": "ExponentialLR", "args": {"gamma": 0.5}, "interval": "step", "frequency": 4}, 0.025),
        (
            {
                "name": "ReduceLROnPlateau",
                "args": {"patience": 0, "factor": 0.5, "threshold": 9.0, "threshold_mode": "abs"},
            },
            0.05,
        ),
        (
            {
                "name": "ReduceLROnPlateau",
                "args": {"patience": 0, "factor": 0.5, "threshold": 9.0, "threshold_mode": "abs"},
                "monitor": "size",
            },
            0.05,
        ),
    ],
)
@pytest.mark.parametrize("validated", [True, False])
def test_E15_schedules_of_base_wrapper(spec, rate, validated):
    made = Trainer(max_epochs=2, accelerator="cpu")
    made.fit(wrapper(scheduler_spec=spec), loader(), loader() if validated else None)
    assert made.optimizers[0].param_groups[0]["lr"] == pytest.approx(rate)


def test_E15_steps_of_several_devices_are_averaged():
    module = wrapper()
    made = Trainer(max_epochs=1, accelerator="cpu")
    made.fit(module, loader())
    from tensorgrad.experiment.results import Results

    made.results = Results(True, made.parallel)
    made.results.per_batch = True
    ended = module.training_step_end({"loss": torch.tensor([1.0, 3.0]), "size": torch.tensor(2.0)})
    assert ended["loss"].item() == 2.0 and ended["size"].item() == 2.0


# ── GANs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def mlp(inputs, outputs):
    return {"name": "mlp", "args": {"in_dim": inputs, "out_dim": outputs, "hidden_list": [16]}}


@models.register("test-generator", replace=True)
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 16)

    def forward(self, z):
        return self.layer(z).reshape(-1, 1, 4, 4)


@models.register("test-discriminator", replace=True)
class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(1, 2, 4)

    def forward(self, images):
        return self.layer(images).flatten(1).mean(1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"loss": "hinge", "n_critic": 2},
        {"loss": "wasserstein", "weight_clip": 0.02},
        {"loss": "wasserstein", "gradient_penalty": 1.0},
    ],
)
@pytest.mark.parametrize("flat", [True, False])
def test_E42_gan_wrapper(tmp_path, options, flat):
    specs = (mlp(5, 16), mlp(16, 1)) if flat else ({"name": "test-generator"}, {"name": "test-discriminator"})
    module = models.make(
        {
            "name": "gan",
            "args": {"generator_spec": specs[0], "discriminator_spec": specs[1], "latent_dim": 5, **options},
        }
    )
    before = [p.clone() for p in module.parameters()]
    with Run(tmp_path / "run", events=False, quiet=True) as run:
        made = Trainer(max_epochs=2, run=run, accelerator="cpu", log_every_n_steps=2)
        made.fit(module, loader(), loader())
    assert made.global_step == 8 and [type(one).__name__ for one in made.optimizers] == ["Adam", "Adam"]
    assert tuple(made.optimizers[0].defaults["betas"]) == (0.5, 0.999) and all(
        p.requires_grad for p in module.parameters()
    )
    assert all(bool((p != old).any()) for p, old in zip(module.parameters(), before) if p.ndim > 1)
    last = rows(tmp_path / "run")[-1]
    assert {"g_loss_epoch", "d_loss_epoch", "d_real_epoch", "d_fake_epoch", "val_g_loss", "val_d_loss"} < set(last)
    assert module.sample(3).shape == ((3, 16) if flat else (3, 1, 4, 4)) and module.generator.training
    if "weight_clip" in options:
        assert max(float(p.detach().abs().max()) for p in module.discriminator.parameters()) <= 0.02 + 1e-7


def test_E42_gan_losses_are_their_formulas():
    from tensorgrad.experiment.wrappers.gan import LOSSES

    real, fake = torch.tensor([0.5, -2.0]), torch.tensor([1.5, 0.25])
    sigmoid, log = torch.sigmoid, torch.log
    d, g = LOSSES["bce"](real, fake)
    assert torch.allclose(d, -(log(sigmoid(real)).mean() + log(1 - sigmoid(fake)).mean()) / 2) and torch.allclose(
        g, -log(sigmoid(fake)).mean()
    )
    d, g = LOSSES["hinge"](real, fake)
    assert d.item() == (0.5 + 3) / 2 + (2.5 + 1.25) / 2 and g.item() == -0.875
    d, g = LOSSES["wasserstein"](real, fake)
    assert d.item() == 0.875 + 0.75 and g.item() == -0.875


def test_E42_the_generator_learns_the_mean_of_the_data():
    torch.manual_seed(1)
    data = [{"img": torch.randn(64, 2) * 0.1 + torch.tensor([2.0, -1.0])} for _ in range(200)]
    adam = {"name": "Adam", "args": {"lr": 0.01, "betas": [0.5, 0.9]}}
    module = GANWrapper(
        mlp(2, 2),
        mlp(2, 1),
        optim_spec=adam,
        latent_dim=2,
        g_scheduler_spec={"name": "StepLR", "args": {"step_size": 1}},
    )
    made = Trainer(max_epochs=1, accelerator="cpu")
    made.fit(module, data)
    assert torch.allclose(module.sample(500).mean(0), torch.tensor([2.0, -1.0]), atol=0.35)
    assert [optimizer.param_groups[0]["lr"] for optimizer in made.optimizers] == [pytest.approx(0.001), 0.01]


def test_E42_what_is_wrong():
    for options, message in (({"loss": "bcee"}, "nearest: bce"), ({"n_critic": 0}, "at least 1")):
        with pytest.raises(ValueError, match=message):
            GANWrapper(mlp(2, 2), mlp(2, 1), **options)
    with pytest.raises(KeyError, match="'img'.*'image'"):
        Trainer(max_epochs=1, accelerator="cpu").fit(
            GANWrapper(mlp(2, 2), mlp(2, 1), latent_dim=2), [{"image": torch.ones(1, 2)}]
        )
