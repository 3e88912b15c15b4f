"""A model behind an address, asked by the Open Inference Protocol (version 2)."""

import itertools
import re
from dataclasses import dataclass
from math import prod
from typing import Any
from urllib.parse import unquote

import numpy as np

from revelu.adapters.connection import Connection
from revelu.adapters.credentials import shown
from revelu.adapters.error_pages import error_of, says_too_many
from revelu.adapters.http_client import Client, TooLargeError
from revelu.adapters.open_inference import (
    BINARY_EXTENSION,
    DTYPES,
    JSON_LENGTH,
    ProtocolError,
    Tensor,
    decode,
    encode,
    read_object,
)
from revelu.adapters.patience import Patience
from revelu.adapters.portions import Portions
from revelu.errors import InputError, TargetError, UnansweredError
from revelu.formats.onnx_frame import Frame
from revelu.oracle import agreed_dim_in
from revelu.oracle.limits import limits_said
from revelu.types import FloatArray

_MODEL = re.compile(r"(?P<base>https?://[^/]+.*)/v2/models/(?P<model>[^/]+)(?:/versions/[^/]+)?")

# Name and datatype of a tensor where the server does not give them.
_NAME, _DATATYPE = "input-0", "FP64"

_REAL = ("FP64", "FP32")

_counter = itertools.count(1)


@dataclass(frozen=True)
class _Input:
    """The tensor that a model takes.

    Attributes
    ----------
    name, datatype : str
    row : tuple of int
        Shape of one row.
    n_rows : int or None
        Rows of every request, where the model takes no other number.
    """

    name: str
    datatype: str
    row: tuple[int, ...]
    n_rows: int | None


