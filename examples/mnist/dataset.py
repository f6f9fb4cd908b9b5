"""MNIST: from IDX files to a training and a test set."""

from pathlib import Path

import tensorgrad as torch
from tensorgrad.experiment.datasets.mnist import DEVIATION, MEAN, read_digits
from tensorgrad.utils.data import Dataset, Subset, random_split

EMBEDDED = Path(__file__).parent / "data"
TEST_IMAGES, SPLIT_SEED = 1000, 0
CLASSES = [str(digit) for digit in range(10)]


class MNIST(Dataset):
    """Pairs of an image, (1, 28, 28) with mean 0 and deviation 1, and a label."""

    def __init__(self, folder, part):
        images, labels = read_digits(folder, part)
        self.images = (torch.from_numpy(images).unsqueeze(1).float() / 255 - MEAN) / DEVIATION
        self.labels = torch.from_numpy(labels).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


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
