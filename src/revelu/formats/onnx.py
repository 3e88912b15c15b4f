"""ONNX graphs of dense ReLU networks, written and read.

What is written: ``input (N, d)`` to ``output (N, k)`` by Gemm and Relu; a skip is one
more Gemm from the last hidden layer's input, added to the output; what stands between the network
and its target's answers, as the softmax of a classifier, follows where it is asked for.  In a
frame, the input and the output have other names, shapes and types.
What is read: the same, and chains of Gemm, MatMul, Add, Sub, Relu, Identity, Reshape and Flatten as
other tools write them.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import Arrays, check_is_file, naming_damage, replace_file
from revelu.formats.onnx_frame import Frame
from revelu.formats.onnx_kept import Kept, is_label
from revelu.numerics.links import FORMS, Link

__all__ = ["Frame", "data_files", "dump", "heads_of", "kept_of", "load", "read_model"]

# Current runtimes refuse newer versions, which onnx writes by default.
IR_VERSION = 10
OPSET = 17

_PRODUCER = "revelu"
_HEAD = "head_"
_HEADS = sorted({form.steps[0] for form in FORMS.values() if len(form.steps) == 1})

# What of the metadata says whether fresh queries have vouched for a network, and in words.
_MARK = "certified"
_CERTIFIED = "Recovered by revelu, and certified by fresh queries."
_READ = "Read by revelu from a file, {}; nothing was asked."
_NOT_CERTIFIED = "NOT certified: found by revelu, and fresh queries do not vouch for it."

# The size limit of protocol buffers.
MAX_BYTES = 2 * 2**30 - 1

# Two affine maps in a row are read as their product, which may be much larger than both, as of
# (n, 1) and (1, n); a product of more numbers than this is refused.
MAX_PRODUCT = 2**26


def dump(
    path: Path,
    arrays: Arrays,
    dtype: np.dtype,
    head: Link,
    frame: Frame | None = None,
    kept: Kept | None = None,
) -> None:
    """Write a graph, checked by onnx's own checker, in a frame where one is given.

    Raises
    ------
    FormatError
        If it has no input or no output, or is too large for the format.
    """
    d, k = arrays.weights[0].shape[1], arrays.weights[-1].shape[0]
    if 0 in {d, k}:
        raise FormatError(f"{path}: a graph needs inputs and outputs, not {d} and {k}")
    n_bytes = dtype.itemsize * sum(a.size for a in (*arrays.weights, *(arrays.skip or ())))
    if n_bytes > MAX_BYTES:
        raise FormatError(f"{path}: {n_bytes:,} bytes of weights, over {MAX_BYTES:,}")
    nodes, tensors, last = _layers(arrays, dtype)
    own = Frame("input", (d,), dtype, "output", dtype)
    write_graph(path, nodes, tensors, last, k, dtype, head, frame, own, arrays.certified, kept)


def write_graph(
    path: Path,
    nodes: list[Any],
    tensors: list[Any],
    last: str,
    k: int,
    dtype: np.dtype,
    head: Link,
    frame: Frame | None,
    own: Frame,
    certified: bool | None = None,
    kept: Kept | None = None,
) -> None:
    """Write nodes from ``input`` to the value ``last`` of ``k`` numbers, as a checked graph.

    Parameters
    ----------
    frame : Frame or None
        Names, shapes and types that are put around it; ``own`` has those that it has by itself.
    certified : bool or None
        Whether fresh queries have vouched for it, as the model's metadata and description say.
    kept : Kept or None
        What else it has.
    """
    import onnx  # noqa: PLC0415
    from onnx import helper  # noqa: PLC0415

    nodes += _head_nodes(head, last, tensors, dtype)
    kept = kept or Kept()
    nodes = kept.put_before(nodes, tensors, dtype)
    if frame is not None:
        nodes = frame.put_around(nodes, tensors, dtype)
    inputs, outputs = (frame or own).declared(k)
    naming, labels = kept.labels(k, (frame or own).output_name, tensors)
    nodes, outputs = [*nodes, *naming], [*outputs, *labels]
    graph = helper.make_graph(nodes, "revelu", inputs, outputs, tensors)
    model = helper.make_model(
        graph,
        producer_name=_PRODUCER,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    said = kept.props()
    if certified is not None:
        said |= {"head": str(head)} if head.has_head else {}
        said[_MARK] = "yes" if certified else "no"
        model.doc_string = _CERTIFIED if certified else _NOT_CERTIFIED
    elif kept.words:
        model.doc_string = _READ.format(kept.words)
    helper.set_model_props(model, said)
    onnx.checker.check_model(model)
    replace_file(path, model.SerializeToString())


def _head_nodes(head: Link, last: str, tensors: list[Any], dtype: np.dtype) -> list[Any]:
    """The nodes from the value ``last`` to ``output``, by the name of which a reader knows them."""
    from onnx import helper, numpy_helper  # noqa: PLC0415

    steps = (*head.form.steps, *(("Mul",) if head.scale != 1.0 else ())) or ("Identity",)
    constants = {"Sub": 1.0, "Mul": head.scale}
    nodes, value = [], last
    for i, step in enumerate(steps):
        inputs = [value]
        if step in constants:
            inputs.append(f"{_HEAD}{i}.constant")
            tensors.append(numpy_helper.from_array(np.array(constants[step], dtype), inputs[-1]))
        value = "output" if i == len(steps) - 1 else f"{_HEAD}{i}"
        over = {"axis": 1} if step in {"Softmax", "LogSoftmax"} else {}
        nodes.append(helper.make_node(step, inputs, [value], name=f"{_HEAD}{i}", **over))
    return nodes


def is_of_head(node: Any, model: Any) -> bool:
    """Whether a node of a file that revelu wrote belongs to its head."""
    return bool(model.producer_name == _PRODUCER and node.name.startswith(_HEAD))


def heads_of(path: Path) -> tuple[str, ...]:
    """Return the operators of a file's head, which :func:`load` leaves off; none has none.

    Raises
    ------
    FormatError
        If it cannot be read.
    """
    model = read_model(path)
    steps = (n for n in model.graph.node if is_of_head(n, model) or n.op_type in _HEADS)
    return tuple(n.op_type for n in steps if n.op_type != "Identity")


def _layers(arrays: Arrays, dtype: np.dtype) -> tuple[list[Any], list[Any], str]:
    """Nodes, initializers, and the name of the last value."""
    from onnx import helper, numpy_helper  # noqa: PLC0415

    nodes: list[Any] = []
    tensors: list[Any] = []
    widths = {"input": arrays.weights[0].shape[1]}

    def gemm(source: str, name: str, W: np.ndarray, b: np.ndarray) -> str:
        # A layer without neurons feeds a constant, written as weights of zero on any value.
        W = W if W.shape[1] else np.zeros((len(W), widths[source]))
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(W, dtype), f"{name}.weight"))
        tensors.append(numpy_helper.from_array(np.ascontiguousarray(b, dtype), f"{name}.bias"))
        inputs = [source, f"{name}.weight", f"{name}.bias"]
        nodes.append(helper.make_node("Gemm", inputs, [name], transB=1))
        return name

    *hidden, (A, c) = zip(arrays.weights, arrays.biases, strict=True)
    value = before = "input"
    for i, (W, b) in enumerate(hidden):
        before = value
        if len(W):
            gemm(value, f"layer_{i}", W, b)
            nodes.append(helper.make_node("Relu", [f"layer_{i}"], [f"relu_{i}"]))
            value = f"relu_{i}"
            widths[value] = len(W)
    if hidden and not A.shape[1]:
        # Without a neuron in the last hidden layer, only the affine map is left.
        V, e = arrays.skip or (np.zeros((len(A), hidden[-1][0].shape[1])), np.zeros(len(A)))
        return nodes, tensors, gemm(before, "affine", V, c + e)
    gemm(value, "last", A, c)
    if arrays.skip is None:
        return nodes, tensors, "last"
    gemm(before, "skip", *arrays.skip)
    nodes.append(helper.make_node("Add", ["last", "skip"], ["sum"]))
    return nodes, tensors, "sum"


def load(path: Path) -> Arrays:
    """Read a graph; what it ends in is left off, be it a softmax, a sigmoid or another head.

    Raises
    ------
    FormatError
        If it is no ONNX file, or no chain of dense ReLU layers; the node that is not
        understood is named.
    """
    from onnx import numpy_helper  # noqa: PLC0415

    model = read_model(path)
    graph = model.graph
    folder = str(path.parent)
    constants: dict[str, np.ndarray] = {}
    with naming_damage(path, "graph"):
        for tensor in graph.initializer:
            constants[tensor.name] = numpy_helper.to_array(tensor, base_dir=folder)
        given = [value for value in graph.input if value.name not in constants]
        inputs = [value.name for value in given]
        outputs = [value.name for value in graph.output if not is_of_labels(value.name, model)]
        if len(inputs) != 1 or len(outputs) != 1:
            raise FormatError(
                f"{path}: {len(inputs)} inputs and {len(outputs)} outputs, not one each"
            )
        reader = _Reader(path, constants, inputs[0], _row_size(given[0]))
        for node in graph.node:
            if is_of_labels(node.output[0], model):
                continue
            if is_of_head(node, model):
                reader.pass_on(node)
            else:
                reader.read(node)
        return reader.arrays(outputs[0])._replace(certified=certified_of(model))


def is_of_labels(name: str, model: Any) -> bool:
    """Whether a value of a file that revelu wrote is of the names of classes."""
    return bool(model.producer_name == _PRODUCER and is_label(name, model.graph))


def _row_size(value: Any) -> int | None:
    """Numbers of one row of a value, all axes but the first; None where that is not said."""
    sizes = [axis.dim_value for axis in value.type.tensor_type.shape.dim[1:]]
    return math.prod(sizes) if sizes and all(sizes) else None


def certified_of(model: Any) -> bool | None:
    """Return whether a model says that fresh queries have vouched for it; None of others'."""
    if model.producer_name != _PRODUCER:
        return None
    said = {entry.key: entry.value for entry in model.metadata_props}
    return {"yes": True, "no": False}.get(said.get(_MARK, ""))


