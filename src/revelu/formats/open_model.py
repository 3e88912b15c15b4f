"""A model whose weights lie open in a file of another program: layers, head and names.

Readers put layers together with a :class:`LayerChain`, which merges affine maps that follow each
other, so that what comes out is what revelu knows: dense layers or convolutions with units between
them.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from revelu.errors import FormatError
from revelu.formats.nodes import Node
from revelu.formats.onnx_frame import Frame
from revelu.types import FloatArray

__all__ = ["LayerChain", "OpenModel"]


@dataclass(frozen=True)
class OpenModel:
    """What a file says of a model.

    Attributes
    ----------
    words : str
        What it is of, for people: ``MLPClassifier of scikit-learn 0.18.2``.
    row : tuple of int
        Shape of an input: ``(d,)``, or channels, height and width.
    nodes : tuple of Node
        Its layers, which read what ``scaling`` gives; the last one is a Gemm.
    scaling : (ndarray, ndarray) or None
        Factors and shifts of the columns, ``s x + t``, that come first.
    head : str
        The link that undoes what stands between the last layer and the answers.
    classes : tuple
        Their names or numbers, in the order of the answers.
    columns : tuple of str
        Names of the inputs' columns.
    frame : Frame or None
        Names, shapes and types of input and output.
    notes : tuple of str
        What a user has to know of how it was read.
    """

    words: str
    row: tuple[int, ...]
    nodes: tuple[Node, ...]
    scaling: tuple[FloatArray, FloatArray] | None = None
    head: str = "none"
    classes: tuple[str | int | float, ...] = ()
    columns: tuple[str, ...] = ()
    frame: Frame | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_dense(self) -> bool:
        """Whether it has dense layers and ReLUs alone."""
        return all(node.kind in {"Gemm", "Relu"} for node in self.nodes)

    @property
    def labels(self) -> tuple[str | int | float, ...]:
        """Its classes where an answer chooses one of them; not where each has a sigmoid."""
        return () if self.head == "logit" else self.classes

    def folded(self) -> tuple[Node, ...]:
        """Return its layers with the scaling in the first one, which is then one of raw units."""
        if self.scaling is None:
            return self.nodes
        s, t = self.scaling
        first, *others = self.nodes
        W, b = first.arrays
        return (replace(first, arrays=(W * s, b + W @ t)), *others)

    def with_notes(self, *notes: str) -> "OpenModel":
        """Return the model with more to be said of it."""
        return replace(self, notes=(*self.notes, *notes))


@dataclass
class LayerChain:
    """Layers as they are put together.

    Attributes
    ----------
    path : pathlib.Path
        Begins every message.
    row : tuple of int
        Shape of an input.
    most_numbers : int
        Weights that may be read in all: a file that has one array in many places, or whole numbers
        of one byte, holds fewer than what comes of it.
    """

    path: Path
    row: tuple[int, ...]
    most_numbers: int
    nodes: list[Node] = field(default_factory=list)
    scaling: tuple[FloatArray, FloatArray] | None = None
    # An affine map that the next layer may take in: of columns, or a matrix and its offsets.
    _columns: tuple[FloatArray, FloatArray] | None = None
    _dense: tuple[FloatArray, FloatArray] | None = None
    n_numbers: int = 0

    def __post_init__(self) -> None:
        self.shape = self.row

    @classmethod
    def of_file(cls, path: Path, row: tuple[int, ...], least: int = 2**24) -> "LayerChain":
        """Return an empty chain of a file, which may have as many weights as the file has bytes."""
        return cls(path, row, max(least, path.stat().st_size))

    @property
    def size(self) -> int:
        """How many numbers come out of the layers so far."""
        return int(np.prod(self.shape, dtype=object))

    def numbers(self, found: ArrayLike, ndim: int | None = None) -> FloatArray:
        """Return numbers of a file as float64, counted.

        Raises
        ------
        FormatError
            If they are none, of another number of axes, or too many.
        """
        array = np.asarray(found)
        if array.dtype.kind not in "biuf" or (ndim is not None and array.ndim != ndim):
            self.refuse(f"{array.dtype} of shape {array.shape} where weights are expected")
        self.reserve(array.size)
        real = np.ascontiguousarray(array, dtype=np.float64)
        if not np.isfinite(real).all():
            self.refuse(f"a weight is {real[~np.isfinite(real)][0]}")
        return real

    def reserve(self, n: int) -> None:
        """Count numbers that are about to be made.

        Raises
        ------
        FormatError
            If they are too many.
        """
        self.n_numbers += n
        if self.n_numbers > self.most_numbers:
            self.refuse(f"over {self.most_numbers:,} weights, more than a file of its size has")

    def refuse(self, why: str) -> NoReturn:
        """Raise of what is no chain of layers."""
        raise FormatError(f"{self.path}: {why}")

    def scale(self, s: FloatArray, t: FloatArray) -> None:
        """Multiply each number, or each channel of an image, and add to it."""
        n = self.shape[0]
        s, t = np.broadcast_to(s, (n,)), np.broadcast_to(t, (n,))
        is_first = not self.nodes and self._dense is None and self._columns is None
        if is_first and len(self.shape) == 1 and self.scaling is None:
            self.scaling = (s, t)
        elif is_first and len(self.shape) == 1 and self.scaling is not None:
            before, shift = self.scaling
            self.scaling = (s * before, s * shift + t)
        elif self._dense is not None:
            W, b = self._dense
            self._dense = (W * s[:, None], b * s + t)
        elif self._columns is not None:
            before, shift = self._columns
            self._columns = (s * before, s * shift + t)
        elif self.nodes and self.nodes[-1].kind == "Conv":
            last = self.nodes[-1]
            kernels, b = last.arrays
            arrays = (kernels * s[:, None, None, None], b * s + t)
            self.nodes[-1] = replace(last, arrays=arrays)
        else:
            self._columns = (s, t)

    def dense(self, W: FloatArray, b: FloatArray) -> None:
        """Add ``W x + b``.

        Raises
        ------
        FormatError
            If it reads another number of inputs.
        """
        if W.ndim != 2 or b.shape != (len(W),) or W.shape[1] != self.size:
            self.refuse(f"a layer of shape {W.shape} that reads {self.size} numbers")
        if len(self.shape) == 3:
            self._flush()
        if self._columns is not None:
            s, t = self._columns
            self._columns = None
            W, b = W * s, b + W @ t
        if self._dense is not None:
            V, c = self._dense
            self.reserve(len(W) * V.shape[1])
            W, b = W @ V, W @ c + b
        self._dense = (W, b)
        self.shape = (len(W),)

    def pass_on(self) -> None:
        """Add a layer that changes nothing."""
        n = self.size
        self.reserve(n * n)
        self.dense(np.eye(n), np.zeros(n))

    def flatten(self) -> None:
        """Read an image as a row from here on, channel by channel."""
        self._flush()
        self.shape = (self.size,)

    def leaky(self, slope: float) -> None:
        """Add leaky ReLUs of one slope."""
        if not np.isfinite(slope):
            self.refuse(f"a slope of {slope}")
        self.unit("PRelu", np.array([[[slope]]] if len(self.shape) == 3 else [slope]))

    def unit(self, kind: str, alpha: FloatArray | None = None) -> None:
        """Add a ReLU, or one of its leaky kin."""
        if not self.nodes and self._dense is None and len(self.shape) == 1:
            self.pass_on()
        self._flush()
        arrays = () if alpha is None else (alpha,)
        self.nodes.append(Node(kind, arrays))

    def convolution(
        self,
        kernels: FloatArray,
        b: FloatArray,
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        dilations: tuple[int, int] = (1, 1),
    ) -> None:
        """Add a convolution, (filters, channels, rows, columns)."""
        if len(self.shape) != 3 or kernels.ndim != 4 or kernels.shape[1] != self.shape[0]:
            self.refuse(f"a convolution of shape {kernels.shape} that reads {self.shape}")
        self._flush()
        said = {"strides": list(strides), "pads": list(pads), "dilations": list(dilations)}
        self.nodes.append(Node("Conv", (kernels, b), said))
        spans = [(kernels.shape[2 + i] - 1) * dilations[i] + 1 for i in (0, 1)]
        read = [self.shape[1 + i] + pads[i] + pads[2 + i] for i in (0, 1)]
        places = ((read[i] - spans[i]) // strides[i] + 1 for i in (0, 1))
        self.shape = (len(kernels), *places)
        self._check_image()

    def pooling(self, kind: str, size: tuple[int, int], strides: tuple[int, int]) -> None:
        """Add a MaxPool or an AveragePool without pads."""
        if len(self.shape) != 3:
            self.refuse(f"a pooling that reads {self.shape}")
        self._flush()
        said = {"kernel_shape": list(size), "strides": list(strides)}
        self.nodes.append(Node(kind, (), said))
        windows = ((self.shape[1 + i] - size[i]) // strides[i] + 1 for i in (0, 1))
        self.shape = (self.shape[0], *windows)
        self._check_image()

    def end(self) -> tuple[Node, ...]:
        """Return the layers, of which the last one is dense."""
        if self._dense is None:
            self.pass_on()
        self._flush()
        return tuple(self.nodes)

    def _check_image(self) -> None:
        if min(self.shape) < 1:
            self.refuse(f"layers that leave an image of {self.shape}")

    def _flush(self) -> None:
        """Make a layer of an affine map that nothing takes in."""
        if self._dense is not None:
            self.nodes.append(Node("Gemm", self._dense, {"transB": 1}))
            self._dense = None
        if self._columns is None:
            return
        s, t = self._columns
        self._columns = None
        self.reserve(len(s) ** 2)
        if len(self.shape) == 3:
            self.nodes.append(Node("Conv", (np.diag(s)[:, :, None, None], t), {}))
        else:
            self.nodes.append(Node("Gemm", (np.diag(s), t), {"transB": 1}))
