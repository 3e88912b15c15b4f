"""Tensors of the Open Inference Protocol (version 2), as bodies of requests and answers.

A body is a JSON object, whose tensors carry their numbers in it; or, by the protocol's
extension for binary tensors, the JSON object followed by the numbers, little-endian and
row by row, in the order of the tensors.  A header says how long the JSON part is then.
"""

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from revelu.errors import ReveluError

JSON_LENGTH = "Inference-Header-Content-Length"
BINARY_EXTENSION = "binary_tensor_data"

DTYPES = {
    "BOOL": "?",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}


class ProtocolError(ReveluError):
    """A body that is none of the protocol; the message says what is wrong with it."""


@dataclass(frozen=True)
class Tensor:
    """Numbers with a name.

    Attributes
    ----------
    name : str
    datatype : str
        A key of ``DTYPES``.
    values : ndarray
        Of the tensor's shape.
    """

    name: str
    datatype: str
    values: np.ndarray


@dataclass(frozen=True)
class Body:
    """A request or an answer.

    Attributes
    ----------
    headers : dict of str to str
    """

    content: bytes
    headers: dict[str, str]


def encode(key: str, tensors: list[Tensor], fields: dict[str, Any], *, binary: bool) -> Body:
    """Write tensors.

    Parameters
    ----------
    key : {"inputs", "outputs"}
    fields : dict
        What stands beside them in the JSON object.
    binary : bool
        Put the numbers behind the JSON object.
    """
    described, tails = [], []
    for tensor in tensors:
        values = np.ascontiguousarray(tensor.values, dtype=DTYPES[tensor.datatype])
        one: dict[str, Any] = {
            "name": tensor.name,
            "datatype": tensor.datatype,
            "shape": list(values.shape),
        }
        if binary:
            one["parameters"] = {"binary_data_size": values.nbytes}
            tails.append(values.tobytes())
        else:
            one["data"] = values.ravel().tolist()
        described.append(one)
    text = json.dumps({**fields, key: described}, separators=(",", ":")).encode()
    if not binary:
        return Body(text, {"Content-Type": "application/json"})
    headers = {"Content-Type": "application/octet-stream", JSON_LENGTH: str(len(text))}
    return Body(b"".join([text, *tails]), headers)


def decode(
    key: str, content: bytes, json_length: str | None
) -> tuple[dict[str, Any], list[Tensor]]:
    """Read a body.

    Parameters
    ----------
    key : {"inputs", "outputs"}
    json_length : str or None
        The header that says how long the JSON part is, where there is one.

    Returns
    -------
    document : dict
        The JSON object.
    tensors : list of Tensor

    Raises
    ------
    ProtocolError
    """
    end = len(content)
    if json_length is not None:
        length = whole_number_of(json_length)
        if length is None or length > end:
            raise ProtocolError(f"{JSON_LENGTH} is {json_length[:20]!r} of {end} bytes")
        end = length
    document = read_object(content[:end])
    described = document.get(key)
    if not isinstance(described, list):
        raise ProtocolError(f"there is no list of {key}")
    tail = memoryview(content)[end:]
    tensors = []
    for one in described:
        tensor, tail = _tensor(one, tail)
        tensors.append(tensor)
    if len(tail):
        raise ProtocolError(f"{len(tail)} bytes belong to no tensor")
    return document, tensors


def read_object(content: bytes) -> dict[str, Any]:
    """Read a JSON object.

    Raises
    ------
    ProtocolError
        If it is none.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the body is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise ProtocolError("the body is no JSON object")
    return document


def whole_number_of(header: str) -> int | None:
    """Read a header that counts bytes; None where it is no such number."""
    # Python refuses to read numbers of thousands of digits; no body has 1e18 bytes.
    is_number = header.isascii() and header.isdigit() and len(header) <= 18
    return int(header) if is_number else None


def _tensor(one: Any, tail: memoryview) -> tuple[Tensor, memoryview]:
    """Read a tensor, and what is left of the bytes behind the JSON object."""
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        raise ProtocolError("a tensor has no name")
    name, datatype, shape = one["name"], one.get("datatype"), one.get("shape")
    if not isinstance(datatype, str) or datatype not in DTYPES:
        raise ProtocolError(f"tensor {name!r} has datatype {datatype!r}, no numbers")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ProtocolError(f"tensor {name!r} has shape {shape!r}")
    dtype, n_values = np.dtype(DTYPES[datatype]), math.prod(shape)
    parameters = one.get("parameters")
    size = parameters.get("binary_data_size") if isinstance(parameters, dict) else None
    if size is not None:
        if type(size) is not int or size != n_values * dtype.itemsize or size > len(tail):
            raise ProtocolError(
                f"tensor {name!r} of shape {shape} in {datatype} has {size!r} bytes, and "
                f"{len(tail)} follow"
            )
        values = np.frombuffer(tail[:size], dtype=dtype)
        return Tensor(name, datatype, _shaped(name, values, shape)), tail[size:]
    values = _numbers(name, one.get("data"))
    if values.size != n_values:
        raise ProtocolError(f"tensor {name!r} of shape {shape} has {values.size} numbers")
    return Tensor(name, datatype, _shaped(name, _cast(name, values, dtype), shape)), tail


def _shaped(name: str, values: np.ndarray, shape: list[int]) -> np.ndarray:
    try:
        return values.reshape(shape)
    except ValueError:  # too many axes; or none of its numbers, along an axis too long
        raise ProtocolError(f"tensor {name!r} has a shape that no array has") from None


def _cast(name: str, values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The numbers in the type declared: rounded to floats, but never to whole numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
    # 300 is no UINT8, and becomes 44.
    if dtype.kind != "f" and not (cast == values).all():
        raise ProtocolError(f"tensor {name!r} holds numbers that its datatype has not")
    return cast


def _numbers(name: str, data: Any) -> np.ndarray:
    """The numbers of a list, or of lists of lists."""
    if not isinstance(data, list):
        raise ProtocolError(f"tensor {name!r} has no data")
    try:
        values = np.asarray(data)
    except ValueError:
        values = np.asarray(None)
    if values.dtype.kind not in "biuf":
        raise ProtocolError(f"tensor {name!r} holds what is not numbers")
    return values.ravel()
