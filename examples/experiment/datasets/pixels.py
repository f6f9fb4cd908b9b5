"""The pixels of one picture: where they are, and how bright."""

import numpy as np

import tensorgrad as torch
from tensorgrad.experiment import datasets
from tensorgrad.experiment.utils import to_pixel_samples
from tensorgrad.utils.data import Dataset

SAMPLES = 3  # points along each side of a pixel, whose mean it is


@datasets.register("pixels")
class Pixels(Dataset):
    """A square picture of size × size pixels, cut at random into groups: `coord` (count, 2), as `make_coord` gives
    them, and `target` (count, 1), between 0 and 1. Each group comes `times` times.

    The picture is `landscape`, which can be drawn at any size; `file` takes the middle of a PNG's in its place.
    """

    def __init__(self, size: int = 128, count: int = 4096, times: int = 1, file: str | None = None) -> None:
        self.image = torch.from_numpy(landscape(size) if file is None else grey(file, size)).unsqueeze(0)
        self.coord, self.target = to_pixel_samples(self.image)
        order = torch.randperm(size * size, generator=torch.Generator().manual_seed(0))
        self.groups = order.split(count) * times

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        group = self.groups[index]
        return {"coord": self.coord[group], "target": self.target[group]}


def grey(file: str, size: int) -> np.ndarray:
    """The grey values of a PNG's middle, at most as fine as it is: each pixel is the mean of a block."""
    from matplotlib.image import imread

    pixels = imread(file)
    pixels = pixels if pixels.ndim == 2 else pixels[..., :3].mean(-1)
    block = max(1, min(pixels.shape) // size)
    if min(pixels.shape) < size:
        raise ValueError(f"{file} has {pixels.shape[0]}×{pixels.shape[1]} pixels, too few for a picture of "
                         f"{size}×{size}")
    top, left = ((length - size * block) // 2 for length in pixels.shape)
    middle = pixels[top:top + size * block, left:left + size * block]
    return middle.reshape(size, block, size, block).mean((1, 3)).astype(np.float32)


def landscape(size: int) -> np.ndarray:
    """A night by the sea, (size, size): the moon and its light on the waves, stars, three ranges of hills, a boat."""
    y, x = np.meshgrid(*[(2 * np.arange(size * SAMPLES) + 1) / (size * SAMPLES) - 1] * 2, indexing="ij")
    picture = np.where(y < 0.36, sky(y, x), sea(y, x))
    for shade, height, waves in ((0.42, 0.20, (2.1, 0.4)), (0.27, 0.27, (3.7, 2.0)), (0.13, 0.33, (5.9, 4.1))):
        ridge = (height - 0.09 * np.sin(waves[0] * x + waves[1]) - 0.025 * np.sin(4.3 * waves[0] * x) - 0.008
                 * np.sin(41 * x + waves[1]))
        picture = np.where((y > ridge) & (y < 0.36), shade + 0.10 * (y - ridge), picture)
    picture = boat(picture, y, x)
    return picture.reshape(size, SAMPLES, size, SAMPLES).mean((1, 3)).clip(0, 1).astype(np.float32)


def sky(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Dark above, lighter below; the stars, the moon's halo and the moon."""
    light = 0.16 + 0.30 * (y + 1) / 1.4
    places = np.random.default_rng(4)
    for star_y, star_x, size in zip(places.uniform(-0.97, 0.0, 45), places.uniform(-0.97, 0.97, 45),
                                    places.uniform(0.006, 0.016, 45)):
        light = np.where(np.hypot(y - star_y, x - star_x) < size, 0.95, light)
    away = np.hypot(y + 0.45, x - 0.35)
    light = np.maximum(light, 0.16 + 0.75 * np.exp(-4.5 * np.maximum(away - 0.22, 0)) * (away < 2))
    moon = np.full_like(light, 0.97)
    for at_y, at_x, size, shade in ((-0.50, 0.29, 0.07, 0.80), (-0.38, 0.42, 0.05, 0.84), (-0.53, 0.43, 0.03, 0.78),
                                    (-0.35, 0.28, 0.035, 0.86)):
        moon = np.where(np.hypot(y - at_y, x - at_x) < size, shade, moon)
    return np.where(away < 0.22, moon, light)


def sea(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Waves that are longer the nearer they are; they glitter below the moon."""
    depth = (y - 0.36) / 0.64
    wave = np.sin(9 / (depth + 0.12) + 1.5 * np.sin(5 * x + 6 * depth))
    glitter = np.exp(-((x - 0.35) / (0.10 + 0.25 * depth)) ** 2)
    return 0.20 + 0.07 * wave + 0.55 * glitter * (wave > 0.1)


def boat(picture: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A hull, a mast and two sails."""
    hull = (np.abs(x + 0.45) < 0.22 - 0.9 * (y - 0.56)) & (y > 0.56) & (y < 0.64)
    mast = (np.abs(x + 0.45) < 0.008) & (y > 0.02) & (y <= 0.56)
    main = (x > -0.43) & (x < -0.43 + 0.42 * (y - 0.05)) & (y < 0.52)
    fore = (x < -0.47) & (x > -0.47 - 0.30 * (y - 0.12)) & (y < 0.52)
    for part, shade in ((hull | mast, 0.03), (main, 0.93), (fore, 0.78)):
        picture = np.where(part, shade, picture)
    return picture
