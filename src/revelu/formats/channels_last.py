"""Layers as TensorFlow has them, whose images have their channels last, put into a chain.

A chain has channels first, as ONNX and torch do.  Names are those of Keras and TensorFlow Lite.
"""

from dataclasses import dataclass

import numpy as np

from revelu.formats.open_model import LayerChain
from revelu.types import FloatArray

__all__ = ["ORDER", "ChannelsLast"]

ORDER = "inputs are read channel by channel; the original has its channels last"

Pair = tuple[int, int]


@dataclass
class ChannelsLast:
    """A chain of layers that is put together from those of TensorFlow.

    Attributes
    ----------
    chain : LayerChain
    head : str
        The link that undoes what is behind the last layer.
    """

    chain: LayerChain
    head: str = "none"
    _was_image: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what the next layer reads: channels, height and width; or how many numbers."""
        return self.chain.shape

    def check_open(self) -> None:
        """Refuse a layer behind the head."""
        if self.head != "none":
            self.chain.refuse("a layer follows its softmax or sigmoid")

    def dense(self, W: FloatArray, b: FloatArray) -> None:
        """Add ``W x + b``, where an image has been flattened with its channels last."""
        self.check_open()
        if len(self.shape) == 3:
            self.chain.refuse("a dense layer reads an image that is not flattened")
        if self._was_image is not None and W.ndim == 2 and W.shape[1] == self.chain.size:
            c, h, w = self._was_image
            W = W.reshape(-1, h, w, c).transpose(0, 3, 1, 2).reshape(len(W), -1)
        self._was_image = None
        self.chain.dense(W, b)

    def flatten(self) -> None:
        """Read an image as a row from here on."""
        if len(self.shape) == 3:
            self._was_image = self.shape
            self.chain.flatten()

    def end(self) -> None:
        """Check that what comes out is a row."""
        if len(self.shape) == 3 or self._was_image is not None:
            self.chain.refuse("its answers are images")

    def activation(self, name: str, slope: float = 0.2) -> None:
        """Add what follows a layer.

        Parameters
        ----------
        name : str
            linear, relu, relu6, leaky_relu, softmax or sigmoid; others are refused.
        slope : float
            Of a leaky ReLU.
        """
        self.check_open()
        match name:
            case "linear" | "":
                pass
            case "relu":
                self.chain.unit("Relu")
            case "relu6":
                self.capped(6.0)
            case "leaky_relu":
                self.chain.leaky(slope)
            case "softmax" | "sigmoid":
                self.head = "softmax" if name == "softmax" else "logit"
                if name == "softmax" and len(self.shape) == 1 and self.shape[0] < 2:
                    self.chain.refuse("a softmax of one number")
            case _:
                self.chain.refuse(f"{name[:20]} is between its layers: no network of ReLUs")

    def capped(self, cap: float) -> None:
        """Add ``min(max(x, 0), cap) = relu(x) - relu(x - cap)``."""
        n = self.shape[0]
        self.chain.reserve(4 * n * n)
        twice, apart = np.vstack([np.eye(n)] * 2), np.hstack([np.eye(n), -np.eye(n)])
        offsets = np.concatenate([np.zeros(n), np.full(n, -cap)])
        if len(self.shape) == 3:
            self.chain.convolution(twice[:, :, None, None], offsets)
            self.chain.unit("Relu")
            self.chain.convolution(apart[:, :, None, None], np.zeros(n))
            return
        was, self._was_image = self._was_image, None
        self.chain.dense(twice, offsets)
        self.chain.unit("Relu")
        self.chain.dense(apart, np.zeros(n))
        self._was_image = was

    def scale(self, s: FloatArray, t: FloatArray) -> None:
        """Multiply each channel, or each number, and add to it."""
        self.check_open()
        if self._was_image is not None:
            c, h, w = self._was_image
            s, t = (
                v.reshape(h, w, c).transpose(2, 0, 1).reshape(-1) if v.size > 1 else v
                for v in (s, t)
            )
        if s.size not in {1, self.shape[0]} or t.size not in {1, self.shape[0]}:
            self.chain.refuse(f"a scaling of {s.size} columns that reads {self.shape[0]}")
        self.chain.scale(s.reshape(-1), t.reshape(-1))

    def convolution(
        self,
        kernels: FloatArray,
        b: FloatArray,
        strides: Pair,
        dilations: Pair = (1, 1),
        *,
        same: bool,
    ) -> None:
        """Add a convolution, (filters, rows, columns, channels)."""
        self.check_open()
        if len(self.shape) != 3:
            self.chain.refuse("a convolution reads no image")
        pads = (0, 0, 0, 0)
        if same:
            spans = [(kernels.shape[1 + i] - 1) * dilations[i] + 1 for i in (0, 1)]
            (top, bottom), (left, right) = (
                _pads(self.shape[1 + i], spans[i], strides[i]) for i in (0, 1)
            )
            pads = (top, left, bottom, right)
        self.chain.convolution(kernels.transpose(0, 3, 1, 2), b, strides, pads, dilations)

    def depthwise(
        self, kernels: FloatArray, b: FloatArray, strides: Pair, dilations: Pair, *, same: bool
    ) -> None:
        """Add a convolution of each channel by itself, (rows, columns, channels, filters each)."""
        rows, columns, channels, each = kernels.shape
        self.chain.reserve(channels * each * rows * columns * channels)
        full = np.zeros((channels * each, rows, columns, channels))
        for c in range(channels):
            full[c * each : (c + 1) * each, :, :, c] = kernels[:, :, c].transpose(2, 0, 1)
        self.convolution(full, b, strides, dilations, same=same)

    def pooling(self, kind: str, size: Pair, strides: Pair, *, same: bool) -> None:
        """Add a pooling, ``MaxPool`` or ``AveragePool``; one with pads is refused."""
        self.check_open()
        if len(self.shape) != 3:
            self.chain.refuse("a pooling reads no image")
        if same and any(any(_pads(self.shape[1 + i], size[i], strides[i])) for i in (0, 1)):
            self.chain.refuse("a pooling with pads is not read")
        self.chain.pooling(kind, size, strides)

    def pool_all(self, kind: str) -> None:
        """Add the mean, or the largest, of each channel."""
        if len(self.shape) != 3:
            self.chain.refuse("a pooling reads no image")
        _, h, w = self.shape
        self.pooling(kind, (h, w), (1, 1), same=False)
        self.flatten()


def _pads(n: int, span: int, stride: int) -> Pair:
    """How many zeros stand before and behind, where an output stands for each stride."""
    total = max((-(-n // stride) - 1) * stride + span - n, 0)
    return total // 2, total - total // 2
