"""A network of convolutions, pooling and leaky units beside dense layers."""

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from revelu.errors import FormatError, InputError
from revelu.formats import Frame, Kept, Node, save_nodes
from revelu.network.layers import Convolution, Dense, ImageShape, Layer, Pooling, Prelu, Relu
from revelu.network.network import Network
from revelu.numerics.links import NONE, Link
from revelu.types import FloatArray, IntArray

__all__ = ["LayeredNetwork"]

_UNITS = Relu | Prelu


class LayeredNetwork(Network):
    """A network whose layers may share weights; to whoever needs rows, a dense one.

    Weights, biases and all that is made of them are those of :meth:`to_dense`, made when they are
    first asked for.

    Parameters
    ----------
    layers : sequence of Layer
        :class:`Convolution`, :class:`Relu`, :class:`Prelu`, :class:`Pooling` and :class:`Dense`,
        the last one dense.
    certified : bool, optional
        As of :class:`Network`.

    Raises
    ------
    InputError
        If the layers do not chain.
    """

    __slots__ = ("__dict__", "_layers")

    _layers: tuple[Layer, ...]

    def __init__(self, layers: Sequence[Layer], certified: bool | None = None) -> None:
        chained = tuple(layers)
        size = None
        for layer in chained:
            if isinstance(layer, Relu):
                continue
            if isinstance(layer, Prelu):
                if layer.slopes.shape != (size,):
                    raise InputError(f"{len(layer.slopes)} slopes for {size} numbers")
                continue
            if size is not None and layer.size_in != size:
                raise InputError(f"{type(layer).__name__} reads {layer.size_in} of {size} numbers")
            size = layer.size_out
        if not chained or not isinstance(chained[-1], Dense):
            raise InputError("the last layer must be dense")
        object.__setattr__(self, "_layers", chained)
        object.__setattr__(self, "certified", certified)

    @classmethod
    def from_nodes(cls, row: Sequence[int], nodes: Sequence[Node]) -> "LayeredNetwork":
        """Make the network of layers as ONNX has them.

        Parameters
        ----------
        row : sequence of int
            Shape of an input.
        nodes : sequence of Node

        Raises
        ------
        FormatError
            If the layers do not chain, or are used in a way that is not read.
        """
        try:
            return cls(_layers_of(row, nodes))
        except FormatError:
            raise
        except (InputError, ValueError, IndexError, TypeError) as error:
            raise FormatError(f"not a chain of layers: {error}") from None

    def __reduce__(self) -> tuple[type["LayeredNetwork"], tuple[object, ...]]:
        return LayeredNetwork, (self._layers, self.certified)

    def marked(self, certified: bool | None) -> "LayeredNetwork":
        """Return the network with word of whether fresh queries have vouched for it."""
        if certified is self.certified:
            return self
        return LayeredNetwork(self._layers, certified)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its layers, the first one first."""
        return self._layers

    @property
    def shape(self) -> ImageShape:
        """Channels, height and width of an input."""
        first = self._layers[0]
        return first.shape if isinstance(first, Convolution) else (1, 1, self.dim_in)

    @property
    def row(self) -> tuple[int, ...]:
        """Shape of an input, as targets have it."""
        return self.shape if self.is_of_images else (self.dim_in,)

    @property
    def is_of_images(self) -> bool:
        """Whether a layer reads images."""
        return any(isinstance(layer, Convolution | Pooling) for layer in self._layers)

    @property
    def filters(self) -> FloatArray | None:
        """Kernels that read the input, (filters, channels, rows, columns), where any do."""
        first = self._layers[0]
        return first.kernels if isinstance(first, Convolution) else None

    @property
    def dim_in(self) -> int:
        """Number of inputs."""
        return next(layer.size_in for layer in self._layers if not isinstance(layer, _UNITS))

    @property
    def dim_out(self) -> int:
        """Number of outputs."""
        last = self._layers[-1]
        return 0 if isinstance(last, _UNITS) else last.size_out

    @property
    def architecture(self) -> tuple[int, ...]:
        """Widths, input first, output last; a pooling's after its layer's."""
        sized = [layer.size_out for layer in self._layers if not isinstance(layer, _UNITS)]
        return (self.dim_in, *sized)

    @property
    def n_hidden(self) -> int:
        """Number of layers of ReLU, or of its leaky kin."""
        return sum(isinstance(layer, _UNITS) for layer in self._layers)

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """Kernels, weights and biases, layer by layer."""
        return tuple(a for layer in self._layers for a in layer.arrays)

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Evaluate a batch, (n, dim_in) -> (n, dim_out)."""
        H = self._inputs(X)
        for layer in self._layers:
            H = layer(H)
        return H

    @cached_property
    def _dense(self) -> Network:
        return _dense(self._layers).marked(self.certified)

    def to_dense(self) -> Network:
        """Return the same function with a row for every place; a largest takes layers of its own.

        For numbers that are 0 or more, ``max(a, b) = a + relu(b - a)``.  A leaky neuron is two,
        ``relu(z) - s relu(-z)``; in the last hidden layer one beside a skip,
        ``(1 - s) relu(z) + s z``.
        """
        return self._dense

    @property
    def weights(self) -> tuple[FloatArray, ...]:  # type: ignore[override]
        """Those of the dense network."""
        return self._dense.weights

    @property
    def biases(self) -> tuple[FloatArray, ...]:  # type: ignore[override]
        """Those of the dense network."""
        return self._dense.biases

    @property
    def skip(self) -> tuple[FloatArray, FloatArray] | None:  # type: ignore[override]
        """That of the dense network."""
        return self._dense.skip

    def hyperplanes(self) -> tuple[FloatArray, FloatArray]:
        """Return rows of the hyperplanes that bend the function, whatever lies above.

        Besides those of the first layer, of a largest those where neighbours of a window tie.
        """
        first = self._layers[0]
        if not isinstance(first, Convolution | Dense):
            first = Dense(np.eye(self.dim_in), np.zeros(self.dim_in))
        W, b = first.to_dense()
        pools = [x for x in self._layers if isinstance(x, Pooling) and x.kind == "max"]
        if not pools or not isinstance(first, Convolution):
            return W, b
        # One tie of each window: its first two places, the last two of every other one.
        reads, n = pools[0].reads, int(np.prod(first.places))
        if reads.shape[1] < 2:
            return W, b
        start = np.where(np.arange(len(reads)) % 2, reads.shape[1] - 2, 0)
        rows = np.arange(len(reads))
        one, other = reads[rows, start], reads[rows, start + 1]
        offsets = n * np.arange(len(first.biases))[:, None]
        ties = W[(offsets + one).ravel()] - W[(offsets + other).ravel()]
        return np.vstack([W, ties]), np.concatenate([b, np.zeros(len(ties))])

    def after(self, M: FloatArray, t: FloatArray | float = 0.0) -> Network:
        """Return the network that reads ``M x + t``.

        With its layers where no image is read, or all pixels of one without pads move alike.
        """
        first = self._layers[0]
        if isinstance(first, Convolution) and not any(first.pads) and not np.ptp(t):
            scale = float(M[0, 0])
            if np.array_equal(M, scale * np.eye(len(M))):
                moved = first.biases + float(np.mean(t)) * first.kernels.sum(axis=(1, 2, 3))
                conv = first.with_filters(scale * first.kernels, moved)
                return LayeredNetwork([conv, *self._layers[1:]])
        if not isinstance(first, Dense) or self.is_of_images:
            return self.to_dense().after(M, t)
        t = np.broadcast_to(t, self.dim_in)
        moved = Dense(first.W @ M, first.b + first.W @ t)
        return LayeredNetwork([moved, *self._layers[1:]])

    def then(self, M: FloatArray) -> Network:
        """Return the network whose outputs are ``M`` times these, with its layers."""
        *below, last = self._layers
        if not isinstance(last, Dense):  # pragma: no cover - the last layer is dense
            return self.to_dense().then(M)
        return LayeredNetwork([*below, Dense(M @ last.W, M @ last.b)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LayeredNetwork):
            return NotImplemented
        return self._outline() == other._outline() and all(
            np.array_equal(a, b) for a, b in zip(self.arrays, other.arrays, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self._outline(), *((a + 0.0).tobytes() for a in self.arrays)))

    def _outline(self) -> tuple[object, ...]:
        """What the layers are, but for their numbers."""
        found: list[object] = []
        for layer in self._layers:
            shapes = tuple(a.shape for a in layer.arrays)
            extra: tuple[object, ...] = ()
            if isinstance(layer, Convolution):
                extra = (layer.shape, layer.strides, layer.pads, layer.dilations)
            if isinstance(layer, Pooling):
                extra = (layer.kind, layer.shape, layer.size, layer.strides)
            found.append((type(layer).__name__, shapes, extra))
        return tuple(found)

    def describe(self) -> str:
        """Return its layers in words: ``8x8x1, 4 filters of 3x3, ReLU, dense 10``.

        Without images: ``10-16-1 of LeakyReLU(0.2)``.
        """
        if not self.is_of_images:
            said = [layer.describe() for layer in self._layers if isinstance(layer, _UNITS)]
            widths = "-".join(map(str, self.architecture))
            return f"{widths} of {' and '.join(dict.fromkeys(said))}" if said else widths
        channels, height, width = self.shape
        words = [f"{height}x{width}x{channels}"]
        for layer in self._layers:
            match layer:
                case Convolution():
                    words.append(_of_convolution(layer))
                case Relu() | Prelu():
                    words.append(layer.describe())
                case Pooling():
                    kr, kc = layer.size
                    words.append(f"{layer.kind} of {kr}x{kc}")
                case Dense():
                    words.append(f"dense {layer.size_out}")
        return ", ".join(words)

    def __repr__(self) -> str:
        return f"<LayeredNetwork {self.describe()}, {self.n_parameters:,} parameters{self._mark}>"

    def _repr_html_(self) -> str:
        return f"<p>{self.describe()}: {self.n_parameters:,} parameters{self._mark}</p>"

    @property
    def lost_in_onnx(self) -> tuple[str, ...]:
        """What an ONNX file of the layers lacks, in words; nothing of those without images."""
        if not self.is_of_images:
            return ()
        said = (
            "an .onnx file of these layers is float32, for ONNX Runtime has no other convolutions, "
            "and differs by what float32 rounds; .npz and .pt keep all digits"
        )
        return (said,)

    def save(
        self,
        path: str | PathLike[str],
        dtype: DTypeLike | None = None,
        *,
        head: Link = NONE,
        frame: Frame | None = None,
        standard_errors: Sequence[tuple[FloatArray, FloatArray]] | None = None,
        kept: Kept | None = None,
    ) -> None:
        """Write the network to a file; the suffix decides the format.

        Parameters
        ----------
        path : path ending in ``.onnx``, or in what a dense network may be written to
            ONNX has the layers, other formats the rows of :meth:`to_dense`.
        dtype : float64 or float32, optional
            By default float64; float32 of an image's ONNX, whose runtime has no other convolutions.
        head : Link
            End in what it undoes, in ONNX.
        frame : Frame, optional
            Names, shapes and types of input and output, in ONNX.
        standard_errors : sequence of (ndarray, ndarray), optional
            Not kept: those of layers that are not all dense are not known.
        kept : Kept, optional
            Classes and columns that the file has, too, in ONNX.

        Raises
        ------
        FormatError
            If the file cannot be written.
        """
        del standard_errors
        if Path(path).suffix.lower() != ".onnx":
            self.to_dense().save(path, np.float64 if dtype is None else dtype)
            return
        usual = np.float32 if self.is_of_images else np.float64
        kind = np.dtype(usual if dtype is None else dtype)
        nodes = _nodes(self._layers, kind)
        names = frame, self.certified, kept
        save_nodes(Path(path), nodes, self.row, self.dim_out, kind, head, *names)


def _nodes(layers: Sequence[Layer], dtype: np.dtype) -> list[Node]:
    """The layers as ONNX has them; images are flattened before the first dense one."""
    nodes: list[Node] = []
    is_flat = isinstance(layers[0], Dense)
    image: ImageShape | None = None
    for layer in layers:
        match layer:
            case Convolution():
                dilations, pads = list(layer.dilations), list(layer.pads)
                said = {"strides": list(layer.strides), "pads": pads, "dilations": dilations}
                nodes.append(Node("Conv", layer.arrays, said))
                image = layer.shape_out
            case Relu():
                nodes.append(Node("Relu"))
            case Prelu():
                nodes.append(_of_slopes(layer.slopes, image, dtype))
            case Pooling():
                kind = "MaxPool" if layer.kind == "max" else "AveragePool"
                said = {"kernel_shape": list(layer.size), "strides": list(layer.strides)}
                nodes.append(Node(kind, (), said))
                image = layer.shape_out
            case Dense():
                image = None
                if not is_flat:
                    nodes.append(Node("Flatten", (), {"axis": 1}))
                    is_flat = True
                nodes.append(Node("Gemm", layer.arrays, {"transB": 1}))
    return nodes


def _of_slopes(slopes: FloatArray, image: ImageShape | None, dtype: np.dtype) -> Node:
    """LeakyRelu where one slope is all there is, whose attribute is a float32; else PRelu."""
    alpha = np.float32(slopes[0]) if len(slopes) else np.float32(0.0)
    if len(slopes) and (slopes.astype(dtype) == alpha).all():
        return Node("LeakyRelu", (), {"alpha": float(alpha)})
    if image is not None:
        # ONNX takes them in the shape of what they multiply: one a channel, or one a pixel.
        slopes = slopes.reshape(image)
        of_channels = slopes[:, :1, :1]
        return Node("PRelu", (of_channels if (slopes == of_channels).all() else slopes,))
    return Node("PRelu", (slopes[:1] if (slopes == slopes[0]).all() else slopes,))


def _layers_of(row: Sequence[int], nodes: Sequence[Node]) -> list[Layer]:
    """Layers of what ONNX has; pads that a pooling has are refused."""
    layers: list[Layer] = []
    of_images = [node.kind for node in nodes if node.kind in {"Conv", "MaxPool", "AveragePool"}]
    if len(row) != 3 and (of_images or len(row) != 1):
        kind = of_images[0] if of_images else nodes[0].kind
        raise FormatError(f"a node of type {kind} reads rows of shape {tuple(row)}, no images")
    shape: ImageShape = (row[0], row[1], row[2]) if len(row) == 3 else (1, 1, row[0])
    for node in nodes:
        said = node.attributes
        strides = tuple(said.get("strides", (1, 1)))
        match node.kind:
            case "Conv":
                if said.get("group", 1) != 1 or said.get("auto_pad", b"NOTSET") != b"NOTSET":
                    raise FormatError("a convolution of groups, or padded by itself, is not read")
                kernels = node.arrays[0]
                b = node.arrays[1] if len(node.arrays) > 1 else np.zeros(len(kernels))
                top, left, bottom, right = said.get("pads", (0, 0, 0, 0))
                dilations = tuple(said.get("dilations", (1, 1)))
                pads = (top, left, bottom, right)
                conv = Convolution(kernels, b, shape, strides, pads, dilations)
                layers, shape = [*layers, conv], conv.shape_out
            case "MaxPool" | "AveragePool":
                if any(said.get("pads", ())) or said.get("ceil_mode", 0):
                    raise FormatError("pooling with pads or incomplete windows is not read")
                kind = "max" if node.kind == "MaxPool" else "average"
                pool = Pooling(kind, shape, tuple(said["kernel_shape"]), strides)
                layers, shape = [*layers, pool], pool.shape_out
            case "Gemm":
                W, b = node.arrays
                W = W if said.get("transB", 0) else W.T
                layers.append(Dense(W, b))
            case "Relu":
                layers.append(Relu())
            case "LeakyRelu" | "PRelu":
                shape_here = (layers[-1].size_out,) if isinstance(layers[-1], Dense) else shape
                alpha = said.get("alpha", 0.01)
                slopes = node.arrays[0] if node.kind == "PRelu" else np.array(alpha, np.float32)
                layers.append(Prelu(_for_each(slopes.astype(np.float64), shape_here)))
    return layers


def _for_each(slopes: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """The slope of every number, of one for all or one a channel, as ONNX broadcasts them."""
    return np.ascontiguousarray(np.broadcast_to(slopes, shape).ravel())


def _of_convolution(layer: Convolution) -> str:
    kr, kc = layer.kernels.shape[2:]
    words = f"{len(layer.biases)} filters of {kr}x{kc}"
    words += f" at stride {layer.strides[0]}x{layer.strides[1]}" * (layer.strides != (1, 1))
    words += f" with pads {layer.pads}" * any(layer.pads)
    return words + f" dilated {layer.dilations[0]}x{layer.dilations[1]}" * (
        layer.dilations != (1, 1)
    )


def _dense(layers: Sequence[Layer], most_numbers: int = 2**28) -> Network:
    """The same function as a dense network."""
    weights: list[FloatArray] = []
    biases: list[FloatArray] = []
    W: FloatArray | None = None
    b = np.empty(0)
    for layer in layers:
        match layer:
            case Relu():
                if W is not None:  # what is 0 or more stays as it is
                    weights, biases, W = [*weights, W], [*biases, b], None
            case Prelu(slopes=s):
                if W is not None:  # and what is 0 or more, too
                    weights, biases = [*weights, np.vstack([W, -W])], [*biases, np.append(b, -b)]
                    W, b = np.hstack([np.eye(len(s)), -np.diag(s)]), np.zeros(len(s))
            case Pooling(kind="max"):
                if W is None and weights:
                    for M in _largest(layer, most_numbers):
                        weights, biases = [*weights, M], [*biases, np.zeros(len(M))]
                    W = _halves(len(weights[-1]))
                    b = np.zeros(len(W))
                    continue
                if W is None:
                    W, b = np.eye(layer.size_in), np.zeros(layer.size_in)
                more, W, b = _largest_of_signed(layer, W, b, most_numbers)
                weights += [V for V, _ in more]
                biases += [c for _, c in more]
            case _:
                V, c = layer.to_dense()
                W, b = (V, c) if W is None else (V @ W, V @ b + c)
    if W is None:  # pragma: no cover - the last layer is dense
        raise FormatError("a network ends in a dense layer")
    bends = [
        a for a in layers if isinstance(a, _UNITS) or (isinstance(a, Pooling) and a.kind == "max")
    ]
    if not any(isinstance(unit, Prelu) for unit in bends[-1:]):
        return Network([*weights, W], [*biases, b])
    # (1 - s) relu(z) + s z, of W z' where z' is what the last hidden layer puts out.
    k = len(biases[-1]) // 2
    rows, offsets, on, off = weights[-1][:k], biases[-1][:k], W[:, :k], -W[:, k:]
    skip = (off @ rows, off @ offsets)
    return Network([*weights[:-1], rows, on - off], [*biases[:-1], offsets, b], skip)


def _halves(n: int) -> FloatArray:
    """The sums ``a + relu(b - a)`` of pairs that follow one another, (n / 2, n)."""
    M = np.zeros((n // 2, n))
    rows = np.arange(n // 2)
    M[rows, 2 * rows] = M[rows, 2 * rows + 1] = 1.0
    return M


def _largest_of_signed(
    layer: Pooling, W: FloatArray, b: FloatArray, most_numbers: int
) -> tuple[list[tuple[FloatArray, FloatArray]], FloatArray, FloatArray]:
    """As :func:`_largest`, of sums ``W x + b`` of any sign, with what reads the last one.

    Each pair is ``max(a, b) = relu(a) - relu(-a) + relu(b - a)``.
    """
    channels, height, width = layer.shape
    reads = _padded_reads(layer)
    if channels * reads.size * max(W.shape[1], layer.size_in) > most_numbers:
        raise InputError("as a dense network it has too many weights")
    at = (np.arange(channels)[:, None, None] * height * width + reads).ravel()
    V, c, found = W[at], b[at], []
    n_seen = reads.shape[1]
    while n_seen > 1:
        first, second, n_seen = V[::2], V[1::2], n_seen // 2
        up, beside = c[::2], c[1::2]
        found.append(
            (np.vstack([first, -first, second - first]), np.concatenate([up, -up, beside - up]))
        )
        one = np.eye(len(first))
        V, c = np.hstack([one, -one, one]), np.zeros(len(first))
    return found, V, c


def _padded_reads(layer: Pooling) -> IntArray:
    """The places of each window, the last one repeated until they are a power of 2."""
    entries = layer.reads.shape[1]
    n_seen = 1 << max(1, int(np.ceil(np.log2(max(entries, 2)))))
    last = np.repeat(layer.reads[:, -1:], n_seen - entries, 1)
    return np.concatenate([layer.reads, last], 1)


def _largest(layer: Pooling, most_numbers: int) -> list[FloatArray]:
    """Weights of layers that halve each window, by ``max(a, b) = a + relu(b - a)``, over again.

    They are to be read by :func:`_halves`.  A window of odd size has its last place twice.
    """
    channels, height, width = layer.shape
    reads = _padded_reads(layer)
    windows, n_seen = reads.shape
    if channels * windows * n_seen * layer.size_in > most_numbers:
        raise InputError("as a dense network it has too many weights")
    one = np.zeros((windows * n_seen, height * width))
    one[np.arange(windows * n_seen), reads.ravel()] = 1.0
    M = np.kron(np.eye(channels), one)  # the places of every window, side by side
    found = []
    while n_seen > 1:
        first, second = M[::2], M[1::2]
        pairs = np.empty_like(M)
        pairs[::2], pairs[1::2] = first, second - first
        found.append(pairs)
        n_seen //= 2
        M = _halves(len(pairs))
    return found
