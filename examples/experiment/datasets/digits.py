"""The 10,000 digits of examples/mnist."""

from examples.mnist.dataset import EMBEDDED, TEST_IMAGES
from tensorgrad.experiment import datasets
from tensorgrad.experiment.datasets.mnist import MNIST, read_digits


@datasets.register("digits")
class Digits(MNIST):
    """9,000 images to train on, or the 1,000 others: `img` (1, 28, 28) with mean 0 and deviation 1, and `label`."""

    def __init__(self, train: bool = True) -> None:
        images, labels = read_digits(EMBEDDED, "t10k")
        part = slice(-TEST_IMAGES) if train else slice(-TEST_IMAGES, None)
        super().__init__(mnist=(images[part], labels[part]))
