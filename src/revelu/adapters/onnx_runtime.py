"""ONNX files as targets, run by ONNX Runtime in the precision that they declare."""

import hashlib
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from revelu.adapters.onnx_ports import fixed_inputs, read_outputs, rows_of, varying_inputs
from revelu.adapters.ports import Ports
from revelu.errors import FormatError, InputError, TargetError
from revelu.formats.arrays import first_line
from revelu.formats.onnx import certified_of, data_files, read_model
from revelu.formats.onnx_casts import behind_casts
from revelu.formats.onnx_frame import Frame
from revelu.formats.onnx_scaling import read_clip, read_scaling
from revelu.oracle import Domain, agreed_dim_in
from revelu.types import FloatArray

# How the runtime says which operators it has.
_NEWEST = re.compile(r"support for domain (\S+) is till opset (\d+)")


class OnnxTarget:
    """A file that answers ``(n, d) -> (n, k)``.

    The session is opened on first use and left behind when pickled, so that a process
    of an executor opens its own.

    Parameters
    ----------
    dim_in : int, optional
        Number of inputs, where the file does not say.
    ports : Ports
        Which input and which output, where there are several; the shape of a row, where the
        file leaves it open; where other inputs stay, zeros where not given.
    max_rows : int
        Largest fixed batch size: queries are padded to it, and a larger one would take more
        memory than a query is worth.

    Raises
    ------
    FormatError
        If the file cannot be read, or keeps data outside its folder.
    InputError
        If it takes or gives no real numbers, or several of which none is named.
    """

    def __init__(
        self,
        path: Path,
        dim_in: int | None = None,
        ports: Ports | None = None,
        max_rows: int = 65_536,
    ) -> None:
        model, ports = read_model(path), ports or Ports()
        ports.only("ONNX files", "input_name", "output_name", "input_shape", "fixed")
        # The path is absolute, since other processes may work in other folders.
        self.path = path.absolute()
        self._session: Any = None
        # What revelu wrote says whether it is certified.
        self.certified = certified_of(model)
        try:
            self._session, self._whole = _open_session(self.path, model)
            sources, answers = self.session.get_inputs(), self.session.get_outputs()
            self._inputs = varying_inputs(path, sources, ports, dim_in)
            self._fixed = fixed_inputs(path, sources, self._inputs, ports)
            self._outputs, self._output_dtype = read_outputs(path, answers, ports.output_name)
        except UnicodeDecodeError as error:  # names and dimensions of a damaged file
            raise FormatError(f"{path}: a name is not text: {error}") from None
        self._others = [value.name for value in answers if value.name not in self._outputs]
        # A fixed first dimension is the size of every batch.
        self._rows = next((one.n_rows for one in self._inputs if one.n_rows), None)
        if self._rows is not None and self._rows > max_rows:
            raise InputError(f"{path}: answers {self._rows:,} rows at a time; {max_rows:,} at most")
        self.dim_in = agreed_dim_in(str(path), sum(one.size for one in self._inputs), dim_in)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen among several inputs and outputs, in words."""
        note = getattr(self.session, "note", None)
        found = [] if note is None else [note]
        if self._others:
            asked = ", ".join(self._outputs)
            found.append(f"of the outputs {asked} is asked, not {', '.join(self._others)}")
        if self._fixed:
            names = ", ".join(one.name for one in self._inputs)
            zeros = [name for name, (value, _) in self._fixed.items() if not value.any()]
            given = [name for name in self._fixed if name not in zeros]
            stays = [f"{', '.join(zeros)} stays at zero"] if zeros else []
            stays += [f"{', '.join(given)} stays as given"] if given else []
            found.append(f"of the inputs {names} varies; {' and '.join(stays)}")
        if self._inputs[0].name in self._whole:
            found.append(
                f"the input {self._inputs[0].name} takes whole numbers, of which the file makes "
                "real ones before anything else: those are asked"
            )
        if self._inputs[0].dtype.kind in "iub":
            found.append(
                f"the input {self._inputs[0].name} takes whole numbers, and is asked at the "
                "nearest: the larger the std of what is asked, the less that rounds away"
            )
        return tuple(found)

    @property
    def row(self) -> tuple[int, ...] | None:
        """Shape of one row; None of several inputs."""
        return tuple(self._inputs[0].row) if len(self._inputs) == 1 else None

    @property
    def frame(self) -> Frame | None:
        """Names and shapes that a file of the same kind has; None of several of either."""
        if len(self._inputs) != 1 or len(self._outputs) != 1:
            return None
        one = self._inputs[0]
        dtype = self._whole.get(one.name, one.dtype)
        return Frame(one.name, one.row, dtype, self._outputs[0], self._output_dtype)

    @property
    def datatype(self) -> str:
        """What its numbers are called in protocols."""
        return "FP32" if self._inputs[0].dtype == np.float32 else "FP64"

    @property
    def in_float64(self) -> str:
        """How such a file would answer in float64, in words; empty of one that does."""
        if {one.dtype for one in self._inputs} == {np.dtype(np.float64)}:
            return ""
        return (
            "export the model in float64 (in torch its .double(), with inputs of torch.float64); "
            "such a file is asked, its convolutions too"
        )

    @property
    def facts(self) -> dict[str, str]:
        """What decides its answers."""
        asked = {"file": hashlib.sha256(self.path.read_bytes()).hexdigest()}
        if beside := data_files(self.path, read_model(self.path)):
            digests = [hashlib.sha256(file.read_bytes()).digest() for file in beside]
            asked["data"] = hashlib.sha256(b"".join(digests)).hexdigest()
        if self._others or self._fixed:
            asked["ports"] = f"{[one.name for one in self._inputs]} {self._outputs}"
        if any(len(one.row) > 1 for one in self._inputs):
            asked["rows"] = f"{[one.row for one in self._inputs]}"
        for name, (value, _) in self._fixed.items():
            asked[f"fixed {name}"] = hashlib.sha256(repr(value.tolist()).encode()).hexdigest()
        return asked

    @property
    def suggested_domain(self) -> Domain | None:
        """Where the scaling that the file begins with says that its inputs are."""
        is_clipped_image = len(self._inputs[0].row) > 1 and self.clips_to is not None
        if len(self._inputs) > 1 or is_clipped_image:
            return None
        scaling = read_scaling(self.path, self._inputs[0].name)
        if scaling is None or {scaling.offset.size, scaling.scale.size} - {1, self.dim_in}:
            return None
        scale = np.where(scaling.scale != 0, np.abs(scaling.scale), 1.0)
        with np.errstate(over="ignore"):
            center, spread = np.broadcast_arrays(
                scaling.offset, 1.0 / scale, np.empty(self.dim_in)
            )[:2]
        if not (np.isfinite(center) & np.isfinite(spread) & (spread > 0)).all():
            return None
        words = "where the file's Scaler puts its inputs"
        return replace(Domain.gaussian(center, spread), words=words)

    @property
    def clips_to(self) -> tuple[float, float] | None:
        """Between which ends the file clips all numbers of its input, where it does."""
        return None if len(self._inputs) > 1 else read_clip(self.path, self._inputs[0].name)

    @property
    def session(self) -> Any:
        """The runtime's session, opened on first use."""
        if self._session is None:
            self._session = _open_session(self.path, read_model(self.path))[0]
        return self._session

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    @property
    def column_names(self) -> list[str]:
        """What its inputs are called, where each is a column of a table; else nothing."""
        are_columns = len(self._inputs) > 1 and all(one.size == 1 for one in self._inputs)
        return [one.name for one in self._inputs] if are_columns else []

    def __call__(self, X: FloatArray) -> Any:
        """Run the file on the rows of ``X``.

        Raises
        ------
        TargetError
            If the runtime fails, or a file of a fixed batch size answers another
            number of rows.
        """
        edges = np.cumsum([0, *(one.size for one in self._inputs)])
        parts = [
            one.taken(X[:, start:stop])
            for one, (start, stop) in zip(self._inputs, pairwise(edges), strict=True)
        ]
        rows = self._rows
        if rows is None:
            return self._run(parts)
        padded = [_padded(part, rows) for part in parts]
        answers = [
            self._run([part[i : i + rows] for part in padded])
            for i in range(0, len(padded[0]), rows)
        ]
        return np.concatenate(answers)[: len(X)]

    def _run(self, parts: list[np.ndarray]) -> np.ndarray:
        session, n = self.session, len(parts[0])
        feed = {one.name: part for one, part in zip(self._inputs, parts, strict=True)}
        for name, (value, by_row) in self._fixed.items():
            feed[name] = np.repeat(value[None], n, axis=0) if by_row else value
        try:
            answers = session.run(self._outputs, feed)
        # The runtime's exceptions share no base class of their own.
        except Exception as error:  # noqa: BLE001
            raise TargetError(f"{self.path} failed on a query: {first_line(error)}") from None
        return np.concatenate([rows_of(self.path, answer, n) for answer in answers], axis=1)


