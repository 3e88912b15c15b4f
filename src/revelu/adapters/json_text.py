"""Numbers as JSON text, and back to the bit.

orjson writes and reads the same shortest decimals as the standard library, some ten times as fast:
many rows of many numbers take longer to write down than to compute.
"""

import importlib
import json
from functools import cache
from typing import Any

import numpy as np

from revelu.types import FloatArray


@cache
def _orjson() -> Any:
    """The library, which comes with the extra http; None where it is not installed."""
    try:
        return importlib.import_module("orjson")
    except ImportError:
        return None


def write_numbers(X: FloatArray | list[Any]) -> str:
    """Return nested lists of the numbers of ``X``, which are finite."""
    orjson = _orjson()
    if isinstance(X, list) or orjson is None:
        rows = X if isinstance(X, list) else X.tolist()
        return json.dumps(rows, separators=(",", ":"))
    text: bytes = orjson.dumps(np.ascontiguousarray(X), option=orjson.OPT_SERIALIZE_NUMPY)
    return text.decode()


def read_document(content: bytes) -> Any:
    """Return what a body of JSON holds, NaN and infinity included.

    Raises
    ------
    ValueError, RecursionError
        If it is none.
    """
    orjson = _orjson()
    if orjson is not None:
        try:
            return orjson.loads(content)
        except ValueError:
            pass  # the standard library reads NaN, too, and has the better message
    return json.loads(content)
