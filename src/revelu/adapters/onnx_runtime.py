"""ONNX files as targets, run by ONNX Runtime in the precision that they declare."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError, InputError, TargetError
from revelu.formats.arrays import first_line
from revelu.formats.onnx import read_model
from revelu.formats.onnx_scaling import read_scaling
from revelu.oracle import Domain, agreed_dim_in
from revelu.types import FloatArray

_DTYPES = {"tensor(double)": np.float64, "tensor(float)": np.float32}


class OnnxTarget:
    """A file that answers ``(n, d) -> (n, k)``.

    The session is opened on first use and left behind when pickled, so that a process
    of an executor opens its own.

    Parameters
    ----------
    dim_in : int, optional
        Number of inputs, where the file does not say.
    max_rows : int
        Largest fixed batch size: queries are padded to it, and a larger one would take more
        memory than a query is worth.

    Raises
    ------
    FormatError
        If the file cannot be read, or keeps data outside its folder.
    InputError
        If the graph is not one vector in, one vector out.
    """

    def __init__(self, path: Path, dim_in: int | None = None, max_rows: int = 65_536) -> None:
        read_model(path)
        # The path is absolute, since other processes may work in other folders.
        self.path = path.absolute()
        self._session: Any = None
        try:
            source = _only_vector(path, "input", self.session.get_inputs())
            answer = _only_vector(path, "output", self.session.get_outputs())
        except UnicodeDecodeError as error:  # names and dimensions of a damaged file
            raise FormatError(f"{path}: a name is not text: {error}") from None
        self._input, self._output, shape = source.name, answer.name, source.shape
        self._dtype = _DTYPES[source.type]
        # A fixed first dimension is the size of every batch.
        self._rows = shape[0] if isinstance(shape[0], int) and shape[0] > 0 else None
        if self._rows is not None and self._rows > max_rows:
            raise InputError(f"{path}: answers {self._rows:,} rows at a time; {max_rows:,} at most")
        declared = shape[1] if isinstance(shape[1], int) else None
        self.dim_in = agreed_dim_in(str(path), declared, dim_in)

    @property
    def datatype(self) -> str:
        """What its numbers are called in protocols."""
        return "FP32" if self._dtype is np.float32 else "FP64"

    @property
    def facts(self) -> dict[str, str]:
        """What decides its answers."""
        return {"file": hashlib.sha256(self.path.read_bytes()).hexdigest()}

    @property
    def suggested_domain(self) -> Domain | None:
        """Where the scaling that the file begins with says that its inputs are."""
        scaling = read_scaling(self.path)
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
    def session(self) -> Any:
        """The runtime's session, opened on first use."""
        if self._session is None:
            self._session = _open_session(self.path)
        return self._session

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}

    def __call__(self, X: FloatArray) -> Any:
        """Run the file on the rows of ``X``.

        Raises
        ------
        TargetError
            If the runtime fails, or a file of a fixed batch size answers another
            number of rows.
        """
        X = X.astype(self._dtype)
        if self._rows is None:
            return self._run(X)
        return self._run_fixed(X, self._rows)

    def _run(self, X: np.ndarray) -> Any:
        session = self.session
        try:
            return session.run([self._output], {self._input: X})[0]
        # The runtime's exceptions share no base class of their own.
        except Exception as error:  # noqa: BLE001
            raise TargetError(f"{self.path} failed on a query: {first_line(error)}") from None

    def _run_fixed(self, X: np.ndarray, rows: int) -> np.ndarray:
        padded = np.concatenate([X, np.zeros((-len(X) % rows, X.shape[1]), X.dtype)])
        answers = [self._run(padded[i : i + rows]) for i in range(0, len(padded), rows)]
        for answer in answers:
            if np.shape(answer)[:1] != (rows,):
                raise TargetError(
                    f"{self.path} answered shape {np.shape(answer)} to a batch of {rows} rows"
                )
        return np.concatenate(answers)[: len(X)]


def _open_session(path: Path) -> Any:
    import onnxruntime  # noqa: PLC0415 - a second that other targets need not wait

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # One thread adds in the same order on every machine.
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    # The runtime's exceptions share no base class of their own.
    except Exception as error:  # noqa: BLE001
        raise FormatError(f"{path}: ONNX Runtime cannot run it: {first_line(error)}") from None


def _only_vector(path: Path, kind: str, values: list[Any]) -> Any:
    """The one value of this kind, declared as a real vector a row."""
    if len(values) != 1:
        names = ", ".join(value.name for value in values)
        raise InputError(
            f"{path}: has {len(values)} {kind}s ({names}), not one vector: "
            "wrap the model in a Python callable"
        )
    value = values[0]
    if value.type not in _DTYPES:
        raise InputError(f"{path}: {kind} {value.name!r} is a {value.type}, not a real vector")
    if len(value.shape) != 2:
        raise InputError(
            f"{path}: {kind} {value.name!r} has shape {value.shape}, not a vector a row"
        )
    return value
