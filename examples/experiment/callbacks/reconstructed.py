"""Draw the picture that a network of coordinates reconstructs beside its target."""

import tensorgrad as torch
from tensorgrad.experiment import callbacks
from tensorgrad.experiment.utils import compute_num_params, make_coord

from .pictures import Picture

TIMES, WINDOW = 4, (-0.86, -0.30, 0.0, 0.56)  # how much finer; left, right, top, bottom of what is enlarged


@callbacks.register("reconstructed")
class Reconstructed(Picture):
    """Draws the picture of the data set beside the network's, their difference, and a part of each enlarged: the
    network is asked at positions between the pixels, which it has never seen."""

    def __init__(self, file: str = "reconstruction.png") -> None:
        super().__init__(file)

    def draw(self, figure, trainer, module) -> None:
        target = trainer.train_dataloader.dataset.image[0]
        size = len(target)
        made, fine = rendered(module, size), rendered(module, TIMES * size)
        psnr = -10 * (made - target).square().mean().log10().item()
        finest = getattr(trainer.val_dataloaders[0].dataset, "image", None) if trainer.val_dataloaders else None
        panels = [(f"the picture: {size}×{size} = {size**2:,} pixels", target, "gray", 0, 1),
                  (f"the network: {compute_num_params(module.model):,} numbers, {psnr:.1f} dB", made, "gray", 0, 1),
                  ("network - picture", made - target, "RdBu", -0.1, 0.1),
                  ("the picture, enlarged", part(target), "gray", 0, 1),
                  (f"the network, asked at {TIMES**2} times as many points", part(fine), "gray", 0, 1)]
        if finest is not None:
            panels.append((f"as it would be at {len(finest[0])}×{len(finest[0])}, never seen", part(finest[0]), "gray",
                           0, 1))
        figure.set_size_inches(12, 8.4)
        for axes, (title, image, colours, low, high) in zip(figure.subplots(2, 3).flatten(), panels):
            shown = axes.imshow(image.numpy(), cmap=colours, vmin=low, vmax=high, interpolation="nearest")
            axes.set_title(title, fontsize=10.5)
            if low:
                figure.colorbar(shown, ax=axes, shrink=0.75)
        for axes in figure.axes[:6]:
            axes.axis("off")


@torch.no_grad()
def rendered(module, size: int):
    """The network's picture (size, size)."""
    module.eval()
    coord = make_coord((size, size)).to(module.device)
    values = torch.cat([module.model({"coord": some}).cpu() for some in coord.split(1 << 14)])
    module.train()
    return values.reshape(size, size)


def part(image):
    """The part of a picture that is enlarged."""
    left, right, top, bottom = (round((edge + 1) / 2 * len(image)) for edge in WINDOW)
    return image[top:bottom, left:right]
