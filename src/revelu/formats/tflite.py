"""TensorFlow Lite models, ``.tflite``: a chain of operators, by the published schema.

Weights of float32, float16 and whole numbers of 8 bits are read, the latter by their scales.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import MAX_BYTES, check_is_file, naming_damage
from revelu.formats.channels_last import ORDER, ChannelsLast
from revelu.formats.flatbuffer import FlatTable
from revelu.formats.onnx_frame import Frame
from revelu.formats.open_model import LayerChain, OpenModel
from revelu.types import FloatArray

__all__ = ["read"]

# Numbers of operators, of types of numbers and of activations in the schema.
_NAMES = {
    0: "ADD",
    1: "AVERAGE_POOL_2D",
    3: "CONV_2D",
    4: "DEPTHWISE_CONV_2D",
    6: "DEQUANTIZE",
    9: "FULLY_CONNECTED",
    14: "LOGISTIC",
    17: "MAX_POOL_2D",
    18: "MUL",
    19: "RELU",
    21: "RELU6",
    22: "RESHAPE",
    25: "SOFTMAX",
    28: "TANH",
    40: "MEAN",
    41: "SUB",
    42: "DIV",
    43: "SQUEEZE",
    45: "STRIDED_SLICE",
    77: "SHAPE",
    83: "PACK",
    98: "LEAKY_RELU",
    114: "QUANTIZE",
}
_TYPES = {0: "<f4", 1: "<f2", 2: "<i4", 3: "u1", 4: "<i8", 7: "<i2", 9: "i1", 10: "<f8"}
_PADDING = {"same": 0, "valid": 1}
_ACTIVATIONS = {0: "linear", 1: "relu", 3: "relu6", 4: "tanh"}

_QUANTISED = (
    "the original rounds what its layers give to 8 bits, or what they read, which the network does "
    "not: its answers are those without the rounding"
)


def read(path: Path, activation: str | None = None) -> OpenModel:  # noqa: ARG001 - it says its own
    """Read a model that is a chain of layers.

    Raises
    ------
    FormatError
        If it is damaged, or has operators of other kinds; the operator is named.
    """
    check_is_file(path)
    with naming_damage(path, "TensorFlow Lite model"):
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
        content = path.read_bytes()
        if content[4:8] != b"TFL3":
            raise FormatError(f"{path}: no TensorFlow Lite model")
        return _FlatReader(path, FlatTable.root(content)).model()


class _Tensor:
    """A value of the graph.

    Parameters
    ----------
    table : FlatTable
    buffers : list of FlatTable
    """

    def __init__(self, table: FlatTable, buffers: list[FlatTable]) -> None:
        # Nothing is copied before it is needed: any number of tensors may lie in one place.
        self.table = table
        self.kind = int(table.number(1, "b"))
        place = int(table.number(2, "I"))
        self.buffer = buffers[place] if place < len(buffers) else None
        said = table.table(4)
        self.scale = np.empty(0, "f4") if said is None else said.array(2, "<f4")
        self.zero = np.empty(0, "i8") if said is None else said.array(3, "<i8")
        self.axis = 0 if said is None else int(said.number(6, "i"))

    @property
    def name(self) -> str:
        """What it is called."""
        return self.table.text(3)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape, the batch first."""
        return tuple(self.table.array(0, "<i4").tolist())

    @property
    def data(self) -> np.ndarray:
        """The bytes that it holds; none of what is computed."""
        return np.empty(0, "u1") if self.buffer is None else self.buffer.array(0, "u1")

    def numbers(self, chain: LayerChain) -> FloatArray:
        """Return its numbers, by their scales where it has them."""
        if self.kind not in _TYPES:
            chain.refuse(f"weights of the type {self.kind}")
        stored = self.data.view(_TYPES[self.kind])
        if stored.size != np.prod(self.shape, dtype=object) or not stored.size:
            chain.refuse(f"a tensor {self.name[:40]!r} without its numbers")
        found = chain.numbers(stored.reshape(self.shape))
        if not self.scale.size or np.dtype(_TYPES[self.kind]).kind == "f":
            return found
        along = [1] * found.ndim
        if self.scale.size > 1:
            along[self.axis] = self.scale.size
        scale, zero = self.scale.astype(np.float64), self.zero.astype(np.float64)
        shift = np.broadcast_to(zero if zero.size else np.zeros(1), scale.shape).reshape(along)
        return (found - shift) * scale.reshape(along)


