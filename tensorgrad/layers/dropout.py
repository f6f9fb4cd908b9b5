"""Dropout: random zeros in training, the identity in evaluation."""
from .. import nn
from .native import Native

__all__ = [
    "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
]


class Dropout(Native, nn.Dropout): _example = "0.5", (2, 3), (2, 3)


class AlphaDropout(Native, nn.AlphaDropout): _example = "0.5", (2, 3), (2, 3)


class Dropout1d(Native, nn.Dropout1d): _example = "0.5", (2, 3, 4), (2, 3, 4)


class Dropout2d(Native, nn.Dropout2d): _example = "0.5", (2, 3, 4, 4), (2, 3, 4, 4)


class Dropout3d(Native, nn.Dropout3d): _example = "0.5", (2, 3, 4, 4, 4), (2, 3, 4, 4, 4)


class FeatureAlphaDropout(Native, nn.FeatureAlphaDropout): _example = "0.5", (2, 3, 4), (2, 3, 4)
