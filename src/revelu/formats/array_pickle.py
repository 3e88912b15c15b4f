"""Pickles of NumPy and joblib, read into arrays and records; nothing that they say is run.

joblib writes the numbers of an array behind the instructions that describe it, and may pack all of
it; a pickle has them among its instructions.  Both are read where they lie, and no array is larger
than what the file holds.
"""

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import DamagedError, FormatError
from revelu.formats.pickled import Machine, Name, Record

__all__ = ["ArrayMachine", "unpacked", "value_of"]

# Names of NumPy 1 and 2, and of Python 2 and 3, by what they do here.
_ALIKE = {
    "numpy.core.": "numpy._core.",
    "numpy._core.": "numpy._core.",
    "__builtin__ ": "builtins ",
    "copy_reg ": "copyreg ",
}
_ARRAY = "numpy._core.multiarray _reconstruct"
_BUFFER = "numpy._core.numeric _frombuffer"
_SCALAR = "numpy._core.multiarray scalar"
_DTYPE = "numpy dtype"
_OBJECT = "copyreg _reconstructor"
_ENCODE = "_codecs encode"
_WRAPPERS = (
    "joblib.numpy_pickle NumpyArrayWrapper",
    "sklearn.externals.joblib.numpy_pickle NumpyArrayWrapper",
)
_HOLDERS: dict[str, Any] = {
    "collections OrderedDict": dict,
    "collections defaultdict": dict,
    "builtins dict": dict,
    "builtins set": set,
    "builtins frozenset": frozenset,
    "builtins list": list,
    "builtins bytes": bytes,
    "builtins bytearray": bytes,
}
_KINDS = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool_")
_TYPES = {
    *(f"numpy {kind}" for kind in (*_KINDS, "bool", "float", "int", "str_", "object_", "ndarray")),
    *(f"builtins {kind}" for kind in ("object", "float", "int", "str", "bool", "long", "unicode")),
}
# Random numbers of a model, and figures of a search: nothing is read of them.
_INERT = {
    "numpy.ma.core _mareconstruct",
    "numpy.ma.core MaskedArray",
    "numpy.ma MaskedArray",
    "numpy.random __RandomState_ctor",
    "numpy.random.mtrand RandomState",
    "numpy.random._pickle __randomstate_ctor",
    "numpy.random._pickle __bit_generator_ctor",
    "numpy.random._mt19937 MT19937",
    "numpy.random.bit_generator SeedSequence",
    "numpy.random.bit_generator __pyx_unpickle_SeedSequence",
    "numpy.random._bit_generator SeedSequence",
}
_KNOWN = {
    *(_ARRAY, _BUFFER, _SCALAR, _DTYPE, _OBJECT, _ENCODE, "builtins slice"),
    *_WRAPPERS,
    *_HOLDERS,
    *_TYPES,
    *_INERT,
}

_CODE = re.compile(r"[<>|=]?(?:([biuf])(\d{1,2})|([OUS])(\d{0,5}))")


def unpacked(path: Path, content: bytes, least: int = 2**27, times: int = 4) -> bytes:
    """Return what a file holds that joblib, or gzip, may have packed.

    Parameters
    ----------
    least : int
        Bytes that any file may unpack to.
    times : int
        And how many times its own size, where that is more: weights hardly pack at all.

    Raises
    ------
    FormatError
        If it unpacks to more, or is packed by what Python does not have.
    """
    most = max(least, times * len(content))
    if content[:4] == b"\x04\x22\x4d\x18":
        raise FormatError(f"{path}: packed by lz4, which Python does not have: unpack it")
    if content[:2] == b"ZF":
        raise FormatError(f"{path}: of joblib before 0.10: dump it anew with a later one")
    unpackers: tuple[tuple[bytes, Any], ...] = (
        (b"\x1f\x8b", lambda: zlib.decompressobj(wbits=31)),
        (b"\x78", zlib.decompressobj),
        (b"BZ", bz2.BZ2Decompressor),
        (b"\xfd7zXZ", lambda: lzma.LZMADecompressor(memlimit=most)),
        (b"\x5d\x00", lambda: lzma.LZMADecompressor(memlimit=most)),
    )
    unpacker = next((make() for magic, make in unpackers if content.startswith(magic)), None)
    if unpacker is None:
        return content
    found: bytes = unpacker.decompress(content, most + 1)
    if len(found) > most:
        raise FormatError(f"{path}: unpacks to over {most:,} bytes")
    if not unpacker.eof:
        raise DamagedError(f"{path}: packed, and cut short")
    return found


