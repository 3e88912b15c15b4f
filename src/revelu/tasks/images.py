"""Look whether inputs are images that a target does not call so."""

import numpy as np

from revelu.network.layers import ImageShape
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.method import Law
from revelu.recover.structured import Image, ImageGrid, PixelNoise, SharedWeights

__all__ = ["found_image", "in_words"]


def found_image(oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> ImageShape | None:
    """Return the shape of the images that inputs are; None where they are none, or it is told.

    Raises
    ------
    LimitReachedError, TargetError
        If the budget ends, or the target fails.
    """
    is_float64 = noise.law == "float64"
    is_rough = Law.of(noise) not in SharedWeights.answers and not is_float64
    is_told = oracle.image is not None or oracle.domain is not None or oracle.box is not None
    if is_told or is_rough or oracle.dim_in < ImageGrid.fewest or noise.link.has_head:
        return None
    if is_float64 and not noise.is_exact:
        noise = PixelNoise().measured(oracle, noise, Image((1, 1, oracle.dim_in)), rng)
    return ImageGrid().find(oracle, noise, rng)


def in_words(shape: ImageShape) -> str:
    """Say how inputs were seen to be images."""
    channels, height, width = shape
    return f"inputs act together as the pixels of {height}x{width}x{channels} images do"
