"""MNIST, handwritten digits: a data set of dictionaries, and a data module. 2,000 of the images are included in the
package; all 70,000 are read from IDX files.

Source: Yann LeCun, Corinna Cortes, Christopher J. C. Burges, "The MNIST database of handwritten digits".
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import api as tg
from ... import cuda
from ...serialization._atomic import replacing
from ...utils.data import DataLoader, Dataset, Subset
from ..datamodule import DataModule
from . import register
from .idx import parse_idx, read_idx

MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"
MEAN, DEVIATION = 0.1307, 0.3081  # of all pixels, between 0 and 1
EMBEDDED = Path(__file__).parent / "data"
EMBEDDED_TRAIN = 1800  # of the embedded images; those after them are for testing
EMBEDDED_BYTES = 2_000_000  # a limit above the size of the embedded images
VALIDATION = 12  # 1/12 of the training images is kept for validation: 5,000 of 60,000
TIMEOUT = 30.0  # seconds without an answer of the mirror


class Published(NamedTuple):
    """A file as it was published."""

    size: int
    md5: str


FILES = {
    "train-images-idx3-ubyte.gz": Published(9_912_422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    "train-labels-idx1-ubyte.gz": Published(28_881, "d53e105ee54ea40749a09fcbcd1e9432"),
    "t10k-images-idx3-ubyte.gz": Published(1_648_877, "9fb629c4189551a2d022fa330f9573f3"),
    "t10k-labels-idx1-ubyte.gz": Published(4_542, "ec29112dd5afa0611ce80d1b7f02629c"),
}


# ── files ─────────────────────────────────────────────────────────────────────────────────────
def find(folder: Any, stem: str, kind: str) -> Path:
    """Find a file under any of the names in use: with a dash or a dot, gzipped or not, in the folder or in its
    `MNIST/raw`.

    FileNotFoundError lists the names.
    """
    names = [f"{stem}{mark}{kind}{end}" for mark in "-." for end in ("", ".gz")]
    for place in (Path(folder), Path(folder, "MNIST", "raw")):
        for name in names:
            if (path := place / name).is_file():
                return path
    raise FileNotFoundError(f"{folder}: none of {', '.join(names)} is there")


def read_digits(folder: Any, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Read images (N, 28, 28) and labels (N,) as bytes; part: `train` or `t10k`.

    ValueError for files of other contents.
    """
    return checked_digits(
        read_idx(find(folder, f"{part}-images", "idx3-ubyte")),
        read_idx(find(folder, f"{part}-labels", "idx1-ubyte")),
        f"{folder}: the {part}",
    )


def checked_digits(images: np.ndarray, labels: np.ndarray, whose: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the two arrays. ValueError unless they are digits and their labels."""
    if images.dtype != "uint8" or images.ndim != 3 or images.shape[1:] != (28, 28):
        raise ValueError(f"{whose} images are not bytes of 28×28 pixels: {images.dtype}{images.shape}")
    if labels.dtype != "uint8" or labels.shape != images.shape[:1] or labels.max(initial=0) > 9:
        raise ValueError(f"{whose} labels are not one digit for each of {len(images)} images")
    return images, labels


def embedded_digits() -> tuple[np.ndarray, np.ndarray]:
    """Return the 2,000 embedded images, and their labels."""
    images, labels = (
        parse_idx(io.BytesIO(lzma.decompress((EMBEDDED / f"{name}-ubyte.xz").read_bytes())), EMBEDDED_BYTES)
        for name in ("images-idx3", "labels-idx1")
    )
    return images, labels


def download(root_dir: Any, mirror: str = MIRROR, parts: Sequence[str] = ("train", "t10k")) -> None:
    """Download the files of MNIST that a directory lacks, each atomically.

    OSError if the mirror does not answer; ValueError for a file other than the published one, and for an address that
    is not http or https.
    """
    if not mirror.startswith(("http://", "https://")):
        raise ValueError(f"the mirror's address begins with https:// or http://, not {mirror[:80]!r}")
    for name, published in FILES.items():
        stem, _, kind = name.removesuffix(".gz").partition("-idx")
        if stem.split("-")[0] in parts:
            try:
                find(root_dir, stem, f"idx{kind}")
            except FileNotFoundError:
                _fetch(f"{mirror.rstrip('/')}/{name}", Path(root_dir, name), published)


def _fetch(address: str, path: Path, published: Published) -> None:
    from urllib.request import urlopen

    try:
        with closing(urlopen(address, timeout=TIMEOUT)) as answer:
            data = answer.read(published.size + 1)
    except OSError as error:
        raise OSError(f"{address} cannot be fetched: {error}") from error
    if hashlib.md5(data, usedforsecurity=False).hexdigest() != published.md5:
        raise ValueError(f"{address} is not the file that was published: its MD5 sum differs")
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(data)


# ── the data set ──────────────────────────────────────────────────────────────────────────────
@register("mnist-ds")
class MNIST(Dataset):
    """Handwritten digits as dictionaries: `img`, (1, 28, 28) float32 with mean 0 and deviation 1 over all of MNIST, and
    `label`, an int.

    root_dir: the directory of the IDX files, plain or gzipped under the names they were published by; train chooses the
    60,000 or the 10,000. download fetches what is missing there from `mirror`, and checks it. Without root_dir the data
    are the 2,000 embedded images: 1,800 for training, 200 for testing. mnist: the images (N, 28, 28) and labels
    (N,) themselves, bytes, or pairs of one image and one label. FileNotFoundError for a missing file, ValueError for
    one that holds something else.

    >>> digits = MNIST()
    >>> len(digits), digits[0]["img"].shape, digits[0]["label"]
    (1800, torch.Size([1, 28, 28]), 7)
    """

    def __init__(
        self,
        mnist: Any = None,
        train: bool = True,
        root_dir: str | None = None,
        download: bool = False,
        mirror: str = MIRROR,
    ) -> None:
        images, labels = _digits(train, root_dir, download, mirror) if mnist is None else _given(mnist)
        self.images = tg.from_numpy(
            (images[:, None].astype(np.float32) / np.float32(255) - np.float32(MEAN)) / np.float32(DEVIATION)
        )
        self.labels = labels.tolist()

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"img": self.images[index], "label": self.labels[index]}


def _digits(train: bool, root_dir: str | None, fetch: bool, mirror: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the images and labels in a directory, or the embedded ones."""
    if root_dir is None:
        if fetch:
            raise ValueError("download=True needs root_dir, the directory to download to")
        images, labels = embedded_digits()
        part = slice(EMBEDDED_TRAIN) if train else slice(EMBEDDED_TRAIN, None)
        return images[part], labels[part]
    folder, name = os.path.expanduser(root_dir), "train" if train else "t10k"
    if fetch:
        download(folder, mirror, [name])
    try:
        return read_digits(folder, name)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error}; download=True fetches it, and without root_dir the 2,000 images that come along are used"
        ) from None


