"""GANWrapper: two models that train against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import api as tg
from ... import autograd
from ...nn.functional import relu, softplus
from ..module import Module
from . import register
from .base import scheduled

__all__ = ["GANWrapper"]

ADAM = {"name": "Adam", "args": {"lr": 2e-4, "betas": [0.5, 0.999]}}


def _bce(real: Any, fake: Any) -> tuple[Any, Any]:
    return (softplus(-real).mean() + softplus(fake).mean()) / 2, softplus(-fake).mean()


def _hinge(real: Any, fake: Any) -> tuple[Any, Any]:
    return relu(1 - real).mean() + relu(1 + fake).mean(), -fake.mean()


def _wasserstein(real: Any, fake: Any) -> tuple[Any, Any]:
    return fake.mean() - real.mean(), -fake.mean()


LOSSES = {"bce": _bce, "hinge": _hinge, "wasserstein": _wasserstein}


@register("gan")
class GANWrapper(Module):
    """Trains a generator, from vectors z ~ N(0, 1) of latent_dim numbers to images, against a discriminator, from
    images to scores.

    loss: with scores d of images x and of generated ones G(z),
    "bce": d_loss = ½(E softplus(-d(x)) + E softplus(d(G(z)))), g_loss = E softplus(-d(G(z)));
    "hinge": d_loss = E max(0, 1 - d(x)) + E max(0, 1 + d(G(z))), g_loss = -E d(G(z));
    "wasserstein": d_loss = E d(G(z)) - E d(x), g_loss = -E d(G(z)), for which the discriminator's weights are clipped
    to ±weight_clip, or its slope kept near 1 by gradient_penalty · E(|∇d| - 1)² between images and generated ones.

    The generator steps once for n_critic steps of the discriminator. optim_spec (Adam with betas 0.5, 0.999 and a rate
    of 2e-4), or g_optim_spec and d_optim_spec; the schedules alike. A batch is a mapping with images `img`, or they
    alone; where the generator makes flat images, the discriminator gets flat ones. Logs g_loss, d_loss and the mean
    scores d_real, d_fake.
    """

    automatic_optimization, automatic_schedules = False, True

    def __init__(
        self,
        generator_spec: Mapping[str, Any],
        discriminator_spec: Mapping[str, Any],
        optim_spec: Mapping[str, Any] | None = None,
        g_optim_spec: Mapping[str, Any] | None = None,
        d_optim_spec: Mapping[str, Any] | None = None,
        loss: str = "bce",
        latent_dim: int = 64,
        n_critic: int = 1,
        weight_clip: float = 0.01,
        gradient_penalty: float = 0.0,
        scheduler_spec: Mapping[str, Any] | None = None,
        g_scheduler_spec: Mapping[str, Any] | None = None,
        d_scheduler_spec: Mapping[str, Any] | None = None,
        key: str = "img",
    ) -> None:
        super().__init__()
        from .. import models

        if loss not in LOSSES:
            from ..registry import alternatives

            raise ValueError(f"GANWrapper: no loss is called {loss!r}; {alternatives(loss, LOSSES)}")
        if n_critic < 1 or latent_dim < 1:
            raise ValueError(f"GANWrapper: n_critic and latent_dim are at least 1, not {n_critic} and {latent_dim}")
        self.save_hyperparameters()
        self.generator, self.discriminator = models.make(generator_spec), models.make(discriminator_spec)

    def forward(self, z: Any) -> Any:
        """Generate images from vectors (N, latent_dim)."""
        return self.generator(z)

    def noise(self, count: int) -> Any:
        """Draw `count` vectors from the default random generator."""
        return tg.randn(count, self.hparams.latent_dim, device=self.device)

    def sample(self, count: int) -> Any:
        """Generate `count` images, without gradients, in evaluation mode."""
        training = self.generator.training
        with tg.no_grad():
            images = self.generator.eval()(self.noise(count))
        self.generator.train(training)
        return images

    def _images(self, batch: Any) -> Any:
        if isinstance(batch, Mapping):
            if self.hparams.key not in batch:
                raise KeyError(
                    f"GANWrapper takes batches with the key {self.hparams.key!r}; "
                    f"this one has {', '.join(map(repr, batch))}"
                )
            return batch[self.hparams.key]
        return batch[0] if isinstance(batch, (list, tuple)) else batch

    def _losses(self, images: Any, fakes: Any) -> tuple[Any, Any, Any, Any]:
        """Return (d_loss, g_loss, d_real, d_fake)."""
        real, fake = self.discriminator(images), self.discriminator(fakes)
        return *LOSSES[self.hparams.loss](real, fake), real.mean(), fake.mean()

    def training_step(self, batch: Any, batch_idx: int) -> None:
        """Step the discriminator, and the generator after each `n_critic` steps."""
        images = self._images(batch)
        g_optimizer, d_optimizer = self.optimizers()
        fakes = self.generator(self.noise(len(images)))
        if fakes.shape != images.shape:
            images = images.reshape(fakes.shape)
        self._step_discriminator(d_optimizer, images, fakes.detach())
        if (batch_idx + 1) % self.hparams.n_critic == 0:
            with self.toggled_optimizer(g_optimizer):
                scores = self.discriminator(fakes)
                g_loss = LOSSES[self.hparams.loss](scores, scores)[1]
                g_optimizer.zero_grad()
                self.manual_backward(g_loss)
                g_optimizer.step()
            self.log("g_loss", g_loss, prog_bar=True, on_step=True, on_epoch=True, sync_dist=True)

    def _step_discriminator(self, optimizer: Any, images: Any, fakes: Any) -> None:
        d_loss, _, d_real, d_fake = self._losses(images, fakes)
        penalty = self.hparams.gradient_penalty
        total = d_loss + penalty * self._steepness(images, fakes) if penalty else d_loss
        optimizer.zero_grad()
        self.manual_backward(total)
        optimizer.step()
        if self.hparams.loss == "wasserstein" and not penalty:
            with tg.no_grad():
                for parameter in self.discriminator.parameters():
                    parameter.clamp_(-self.hparams.weight_clip, self.hparams.weight_clip)
        self.log_dict(
            {"d_loss": d_loss, "d_real": d_real, "d_fake": d_fake},
            prog_bar=True,
            on_step=True,
            on_epoch=True,
            sync_dist=True,
        )

    def _steepness(self, images: Any, fakes: Any) -> Any:
        """E(|∇d(x)| - 1)² at points x between images and generated ones."""
        share = tg.rand(len(images), *[1] * (images.ndim - 1), device=images.device)
        between = (share * images + (1 - share) * fakes).requires_grad_(True)
        (slope,) = autograd.grad(self.discriminator(between).sum(), [between], create_graph=True)
        return (slope.flatten(1).norm(dim=1) - 1).square().mean()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        """Log val_g_loss and val_d_loss."""
        images = self._images(batch)
        fakes = self.generator(self.noise(len(images)))
        d_loss, g_loss, *_ = self._losses(images.reshape(fakes.shape), fakes)
        self.log_dict({"val_d_loss": d_loss, "val_g_loss": g_loss}, sync_dist=True)

    def configure_optimizers(self) -> Any:
        """Return the optimizers of the generator and of the discriminator."""
        from ..schedules import make_optimizer

        hparams, made = self.hparams, []
        for model, letter in ((self.generator, "g"), (self.discriminator, "d")):
            spec = hparams[f"{letter}_optim_spec"] or hparams.optim_spec or ADAM
            optimizer = make_optimizer(model.parameters(), spec)
            made.append(scheduled(optimizer, hparams[f"{letter}_scheduler_spec"] or hparams.scheduler_spec))
        return made