def kept_of(path: Path) -> Kept:
    """Return what a file that revelu wrote says of the model that it was read from.

    Raises
    ------
    FormatError
        If it cannot be read.
    """
    model = read_model(path)
    if model.producer_name != _PRODUCER:
        return Kept()
    with naming_damage(path, "ONNX file"):
        return Kept.said_by({entry.key: entry.value for entry in model.metadata_props})


def read_model(path: Path) -> Any:
    """Parse an ONNX file without its external data, which must lie in its folder.

    Raises
    ------
    FormatError
        If it is missing, cannot be parsed, is too large, or refers to data outside its
        folder.
    """
    import onnx  # noqa: PLC0415

    with naming_damage(path, "ONNX file"):
        check_is_file(path)
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
        model = onnx.load(str(path), load_external_data=False)
        locations = [_location(tensor) for tensor in _tensors(model) if _is_external(tensor)]
        if not locations:
            onnx.checker.check_model(model)
        for location in locations:
            _check_location(path, location)
    return model


def data_files(path: Path, model: Any) -> list[Path]:
    """Return the files beside an ONNX file that hold some of its numbers."""
    held = {_location(tensor) for tensor in _tensors(model) if _is_external(tensor)}
    return [path.parent / location for location in sorted(held)]


def _tensors(message: Any) -> Iterator[Any]:
    """Every tensor that a message holds, however deep."""
    from onnx import TensorProto  # noqa: PLC0415

    if isinstance(message, TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in (value,) if hasattr(value, "ListFields") else value:
                yield from _tensors(part)


def _is_external(tensor: Any) -> bool:
    return bool(tensor.data_location == tensor.EXTERNAL)


def _location(tensor: Any) -> str:
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def _check_location(path: Path, location: str) -> None:
    """Refuse data outside the folder of the file, whatever the links on the way."""
    folder = path.parent.resolve()
    if not (folder / location).resolve().is_relative_to(folder):
        raise FormatError(f"{path}: its data {location!r} lies outside its folder")
    if not (folder / location).is_file():
        raise FormatError(f"{path}: its data {location!r} is missing")


class _Term:
    """``W h + b`` of layer ``base``'s values ``h``; ``W`` is None for ``h`` itself."""

    def __init__(self, base: int, W: np.ndarray | None = None, b: np.ndarray | None = None) -> None:
        self.base, self.W, self.b = base, W, b

    def times(self, M: np.ndarray, path: Path) -> "_Term":
        if self.W is not None and M.shape[0] * self.W.shape[1] > MAX_PRODUCT:
            raise FormatError(
                f"{path}: two affine maps in a row make {M.shape[0]} x {self.W.shape[1]} "
                f"numbers, over {MAX_PRODUCT:,}"
            )
        b = None if self.b is None else M @ np.broadcast_to(self.b, (M.shape[1],))
        return _Term(self.base, M if self.W is None else M @ self.W, b)

    def plus(self, b: np.ndarray) -> "_Term":
        return _Term(self.base, self.W, b if self.b is None else self.b + b)

    def layer(self, path: Path) -> tuple[np.ndarray, np.ndarray]:
        if self.W is None:
            raise FormatError(f"{path}: a layer without weights")
        b = np.zeros(len(self.W)) if self.b is None else self.b
        return self.W, np.broadcast_to(b, (len(self.W),))


class _Reader:
    """Follows one value through the nodes of a graph, layer by layer."""

    def __init__(
        self,
        path: Path,
        constants: dict[str, np.ndarray],
        start: str,
        row_size: int | None = None,
    ) -> None:
        self.path, self.constants, self.row_size = path, constants, row_size
        self.readers: dict[str, Callable[[Any, dict[str, Any]], list[_Term]]] = {
            "Add": self._add,
            "Cast": self._cast,
            "Dropout": self._dropout,
            "Flatten": self._flatten,
            "Gemm": self._gemm,
            "Identity": self._identity,
            "MatMul": self._matmul,
            "Mul": self._mul,
            "Relu": self._relu,
            "Reshape": self._reshape,
            "Sub": self._sub,
            **dict.fromkeys(_HEADS, self._head),
        }
        self.values: dict[str, list[_Term]] = {start: [_Term(0)]}
        self.layers: list[tuple[np.ndarray, np.ndarray]] = []
        self.after_head = False

    def read(self, node: Any) -> None:
        """Add the value that a node computes."""
        from onnx import helper, numpy_helper  # noqa: PLC0415

        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Constant" and "value" in attributes:
            folder = str(self.path.parent)
            value = numpy_helper.to_array(attributes["value"], base_dir=folder)
            self.constants[node.output[0]] = value
            return
        if node.op_type == "Identity" and node.input[0] in self.constants:
            self.constants[node.output[0]] = self.constants[node.input[0]]
            return
        read = self.readers.get(node.op_type)
        if (
            read is None
            or node.domain not in {"", "ai.onnx"}
            or (self.after_head and node.op_type not in {"Cast", "Identity"})
        ):
            raise FormatError(f"{self.path}: cannot read a node of type {node.op_type} here")
        self.values[node.output[0]] = read(node, attributes)

    def pass_on(self, node: Any) -> None:
        """Take the value behind a node for the one before it."""
        self.values[node.output[0]] = self.values.get(node.input[0], [])

    def arrays(self, output: str) -> Arrays:
        """Give what was read as arrays; the output is one term, or one and a skip."""
        terms = sorted(self.values.get(output, []), key=lambda term: -term.base)
        depth = len(self.layers)
        # Without hidden layers the skip starts where the layer does.
        wanted = [depth, max(depth - 1, 0)]
        if not terms or [term.base for term in terms] != wanted[: len(terms)]:
            raise FormatError(f"{self.path}: its output is not that of a dense ReLU network")
        layers = [*self.layers, terms[0].layer(self.path)]
        if self.row_size not in {None, layers[0][0].shape[1]}:
            raise FormatError(f"{self.path}: its first layer does not read whole rows")
        skip = terms[1].layer(self.path) if len(terms) > 1 else None
        return Arrays([W for W, _ in layers], [b for _, b in layers], skip)

    def _one(self, node: Any, name: str) -> _Term:
        terms = self.values.get(name)
        if terms is None or len(terms) != 1:
            raise FormatError(f"{self.path}: cannot read a node of type {node.op_type} here")
        return terms[0]

    def _constant(self, node: Any, name: str) -> np.ndarray:
        array = self.constants.get(name)
        if array is None or array.dtype.kind != "f" or not array.size:
            raise FormatError(f"{self.path}: {node.op_type} needs a constant array {name!r}")
        with np.errstate(invalid="ignore"):  # a network's numbers are finite: that is checked
            return array.astype(np.float64)

    def _matrix(self, node: Any) -> np.ndarray:
        matrix = self._constant(node, node.input[1])
        if matrix.ndim != 2:
            raise FormatError(f"{self.path}: {node.op_type} by an array of shape {matrix.shape}")
        return matrix

    def _bias(self, node: Any, name: str) -> np.ndarray:
        """A constant added to every row alike, shape (k,) or (1,)."""
        b = self._constant(node, name)
        if any(n != 1 for n in b.shape[:-1]):
            raise FormatError(f"{self.path}: {node.op_type} adds an array of shape {b.shape}")
        return b.reshape(-1)

    def _gemm(self, node: Any, attributes: dict[str, Any]) -> list[_Term]:
        term = self._one(node, node.input[0])
        M = self._matrix(node)
        M = M if attributes.get("transB", 0) else M.T
        alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
        if attributes.get("transA", 0):
            raise FormatError(f"{self.path}: Gemm with a transposed input is not a layer")
        term = term.times(M if alpha == 1.0 else alpha * M, self.path)
        if len(node.input) > 2 and node.input[2]:
            b = self._bias(node, node.input[2])
            term = term.plus(b if beta == 1.0 else beta * b)
        return [term]

    def _matmul(self, node: Any, _: dict[str, Any]) -> list[_Term]:
        return [self._one(node, node.input[0]).times(self._matrix(node).T, self.path)]

    def _add(self, node: Any, _: dict[str, Any]) -> list[_Term]:
        first, second = node.input
        for value, other in ((first, second), (second, first)):
            if value in self.values and other in self.constants:
                return [self._one(node, value).plus(self._bias(node, other))]
        return [self._one(node, first), self._one(node, second)]

    def _mul(self, node: Any, _: dict[str, Any]) -> list[_Term]:
        """A factor a column, or one for all."""
        first, second = node.input
        value, other = (second, first) if first in self.constants else (first, second)
        term, s = self._one(node, value), self._bias(node, other)
        if term.W is not None:
            n = len(term.W)
        elif term.base:
            n = len(self.layers[term.base - 1][0])
        else:
            n = len(s) if len(s) > 1 else self.row_size or 1
        if n * n > MAX_PRODUCT:
            raise FormatError(f"{self.path}: {n:,} columns that are multiplied by themselves")
        return [term.times(np.diag(np.broadcast_to(s, (n,))), self.path)]

    def _sub(self, node: Any, _: dict[str, Any]) -> list[_Term]:
        """A constant taken off, such as the mean of inputs, which may have their shape."""
        b = self._constant(node, node.input[1])
        if b.size > 1 and b.ndim > 1 and b.shape[0] != 1:
            raise FormatError(f"{self.path}: Sub takes off an array of shape {b.shape}")
        return [self._one(node, node.input[0]).plus(-b.reshape(-1))]

    def _reshape(self, node: Any, _: dict[str, Any]) -> list[_Term]:
        """Rows in a line, as Flatten makes them."""
        shape = self.constants.get(node.input[1])
        sizes = [] if shape is None else [int(n) for n in shape.reshape(-1)]
        are_rows = len(sizes) == 2 and sizes[0] in {-1, 0, 1} and sizes[1] in {-1, self.row_size}
        if not are_rows or sizes == [-1, -1] or self.row_size is None or self.layers:
            raise FormatError(f"{self.path}: Reshape must keep the rows")
        return self._identity(node, {})

    def _relu(self, node: Any, _: dict[str, Any]) -> list[_Term]:
        term = self._one(node, node.input[0])
        if term.base != len(self.layers):
            raise FormatError(f"{self.path}: a ReLU layer that is not in a chain")
        self.layers.append(term.layer(self.path))
        return [_Term(len(self.layers))]

    def _identity(self, node: Any, _: dict[str, Any]) -> list[_Term]:
        return self.values.get(node.input[0], [])

    def _cast(self, node: Any, attributes: dict[str, Any]) -> list[_Term]:
        """The same numbers in another precision; whole numbers would be others."""
        from onnx import TensorProto  # noqa: PLC0415

        if attributes.get("to") not in {TensorProto.FLOAT, TensorProto.DOUBLE}:
            raise FormatError(f"{self.path}: Cast to numbers of fewer digits is not a layer")
        return self._identity(node, {})

    def _dropout(self, node: Any, _: dict[str, Any]) -> list[_Term]:
        """Nothing is dropped unless a third input says that this is training."""
        if len(node.input) > 2 and node.input[2]:
            raise FormatError(f"{self.path}: Dropout with a training mode is not a layer")
        return self._identity(node, {})

    def _flatten(self, node: Any, attributes: dict[str, Any]) -> list[_Term]:
        if attributes.get("axis", 1) not in {1, -1}:
            raise FormatError(f"{self.path}: Flatten must keep the first axis")
        return self._identity(node, {})

    def _head(self, node: Any, attributes: dict[str, Any]) -> list[_Term]:
        """Leave it off; nothing but an Identity may follow."""
        if attributes.get("axis", 1) not in {1, -1}:
            raise FormatError(f"{self.path}: {node.op_type} must be over the outputs of a row")
        self.after_head = True
        return self.values.get(node.input[0], [])
