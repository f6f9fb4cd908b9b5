"""Files of TensorBoard's projector: tables of vectors and of their metadata, a sprite of images, and the
configuration that lists them."""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from ._images import grid, png
from ._wire import EmbeddingInfo, Message, SpriteMetadata
from .summary import make_np


def write_metadata(metadata: Any, folder: str, header: Any = None) -> None:
    """Write a line of metadata for each vector; with a header, several columns."""
    rows = [str(row) for row in metadata]
    if header:
        if len(header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        rows = ["\t".join(map(str, row)) for row in [header, *metadata]]
    _write(folder, "metadata.tsv", rows)


def write_vectors(vectors: np.ndarray, folder: str) -> None:
    """Write a line for each vector."""
    _write(folder, "tensors.tsv", ["\t".join(map(str, row)) for row in vectors.tolist()])


def _write(folder: str, name: str, rows: list[str]) -> None:
    with open(os.path.join(folder, name), "wb") as file:
        file.write("".join(row + "\n" for row in rows).encode())


def write_sprite(images: Any, folder: str) -> None:
    """Write the images (N, C, H, W) as a single square one."""
    sheet = grid(make_np(images), int(np.ceil(len(images) ** 0.5))).transpose(1, 2, 0)
    square = np.zeros((sheet.shape[1], sheet.shape[1], 3))
    square[:len(sheet)] = sheet
    with open(os.path.join(folder, "sprite.png"), "wb") as file:
        file.write(png(np.uint8((square * 255).clip(0, 255))))


def embedding(metadata: Any, images: Any, folder: str, step: Any, tag: str) -> Message:
    """Return the projector's entry that lists the files of a folder."""
    return EmbeddingInfo(
        tensor_name=f"{tag}:{str(step).zfill(5)}", tensor_path=f"{folder}/tensors.tsv",
        metadata_path=None if metadata is None else f"{folder}/metadata.tsv",
        sprite=None if images is None else SpriteMetadata(image_path=f"{folder}/sprite.png",
                                                          single_image_dim=[images.shape[3], images.shape[2]]))
