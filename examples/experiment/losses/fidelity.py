"""How close a picture is to another."""

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.experiment import losses


@losses.register("fidelity")
class Fidelity(nn.Module):
    """The mean squared difference from batch["target"], and in decibels for values from 0 to 1: psnr = -10 log₁₀
    loss.
    """

    def forward(self, pred: torch.Tensor, batch: dict[str, torch.Tensor], **kwargs) -> dict[str, torch.Tensor]:
        loss = nn.functional.mse_loss(pred, batch["target"])
        return {"loss": loss, "psnr": -10 * torch.log10(loss.detach())}