@dataclass(eq=False)
class _Dtype:
    """A type of numbers, whose order of bytes comes later."""

    code: str
    order: str = "="

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code.lstrip("<>|="))


@dataclass(eq=False)
class _Array:
    """An array whose shape and numbers come later."""

    value: Any = None


class ArrayMachine(Machine):
    """Follows the instructions of a pickle with arrays.

    Parameters
    ----------
    classes : mapping of str to set of str
        The classes of which records are made, by the first parts of their modules.
    """

    def __init__(self, path: Path, content: bytes, classes: Mapping[str, frozenset[str]]) -> None:
        super().__init__(path, content)
        self.classes = classes

    def knows(self, name: Name) -> bool:
        """Whether a name is NumPy's, Python's or joblib's, or that of a class on the list."""
        if _alike(name) in _KNOWN:
            return True
        module, _, kind = name.partition(" ")
        family = ".".join(part.lstrip("_") for part in module.split(".")[:2])
        return kind.removeprefix("__pyx_unpickle_") in self.classes.get(family, ())

    def called(self, name: Name, arguments: tuple[Any, ...]) -> Any:
        """Return an array or a value that is made, or the record of an object."""
        match _alike(name):
            case held if held in _HOLDERS:
                return self._holder(_HOLDERS[held], arguments)
            case "numpy._core.multiarray _reconstruct":
                return _Array()
            case "numpy dtype":
                return _dtype(self, arguments)
            case "numpy._core.multiarray scalar":
                dtype, data = arguments
                return self._numbers(_as_dtype(self, dtype), data, (1,), "C")[0].item()
            case "numpy._core.numeric _frombuffer":
                data, dtype, shape, order = arguments
                return self._numbers(_as_dtype(self, dtype), data, shape, order)
            case "copyreg _reconstructor":
                if not arguments or not isinstance(arguments[0], Name):
                    self.damaged()
                return Record(arguments[0])
            case "_codecs encode":  # how Python 3 writes bytes for Python 2
                if len(arguments) != 2 or arguments[1] not in {"latin1", "latin-1"}:
                    self.damaged()
                return self._encoded(arguments[0])
        return Record(name, arguments)

    def _holder(self, kind: Any, arguments: tuple[Any, ...]) -> Any:
        """A list, dict, set or bytes with what it is made of."""
        items = [a for a in arguments if not isinstance(a, Name | None)]  # of a default, too
        if not items:
            return kind()
        if kind is bytes:
            text, *_ = items
            return self._encoded(text) if isinstance(text, str) else self._bytes(text)
        if not isinstance(items[0], list | tuple):
            self.damaged()
        self.copy(len(items[0]), each=100)
        if kind is dict:
            return self._pairs(items[0])
        if kind is not list:
            self._check_keys(list(items[0]))
        return kind(items[0])

    def _bytes(self, found: Any) -> bytes:
        if not isinstance(found, bytes | bytearray):
            self.damaged()
        self.copy(len(found), each=1)
        return bytes(found)

    def _encoded(self, text: Any) -> bytes:
        if not isinstance(text, str):
            self.damaged()
        self.copy(len(text), each=1)
        return text.encode("latin-1")

    def _pairs(self, items: Any) -> dict[Any, Any]:
        pairs = [tuple(pair) for pair in items if isinstance(pair, list | tuple)]
        if len(pairs) != len(items) or any(len(pair) != 2 for pair in pairs):
            self.damaged()
        self._check_keys([key for key, _ in pairs])
        return dict(pairs)

    def built(self, found: Any, state: Any) -> Any:
        """Give an array its numbers, and an object its attributes."""
        if isinstance(found, _Dtype):
            order = state[1]
            if order not in {"<", ">", "|", "="} or any(part is not None for part in state[2:5]):
                self.damaged()  # of fields, or made of other types
            found.order = order
            return found
        if isinstance(found, _Array):
            _, shape, dtype, is_fortran, data = state
            order = "F" if is_fortran is True or is_fortran == 1 else "C"
            found.value = self._numbers(_as_dtype(self, dtype), data, shape, order)
            return found
        found = super().built(found, state)
        return self._behind(found) if _alike(found.name) in _WRAPPERS else found

    def _behind(self, wrapper: Record) -> Any:
        """The array whose numbers follow here."""
        dtype = _as_dtype(self, wrapper.get("dtype"))
        if dtype.hasobject:  # a pickle of its own
            inner = ArrayMachine(self.path, self.content, self.classes)
            inner.stream.seek(self.stream.tell())
            inner.n_steps, inner.n_keys = self.n_steps, self.n_keys
            inner.n_copied = self.n_copied
            found = inner.run()
            self.stream.seek(inner.stream.tell())
            self.n_steps, self.n_keys = inner.n_steps, inner.n_keys
            self.n_copied = inner.n_copied
            return found
        if wrapper.get("numpy_array_alignment_bytes") is not None:
            self.stream.seek(self.stream.read(1)[0], io.SEEK_CUR)
        start, shape = self.stream.tell(), _shape(self, wrapper.get("shape"))
        stop = start + prod(shape) * dtype.itemsize
        if stop > len(self.content):
            self.damaged()
        self.stream.seek(stop)
        data = memoryview(self.content)[start:stop]
        return self._numbers(dtype, data, shape, wrapper.get("order"))

    def _numbers(self, dtype: np.dtype[Any], data: Any, shape: Any, order: Any) -> np.ndarray:
        """The array of some bytes, or of a list of objects."""
        shape = _shape(self, shape)
        if order not in {"C", "F"}:
            self.damaged()
        if dtype.hasobject:
            if not isinstance(data, list) or len(data) != prod(shape):
                self.damaged()
            self.copy(len(data), each=8)
            found = np.empty(len(data), object)
            found[:] = data
            return found.reshape(shape, order=order)
        data = self._encoded(data) if isinstance(data, str) else data
        if not isinstance(data, bytes | bytearray | memoryview):
            self.damaged()
        if len(data) != prod(shape) * dtype.itemsize:
            self.damaged()
        return np.frombuffer(data, dtype).reshape(shape, order=order)


def value_of(found: Any) -> Any:
    """Return an array for what stands for it, and anything else as it is."""
    return found.value if isinstance(found, _Array) else found


def _alike(name: str) -> str:
    """One name for what NumPy 1 and 2, or Python 2 and 3, call differently."""
    for prefix, one in _ALIKE.items():
        if name.startswith(prefix):
            return one + name.removeprefix(prefix)
    return name


def _dtype(machine: Machine, arguments: tuple[Any, ...]) -> _Dtype:
    code = arguments[0] if arguments else None
    code = code.decode("latin-1") if isinstance(code, bytes) else code
    found = _CODE.fullmatch(code) if isinstance(code, str) else None
    if found is None or (found[1] and found[2] not in {"1", "2", "4", "8"}):
        machine.damaged()
    return _Dtype(f"{code}")


def _as_dtype(machine: Machine, found: Any) -> np.dtype[Any]:
    if not isinstance(found, _Dtype):
        machine.damaged()
    return found.dtype


def _shape(machine: Machine, found: Any) -> tuple[int, ...]:
    if not isinstance(found, tuple) or len(found) > 32:
        machine.damaged()
    if not all(isinstance(n, int) and 0 <= n < 2**62 for n in found):
        machine.damaged()
    return found