class _FlatReader:
    """Puts a chain together from operators.

    Parameters
    ----------
    path : pathlib.Path
    model : FlatTable
    most_operators : int
        That are followed, each of which may be named over again by four bytes.
    """

    def __init__(self, path: Path, model: FlatTable, most_operators: int = 10_000) -> None:
        self.path = path
        codes = model.tables(1)
        self.codes = [max(int(c.number(0, "b")), int(c.number(3, "i"))) for c in codes]
        graphs, buffers = model.tables(2), model.tables(4)
        if len(graphs) != 1:
            raise FormatError(f"{path}: {len(graphs)} graphs, of which one is read")
        self.graph = graphs[0]
        self.tensors = [_Tensor(table, buffers) for table in self.graph.tables(0)]
        self.operators = self.graph.tables(3)
        if len(self.operators) > most_operators:
            raise FormatError(f"{path}: over {most_operators:,} operators")
        ends = [self.graph.array(field, "<i4").tolist() for field in (1, 2)]
        if any(len(end) != 1 for end in ends):
            raise FormatError(f"{path}: {len(ends[0])} inputs and {len(ends[1])} outputs")
        (self.given,), (self.answer,) = ends
        shape = self.tensors[self.given].shape[1:]
        if (
            len(shape) not in {1, 3}
            or min(shape, default=0) < 1
            or np.prod(shape, dtype=object) > 2**24
        ):
            raise FormatError(f"{path}: its inputs are of the shape {shape}, which is not read")
        row = shape if len(shape) == 1 else (shape[2], shape[0], shape[1])
        self.chain = LayerChain.of_file(path, row)
        self.put = ChannelsLast(self.chain)
        # Constants that another operator has made, and values that only say a shape.
        self.made: dict[int, int] = {}
        self.shapes: set[int] = set()

    def model(self) -> OpenModel:
        """Return what it is."""
        value = self.given
        for operator in self.operators:
            value = self._follow(operator, value)
        if value != self.answer:
            self.chain.refuse("its operators are no chain from its input to its output")
        self.put.end()
        row, dtype = self.chain.row, np.dtype(np.float32)
        names = [self.tensors[place].name or usual for place, usual in self._ends()]
        frame = None if names[0] == names[1] else Frame(names[0], row, dtype, names[1], dtype)
        # Weights of 8 bits that are not made floats first are multiplied with inputs of 8 bits.
        floats = set(self.made.values())
        whole = any(
            t.scale.size and t.kind in {3, 7, 9} and not (i in floats and t.data.size)
            for i, t in enumerate(self.tensors)
        )
        return OpenModel(
            f"TensorFlow Lite model of {len(self.operators)} operators",
            row,
            self.chain.end(),
            self.chain.scaling,
            self.put.head,
            frame=frame,
            notes=(*((_QUANTISED,) * whole), *((ORDER,) * (len(row) == 3 and row[0] > 1))),
        )

    def _ends(self) -> tuple[tuple[int, str], tuple[int, str]]:
        return (self.given, "input"), (self.answer, "output")

    def _follow(self, operator: FlatTable, value: int) -> int:
        """Add an operator that reads a value; return the value that comes of it."""
        place = int(operator.number(0, "I"))
        name = _NAMES.get(self.codes[place], f"of the number {self.codes[place]}")
        ends = [operator.array(f, "<i4") for f in (1, 2)]
        if max(end.size for end in ends) > 1000:
            self.chain.refuse("an operator of over 1,000 values")
        inputs, (output,) = (end.tolist() for end in ends)
        if name == "DEQUANTIZE" and self.tensors[inputs[0]].data.size:
            self.made[output] = inputs[0]
            return value
        if name in {"SHAPE", "STRIDED_SLICE", "PACK"}:  # how a batch of any size is flattened
            if not all(i in self.shapes or i == value or self.tensors[i].data.size for i in inputs):
                self.chain.refuse(f"an operator {name} of what is no shape")
            self.shapes.add(output)
            return value
        if not inputs or value not in inputs:
            self.chain.refuse("its operators branch, and are no chain")
        readers: dict[str, Callable[[list[int], FlatTable], None]] = {
            "FULLY_CONNECTED": self._dense,
            "CONV_2D": self._convolution,
            "DEPTHWISE_CONV_2D": self._depthwise,
            "MAX_POOL_2D": lambda _, said: self._pooling("MaxPool", said),
            "AVERAGE_POOL_2D": lambda _, said: self._pooling("AveragePool", said),
            "MEAN": self._mean,
            "RELU": lambda *_: self.put.activation("relu"),
            "RELU6": lambda *_: self.put.activation("relu6"),
            "LEAKY_RELU": lambda _, said: self.put.activation("leaky_relu", said.number(0, "f")),
            "LOGISTIC": lambda *_: self.put.activation("sigmoid"),
            "SOFTMAX": self._softmax,
            "RESHAPE": lambda *_: self._reshape(output),
            "SQUEEZE": lambda *_: self._reshape(output),
            "QUANTIZE": lambda *_: None,
            "DEQUANTIZE": lambda *_: None,
            **dict.fromkeys(
                ("ADD", "SUB", "MUL", "DIV"), lambda i, s: self._column(name, value, i, s)
            ),
        }
        if name not in readers:
            self.chain.refuse(f"its operator {name} is none that is read")
        readers[name](inputs, operator.table(4) or FlatTable.without_fields())
        return int(output)

    def _constant(self, place: int) -> FloatArray:
        return self.tensors[self.made.get(place, place)].numbers(self.chain)

    def _weights(self, inputs: list[int], ndim: int) -> tuple[FloatArray, FloatArray]:
        W = self._constant(inputs[1])
        if W.ndim != ndim:
            self.chain.refuse(f"weights of shape {W.shape}")
        n = W.shape[3] if ndim == 4 and W.shape[0] == 1 else W.shape[0]
        has_bias = len(inputs) > 2 and inputs[2] >= 0
        return W, self._constant(inputs[2]).reshape(-1) if has_bias else np.zeros(n)

    def _fused(self, number: int) -> None:
        self.put.activation(_ACTIVATIONS.get(number, f"activation {number}"))

    def _dense(self, inputs: list[int], said: FlatTable) -> None:
        if said.number(1, "b"):
            self.chain.refuse("weights that are shuffled")
        self.put.flatten()
        self.put.dense(*self._weights(inputs, 2))
        self._fused(said.number(0, "b"))

    def _convolution(self, inputs: list[int], said: FlatTable) -> None:
        W = self._constant(inputs[1])
        has_bias = len(inputs) > 2 and inputs[2] >= 0
        if W.ndim != 4:
            self.chain.refuse(f"weights of shape {W.shape}")
        b = self._constant(inputs[2]).reshape(-1) if has_bias else np.zeros(len(W))
        strides = said.number(2, "i"), said.number(1, "i")
        dilations = said.number(5, "i", 1), said.number(4, "i", 1)
        self._check_steps(*strides, *dilations)
        self.put.convolution(W, b, strides, dilations, same=said.number(0, "b") == _PADDING["same"])
        self._fused(said.number(3, "b"))

    def _depthwise(self, inputs: list[int], said: FlatTable) -> None:
        W, b = self._weights(inputs, 4)
        _, rows, columns, n = W.shape
        channels = self.put.shape[0]
        if n % channels:
            self.chain.refuse(f"{n} filters for {channels} channels")
        strides = said.number(2, "i"), said.number(1, "i")
        dilations = said.number(6, "i", 1), said.number(5, "i", 1)
        self._check_steps(*strides, *dilations)
        kernels = W.reshape(rows, columns, channels, n // channels)
        self.put.depthwise(
            kernels, b, strides, dilations, same=said.number(0, "b") == _PADDING["same"]
        )
        self._fused(said.number(4, "b"))

    def _pooling(self, kind: str, said: FlatTable) -> None:
        strides = said.number(2, "i"), said.number(1, "i")
        size = said.number(4, "i"), said.number(3, "i")
        self._check_steps(*strides, *size)
        self.put.pooling(kind, size, strides, same=said.number(0, "b") == _PADDING["same"])
        self._fused(said.number(5, "b"))

    def _check_steps(self, *steps: int) -> None:
        if min(steps) < 1:
            self.chain.refuse(f"steps of {min(steps)}")

    def _mean(self, inputs: list[int], _: FlatTable) -> None:
        axes = self._constant(inputs[1]).reshape(-1).tolist()
        if sorted(int(a) % 4 for a in axes) != [1, 2]:
            self.chain.refuse("a mean over other axes than an image's")
        self.put.pool_all("AveragePool")

    def _softmax(self, _: list[int], said: FlatTable) -> None:
        if said.number(0, "f", 0.0) != 1.0:
            self.chain.refuse("a softmax of another temperature")
        self.put.activation("softmax")

    def _reshape(self, output: int) -> None:
        shape = [n for n in self.tensors[output].shape[1:] if n != 1]
        if len(shape) > 1 and len(self.put.shape) == 1:
            self.chain.refuse("a row that becomes an image")
        if len(shape) <= 1:
            self.put.flatten()
        elif tuple(self.tensors[output].shape[1:]) != (*self.put.shape[1:], self.put.shape[0]):
            self.chain.refuse("an image that takes another shape")

    def _column(self, name: str, value: int, inputs: list[int], said: FlatTable) -> None:
        """Add, or multiply, numbers a column or a channel."""
        first, second = inputs
        if first != value and name in {"SUB", "DIV"}:
            self.chain.refuse(f"an operator {name} of a constant")
        constant = self._constant(second if first == value else first)
        if constant.size != max(constant.shape[-1:], default=1):
            self.chain.refuse(f"an operator {name} by an array of shape {constant.shape}")
        v = constant.reshape(-1)
        one, zero = np.ones(1), np.zeros(1)
        if name == "DIV" and not v.all():
            self.chain.refuse("divides by 0")
        match name:
            case "ADD":
                self.put.scale(one, v)
            case "SUB":
                self.put.scale(one, -v)
            case "MUL":
                self.put.scale(v, zero)
            case _:
                self.put.scale(1.0 / v, zero)
        self._fused(said.number(0, "b"))
