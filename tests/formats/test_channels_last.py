"""Layers of TensorFlow, whose images have their channels last, read channel by channel."""

from pathlib import Path

import numpy as np
import pytest

from revelu.formats.channels_last import ChannelsLast
from revelu.formats.open_model import LayerChain, OpenModel
from revelu.network import network_of


@pytest.mark.parametrize("factors", [1, 12])
def test_columns_of_a_flattened_image_keep_their_numbers(factors):
    """What is added to them keeps its order although they are multiplied by one number."""
    rng = np.random.default_rng(16_150_000)
    s, t, W = rng.normal(size=factors), rng.normal(size=12), rng.normal(size=(2, 12))
    chain = LayerChain(Path("a.tflite"), (2, 2, 3), 10_000)
    put = ChannelsLast(chain)
    put.flatten()
    put.scale(s, t)
    put.dense(W, np.zeros(2))
    put.end()
    model = OpenModel("a model", chain.row, chain.end(), chain.scaling)
    found = network_of(chain.path, model)
    images = rng.normal(size=(5, 2, 2, 3))
    rows = images.transpose(0, 2, 3, 1).reshape(5, 12)
    np.testing.assert_allclose(found(images.reshape(5, 12)), (s * rows + t) @ W.T, atol=1e-12)
