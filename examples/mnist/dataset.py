"""MNIST: from IDX files to a training and a test set."""

from pathlib import Path

import tensorgrad as torch
from examples.toolkit.idx import read_idx
from tensorgrad.utils.data import Dataset, Subset, random_split

EMBEDDED = Path(__file__).parent / "data"
TEST_IMAGES, SPLIT_SEED = 1000, 0
MEAN, DEVIATION = 0.1307, 0.3081  # of all pixels, between 0 and 1
CLASSES = [str(digit) for digit in range(10)]


class MNIST(Dataset):
    """Pairs of an image, (1, 28, 28) with mean 0 and deviation 1, and a label."""

    def __init__(self, folder, part):
        images = read_idx(find(folder, f"{part}-images", "idx3-ubyte"))
        labels = read_idx(find(folder, f"{part}-labels", "idx1-ubyte"))
        if images.dtype != "uint8" or images.ndim != 3 or images.shape[1:] != (28, 28):
            raise ValueError(f"{folder}: the {part} images are not bytes of 28×28 pixels: {images.dtype}{images.shape}")
        if labels.dtype != "uint8" or labels.shape != images.shape[:1] or labels.max(initial=0) > 9:
            raise ValueError(f"{folder}: the {part} labels are not one digit for each of {len(images)} images")
        self.images = (torch.from_numpy(images).unsqueeze(1).float() / 255 - MEAN) / DEVIATION
        self.labels = torch.from_numpy(labels).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def find(folder, stem, kind):
    """The file, under any of the names that are around: dash or dot, gzipped or not."""
    names = [f"{stem}{mark}{kind}{end}" for mark in "-." for end in ("", ".gz")]
    for name in names:
        if (path := Path(folder) / name).is_file():
            return path
    raise FileNotFoundError(f"{folder}: none of {', '.join(names)} is there")


def load(folder=None):
    """Training and test set: those in `folder`, or the 10,000 images that come along, split 9,000 to 1,000."""
    if folder:
        return MNIST(folder, "train"), MNIST(folder, "t10k")
    digits = MNIST(EMBEDDED, "t10k")
    parts = [len(digits) - TEST_IMAGES, TEST_IMAGES]
    return random_split(digits, parts, generator=torch.Generator().manual_seed(SPLIT_SEED))


def truncate(dataset, length):
    """The first `length` samples."""
    return Subset(dataset, range(min(length, len(dataset))))