class HttpTarget:
    """A served model that answers ``(n, d) -> (n, k)``.

    Parameters
    ----------
    url : str
        ``http(s)://HOST[:PORT]/v2/models/NAME``.
    dim_in : int, optional
        Number of inputs, where the server does not say.
    input_name, output_name : str, optional
        The tensors to ask and to read, where the server does not say or there are several
        outputs.
    rate : str, optional
        Most requests, such as ``"50/s"``.
    connection : Connection, optional
        Headers and certificates.
    timeout : float
        Seconds that a request may take in all, from the first byte sent to the last one read.
    retry_for : str or float, optional
        Seconds that a service is waited for which is away, such as ``"60s"``; without it a minute,
        once it has replied.
    attempts : int
        Times that a request is sent whose answers are cut short on the way.

    Attributes
    ----------
    client : Client
        What it is asked through.
    facts : dict of str to str
        What decides the answers, besides the address.
    identity : dict of str to str
        The model's name, and its version where it is known.
    frame : Frame or None
        Names, shapes and types of input and output, where the server says them.

    Raises
    ------
    InputError
        If the address is none, or something has to be given that the server does not say.
    TargetError
        If the server cannot be reached, does not know the model, or has one that takes
        something else than one real vector.
    """

    def __init__(
        self,
        url: str,
        dim_in: int | None = None,
        *,
        input_name: str | None = None,
        output_name: str | None = None,
        rate: str | None = None,
        connection: Connection | None = None,
        timeout: float = 60.0,
        retry_for: str | float | None = None,
        attempts: int = 3,
    ) -> None:
        # The client comes first: it refuses addresses with a password, which no message may show.
        self.client = Client(url, rate, timeout, connection, patience=Patience(retry_for))
        self.url, self._attempts = self.client.address.base.rstrip("/"), attempts
        found = _MODEL.fullmatch(self.url)
        if found is None:
            raise InputError(f"{shown(self.url)}: a served model is http(s)://HOST/v2/models/NAME")
        metadata = self._metadata(unquote(found["model"]), said=dim_in is not None)
        self.identity = _identity(unquote(found["model"]), self.url, metadata)
        self._input = _input(self.url, metadata, dim_in, input_name)
        self._output = _output(self.url, metadata, output_name)
        self.frame = _frame(self._input, metadata, self._output)
        self._is_binary = self._takes_binary(f"{found['base']}/v2")
        self._portions, self._has_answered = Portions(self._input.n_rows), False
        self.dim_in = prod(self._input.row)
        self.facts = {
            "input": f"{self._input.name} {self._input.datatype} {list(self._input.row)}",
            "output": self._output or "the only one",
            **self.client.address.facts,
        }

    def __call__(self, X: FloatArray) -> np.ndarray:
        """Ask for the rows of ``X (n, d)``, shape (n, k).

        Raises
        ------
        TargetError
            If there is no answer, or one to something else.
        """
        return self._portions.ask(self._infer, X)

    def _infer(self, X: FloatArray) -> np.ndarray:
        n = self._input.n_rows or len(X)
        rows = np.zeros((n, *self._input.row))
        rows[: len(X)] = X.reshape(len(X), *self._input.row)
        tensor = Tensor(self._input.name, self._input.datatype, rows)
        number = f"{next(_counter)}"
        body = encode("inputs", [tensor], self._fields(number), binary=self._is_binary)
        for attempt in range(1, self._attempts + 1):
            reply = self.client.request(
                "POST", f"{self.url}/infer", body.content, body.headers, n_rows=len(X)
            )
            if reply.status >= 400:
                why = error_of(reply.content)
                said = f"{self.url} answers {reply.status}: {why}"
                if reply.status in {400, 422} and len(X) > 1 and says_too_many(why):
                    raise TooLargeError(said)
                is_of_rows = reply.status in {400, 422} and self._has_answered
                if is_of_rows and attempt < self._attempts and not limits_said(why):
                    continue  # it may be one of now and then
                raise (UnansweredError if is_of_rows else TargetError)(said)
            try:
                json_length = reply.headers.get(JSON_LENGTH.lower())
                document, tensors = decode("outputs", reply.content, json_length)
                # What is not finite is asked for again, and then for the oracle to name.
                if attempt == self._attempts or all(_is_finite(t) for t in tensors):
                    break
            except ProtocolError as error:
                if attempt == self._attempts:
                    raise TargetError(f"{self.url} answered nonsense: {shown(error)}") from None
        if document.get("id", number) not in (number, ""):
            raise TargetError(f"{self.url} answered another request than it was asked")
        self._has_answered = True
        return self._rows_of(tensors, n)[: len(X)]

    def _fields(self, number: str) -> dict[str, Any]:
        fields: dict[str, Any] = {"id": number}
        if self._output is not None:
            parameters = {"parameters": {"binary_data": True}} if self._is_binary else {}
            fields["outputs"] = [{"name": self._output, **parameters}]
        elif self._is_binary:
            fields["parameters"] = {"binary_data_output": True}
        return fields

    def _rows_of(self, tensors: list[Tensor], n: int) -> np.ndarray:
        """The answer among the tensors, one row a query."""
        named = [t for t in tensors if self._output is None or t.name == self._output]
        if len(named) != 1:
            names = ", ".join(shown(tensor.name) for tensor in tensors) or "none"
            wanted = "one output" if self._output is None else f"the output {self._output}"
            raise TargetError(f"{self.url} answers {names}, not {wanted}: give output_name")
        values = named[0].values
        if values.shape[:1] != (n,):
            raise TargetError(f"{self.url} answered shape {values.shape} to {n} queries")
        return values.reshape(n, -1)

    def _metadata(self, model: str, *, said: bool) -> dict[str, Any]:
        """What the server says of the model; nothing, where the user does."""
        reply = self.client.request("GET", self.url, patient=False)
        if reply.status < 400:
            try:
                return read_object(reply.content)
            except ProtocolError as error:
                raise TargetError(f"{self.url}: is no served model: {shown(error)}") from None
        if said and reply.status in {404, 405}:
            return {}
        raise TargetError(
            f"{self.url}: there is no model {shown(model)}: {error_of(reply.content)}"
        )

    def _takes_binary(self, url: str) -> bool:
        reply = self.client.request("GET", url, patient=False)
        try:
            extensions = read_object(reply.content).get("extensions")
        except ProtocolError:
            return False
        if reply.status >= 400 or not isinstance(extensions, list):
            return False
        return BINARY_EXTENSION in extensions


