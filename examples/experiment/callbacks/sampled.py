"""Draw samples of a generator."""

import tensorgrad as torch
from tensorgrad.experiment import callbacks

from .pictures import Picture

SIDE = 10  # samples along each side of the grid


@callbacks.register("sampled")
class Sampled(Picture):
    """Draws what the generator makes of the same vectors: a grid at the end, beside a few of them at moments before.

    every: epochs from one of these moments to the next. The vectors come from a random stream of their own.
    """

    def __init__(self, file: str = "samples.png", every: int = 3, seed: int = 0) -> None:
        super().__init__(file)
        self.every, self.seed, self.moments = every, seed, {}

    def state_dict(self):
        return {"moments": dict(self.moments)}

    def load_state_dict(self, state_dict) -> None:
        self.moments = dict(state_dict["moments"])

    @torch.no_grad()
    def images(self, module, count: int):
        """So many images (count, 28, 28), with statistics that were gathered in training."""
        z = torch.randn(count, module.hparams.latent_dim, generator=torch.Generator().manual_seed(self.seed))
        module.generator.eval()
        images = module.generator(z.to(module.device)).cpu()
        module.generator.train()
        return images[:, 0]

    def on_train_epoch_end(self, trainer, module) -> None:
        epoch = trainer.current_epoch + 1
        if epoch == 1 or epoch % self.every == 0:
            self.moments[epoch] = self.images(module, SIDE)

    def draw(self, figure, trainer, module) -> None:
        figure.set_size_inches(13, 6.9)
        moments, grid = figure.subplots(1, 2)
        moments.imshow(tiled(torch.cat(list(self.moments.values())), SIDE), cmap="gray_r")
        side = 28 + 2
        moments.set(title="the same vectors as the training goes on", ylabel="after epoch", xticks=[],
                    yticks=[side * i + side / 2 for i in range(len(self.moments))], yticklabels=list(self.moments))
        grid.imshow(tiled(self.images(module, SIDE**2), SIDE), cmap="gray_r")
        grid.set(title=f"{SIDE**2} digits that nobody wrote, after {trainer.current_epoch} epochs", xticks=[],
                 yticks=[])
        for axes in (moments, grid):
            axes.spines[:].set_visible(False)


def tiled(images, columns: int):
    """Images (rows · columns, H, W) as one array, with white between them."""
    images = torch.nn.functional.pad(images, (1, 1, 1, 1), value=images.min().item())
    return torch.cat([torch.cat(list(row), 1) for row in images.split(columns)]).numpy()
