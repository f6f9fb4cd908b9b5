"""Pictures as a ResNet sees them: torchvision's transform for evaluation, on NumPy alone."""

import re
from pathlib import Path

import numpy as np

import tensorgrad as torch

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)        # of the pictures of ImageNet
PRECISION = 22                                                  # binary digits of the weights in a mean of 8-bit values


def read(file):
    """The pixels (H, W, 3), uint8, of a picture: .npy with (H, W) or (H, W, 3) of them, binary PPM and PGM; the rest
    takes Pillow. OSError, ValueError for files that are no pictures, or ImportError."""
    data = Path(file).read_bytes()
    if data.startswith(b"\x93NUMPY"):
        pixels = np.load(file, allow_pickle=False)
        if pixels.dtype != np.uint8:
            raise ValueError(f"{file}: pixels are uint8, not {pixels.dtype}")
    elif data[:2] in (b"P5", b"P6"):
        pixels = netpbm(data, file)
    else:
        pixels = with_pillow(file)
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
        raise ValueError(f"{file}: a picture is of shape (height, width, 3), not {pixels.shape}")
    return pixels


def netpbm(data, file):
    header = re.match(rb"P[56]" + 3 * rb"(?:\s|#[^\n]*\n)+(\d+)" + rb"\s", data)
    width, height, most = map(int, header.groups()) if header else (0, 0, 0)
    channels = 3 if data[1:2] == b"6" else 1
    if header is None or most != 255 or len(data) < header.end() + width * height * channels:
        raise ValueError(f"{file} is damaged, or not of 8 bits a value")
    pixels = np.frombuffer(data, np.uint8, width * height * channels, header.end())
    return pixels.reshape((height, width, 3) if channels == 3 else (height, width))


def with_pillow(file):
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ImportError(f"reading {file} takes Pillow, which is not installed: pip install pillow") from None
    try:
        with Image.open(file) as picture:
            return np.asarray(picture.convert("RGB"))
    except UnidentifiedImageError:
        raise ValueError(f"{file} is not a picture that Pillow can read") from None


def means(pixels, size, axis):
    """Bring one axis to another size: each new pixel is a mean, with weights that fall off in a line, of the old ones
    around its centre.

    When sizes shrink, the mean is over more pixels. Rounded as Pillow does, whose Image.resize with BILINEAR gives the
    same numbers.
    """
    old = pixels.shape[axis]
    if old == size:
        return pixels
    lines, scale = np.moveaxis(pixels, axis, 0), old / size
    reach = max(scale, 1.0)
    new = np.empty((size, *lines.shape[1:]), np.uint8)
    for i in range(size):
        centre = (i + 0.5) * scale
        first, last = max(0, int(centre - reach + 0.5)), min(old, int(centre + reach + 0.5))
        weights = np.maximum(0.0, 1.0 - np.abs((np.arange(first, last) - centre + 0.5) / reach))
        weights = np.floor(weights / weights.sum() * 2**PRECISION + 0.5)
        total = np.tensordot(weights, lines[first:last].astype(np.float64), 1)       # whole numbers: exact
        new[i] = np.clip(np.floor(total / 2**PRECISION + 0.5), 0, 255)
    return np.moveaxis(new, 0, axis)


def resize(pixels, size):
    """The shorter side at `size`, the longer one in proportion."""
    height, width = pixels.shape[:2]
    shorter = min(height, width)
    pixels = means(pixels, int(size * width / shorter), axis=1)
    return means(pixels, int(size * height / shorter), axis=0)


def crop(pixels, size):
    """The square in the middle; what lies outside is black."""
    before, after = ([(size - n + k) // 2 if n < size else 0 for n in pixels.shape[:2]] for k in (0, 1))
    pixels = np.pad(pixels, [*zip(before, after), (0, 0)])
    top, left = (round((n - size) / 2) for n in pixels.shape[:2])
    return pixels[top:top + size, left:left + size]


def prepared(pixels, size=256, middle=224):
    """Pixels (H, W, 3) as a batch of one (1, 3, middle, middle), normalized."""
    values = np.ascontiguousarray(crop(resize(pixels, size), middle).transpose(2, 0, 1))
    mean, std = (torch.tensor(numbers).view(3, 1, 1) for numbers in (MEAN, STD))
    return ((torch.from_numpy(values).float() / 255 - mean) / std).unsqueeze(0)
