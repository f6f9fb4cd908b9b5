"""Networks that are pictures: a position goes in, the grey value there comes out."""

import math

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.experiment import models


@models.register("field")
class Field(nn.Module):
    """Lets a network of positions read batch["coord"], (…, 2) → (…, values)."""

    def __init__(self, model_spec: dict) -> None:
        super().__init__()
        self.net = models.make(model_spec)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return self.net(batch["coord"])


class Sine(nn.Module):
    """x ↦ sin(ωx)."""

    def __init__(self, omega: float) -> None:
        super().__init__()
        self.omega = omega

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.omega * x)


@models.register("siren")
class Siren(nn.Module):
    """A perceptron with sines between its layers; omega sets how fine the details are that it begins with.

    Source: Sitzmann et al., "Implicit Neural Representations with Periodic Activation Functions", 2020.
    """

    def __init__(self, in_dim: int, out_dim: int, hidden_list: list[int], omega: float = 30.0) -> None:
        super().__init__()
        widths = [in_dim, *hidden_list]
        linears = [nn.Linear(a, b) for a, b in zip(widths, [*hidden_list, out_dim])]
        for i, linear in enumerate(linears):
            bound = math.sqrt(6 / linear.in_features) / omega if i else 1 / in_dim
            nn.init.uniform_(linear.weight, -bound, bound)
        self.net = nn.Sequential(*[part for linear in linears[:-1] for part in (linear, Sine(omega))], linears[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


@models.register("fourier")
class Fourier(nn.Module):
    """A ReLU perceptron that sees a position x as sines and cosines of 2πBx, where B is drawn from N(0, scale²).

    Source: Tancik et al., "Fourier Features Let Networks Learn High Frequency Functions in Low Dimensional Domains",
        2020.
    """

    def __init__(self, in_dim: int, out_dim: int, hidden_list: list[int], features: int = 64,
                 scale: float = 4.0) -> None:
        super().__init__()
        self.register_buffer("directions", 2 * math.pi * scale * torch.randn(in_dim, features))
        self.net = models.make({"name": "mlp",
                                "args": {"in_dim": 2 * features, "out_dim": out_dim, "hidden_list": hidden_list}})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        waves = x @ self.directions
        return self.net(torch.cat([waves.sin(), waves.cos()], -1))