def _padded(part: np.ndarray, rows: int) -> np.ndarray:
    """Rows, and as many of zeros as make whole batches."""
    missing = np.zeros((-len(part) % rows, *part.shape[1:]), part.dtype)
    return np.concatenate([part, missing])


def _open_session(path: Path, model: Any) -> tuple[Any, dict[str, np.dtype]]:
    """A session, and the inputs of whole numbers that take real ones in it."""
    real, whole = behind_casts(model)
    if whole:
        try:
            return _session(path, real, real.SerializeToString()), whole
        except FormatError:  # its data lies elsewhere, or something else needs whole numbers
            pass
    return _session(path, model, str(path)), {}


def _session(path: Path, model: Any, source: str | bytes) -> Any:
    import onnxruntime  # noqa: PLC0415 - a second that other targets need not wait

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # One thread adds in the same order on every machine.
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(
            source, sess_options=options, providers=["CPUExecutionProvider"]
        )
    # The runtime's exceptions share no base class of their own.
    except Exception as error:  # noqa: BLE001
        if "Could not find an implementation" in str(error) and _computes_in_float64(model):
            return _by_reference(path, model, source, error)
        raise FormatError(f"{path}: ONNX Runtime cannot run it: {_reason(model, error)}") from None


def _by_reference(path: Path, model: Any, source: str | bytes, error: Exception) -> Any:
    """A session that has in float64 what the runtime has in float32 alone."""
    from revelu.adapters.onnx_reference import ReferenceSession  # noqa: PLC0415 - imports onnx

    try:
        return ReferenceSession(source, model)
    # The evaluator's exceptions share no base class of their own.
    except Exception as other:  # noqa: BLE001
        raise FormatError(
            f"{path}: neither ONNX Runtime nor ONNX's reference evaluator can run it in float64: "
            "name the model itself, a torch module m of model.py for instance, by `revelu extract "
            f"model:m --trust`, or export it in float32 ({first_line(error)}; {first_line(other)})"
        ) from None


def _reason(model: Any, error: Exception) -> str:
    """What the runtime says, with the operators that the file asks for and it may not have."""
    said = first_line(error)
    asked = [f"{o.domain or 'ai.onnx'} {o.version}" for o in model.opset_import]
    own = {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}
    foreign = sorted({node.domain for node in model.graph.node} - own)
    if foreign:
        return (
            f"its operators of the domain {', '.join(foreign)} are none of the runtime's; wrap the "
            f"model in a Python callable that has them ({said})"
        )
    if (newest := _NEWEST.search(said)) is not None:
        return (
            f"it asks for the operators {', '.join(asked)}, and this runtime has those of "
            f"{newest[1]} up to {newest[2]}: export it with an earlier opset"
        )
    if "IR version" in said:
        return f"it is of IR version {model.ir_version}: {said}"
    return said


def _computes_in_float64(model: Any) -> bool:
    from onnx import TensorProto  # noqa: PLC0415

    return any(v.type.tensor_type.elem_type == TensorProto.DOUBLE for v in model.graph.input)