def _is_finite(tensor: Tensor) -> bool:
    values = tensor.values
    return values.dtype.kind != "f" or bool(np.isfinite(values).all())


def _input(
    url: str, metadata: dict[str, Any], dim_in: int | None, input_name: str | None
) -> _Input:
    """The one real vector that the model takes."""
    inputs = _described(url, metadata, "inputs")
    if not inputs:
        return _Input(input_name or _NAME, _DATATYPE, (agreed_dim_in(url, None, dim_in),), None)
    names = [shown(one["name"]) for one in inputs]
    if len(inputs) > 1:
        raise TargetError(f"{url}: takes {', '.join(names)}, not one vector")
    name, datatype, shape = names[0], inputs[0].get("datatype"), inputs[0].get("shape")
    if input_name not in {None, name}:
        raise TargetError(f"{url}: its input is {name}, not {input_name}")
    if datatype not in _REAL:
        raise TargetError(f"{url}: input {name} is {shown(datatype)}, not FP64 or FP32")
    if not isinstance(shape, list) or not all(type(n) is int for n in shape) or len(shape) < 2:
        raise TargetError(f"{url}: input {name} has shape {shown(shape)}, not a vector a row")
    row = tuple(shape[1:])
    if len(row) == 1 and row[0] < 1:
        row = (agreed_dim_in(url, None, dim_in),)
    if min(row) < 1:
        raise TargetError(f"{url}: input {name} has shape {shape}, whose size is not said")
    agreed_dim_in(url, prod(row), dim_in)
    return _Input(inputs[0]["name"], datatype, row, shape[0] if shape[0] > 0 else None)


def _identity(model: str, url: str, metadata: dict[str, Any]) -> dict[str, str]:
    """Name and version of a model, as its address or its metadata say."""
    said = metadata.get("versions")
    listed = [f"{v}" for v in said if isinstance(v, str | int)] if isinstance(said, list) else []
    named = url.rpartition("/versions/")
    versions = [unquote(named[2])] if named[1] else listed
    found = {"model": shown(metadata.get("name") or model)}
    return found | ({"version": shown(", ".join(versions))} if versions else {})


def _output(url: str, metadata: dict[str, Any], output_name: str | None) -> str | None:
    """The name of the tensor to read; None where there is but one."""
    names = [one["name"] for one in _described(url, metadata, "outputs")]
    listed = ", ".join(map(shown, names))
    if output_name is None and len(names) > 1:
        raise InputError(f"{url} has the outputs {listed}: give output_name")
    if output_name is not None and names and output_name not in names:
        raise InputError(f"{url} has the outputs {listed}, not the output_name {output_name}")
    return output_name


def _frame(taken: _Input, metadata: dict[str, Any], output_name: str | None) -> Frame | None:
    """What a file is to have that stands in the model's place; None where the server does not say.

    A file has one row of numbers an answer, of a type that ONNX knows.
    """
    found = [
        one
        for one in metadata.get("outputs") or []
        if output_name in {None, one["name"]} and one.get("datatype") in _REAL
    ]
    if not metadata.get("inputs") or len(found) != 1:
        return None
    (output,) = found
    shape = output.get("shape")
    if not isinstance(shape, list) or len(shape) != 2:
        return None
    kinds = np.dtype(DTYPES[taken.datatype]), np.dtype(DTYPES[output["datatype"]])
    return Frame(taken.name, taken.row, kinds[0], output["name"], kinds[1])


def _described(url: str, metadata: dict[str, Any], key: str) -> list[dict[str, Any]]:
    tensors = metadata.get(key) or []
    is_list = isinstance(tensors, list)
    if not is_list or not all(
        isinstance(t, dict) and isinstance(t.get("name"), str) for t in tensors
    ):
        raise TargetError(f"{url}: describes its {key} in no way of the protocol")
    return list(tensors)