def _given(mnist: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the images and labels of a pair of arrays, or of a data set of pairs."""
    if not (isinstance(mnist, (list, tuple)) and len(mnist) == 2 and np.ndim(mnist[0]) == 3):
        pairs = [mnist[i] for i in range(len(mnist))]
        mnist = [
            np.reshape([np.asarray(image) for image, _ in pairs], (-1, 28, 28)),
            [int(label) for _, label in pairs],
        ]
    images, labels = (np.asarray(part) for part in mnist)
    if labels.ndim != 1 or (labels.size and not 0 <= labels.min() <= labels.max() <= 9):
        raise ValueError("the given labels are not a list of digits")
    return checked_digits(images, labels.astype(np.uint8), "the given")


# ── the data module ───────────────────────────────────────────────────────────────────────────
@register("mnist")
@register("mnist-dm")
class MNISTDataModule(DataModule):
    """Loaders of MNIST for a trainer: training, validation and testing.

    The last twelfth of the training images is kept for validation: 5,000 of 60,000, or 150 of the 1,800 that come
    along. Only training is shuffled. num_workers: processes that load; with images that lie in memory already, 0 is
    fastest. Memory is pinned where there is a GPU. The other arguments are those of the data set `mnist-ds`.

    >>> digits = MNISTDataModule(batch_size=50)
    >>> digits.setup("fit")
    >>> len(digits.train_dataloader()), len(digits.val_dataloader())
    (33, 3)
    """

    def __init__(
        self,
        root_dir: str | None = None,
        batch_size: int = 64,
        num_workers: int = 0,
        download: bool = False,
        mirror: str = MIRROR,
    ) -> None:
        super().__init__()
        self.root_dir, self.batch_size, self.num_workers, self.download, self.mirror = (
            root_dir,
            batch_size,
            num_workers,
            download,
            mirror,
        )
        self.parts: dict[str, Dataset] = {}

    def prepare_data(self) -> None:
        """Download missing files if `download` is set: once, before any process reads."""
        if self.download:
            if self.root_dir is None:
                raise ValueError("download=True needs root_dir, the directory to download to")
            download(os.path.expanduser(self.root_dir), self.mirror)

    def setup(self, stage: str | None = None) -> None:
        """Read the data of a stage (fit, validate, test, predict; None: everything), unless already read."""
        if stage in (None, "fit", "validate") and "train" not in self.parts:
            digits = MNIST(root_dir=self.root_dir)
            first = len(digits) - len(digits) // VALIDATION
            self.parts |= {"train": Subset(digits, range(first)), "val": Subset(digits, range(first, len(digits)))}
        if stage in (None, "test", "predict") and "test" not in self.parts:
            self.parts["test"] = MNIST(root_dir=self.root_dir, train=False)

    def teardown(self, stage: str | None = None) -> None:
        """Drop the images."""
        self.parts = {}

    def _loader(self, part: str, stage: str) -> DataLoader:
        self.setup(stage)
        return DataLoader(
            self.parts[part],
            self.batch_size,
            shuffle=part == "train",
            num_workers=self.num_workers,
            pin_memory=cuda.is_available(),
        )

    def train_dataloader(self) -> DataLoader:
        return self._loader("train", "fit")

    def val_dataloader(self) -> DataLoader:
        return self._loader("val", "validate")

    def test_dataloader(self) -> DataLoader:
        return self._loader("test", "test")

    def predict_dataloader(self) -> DataLoader:
        return self._loader("test", "predict")
