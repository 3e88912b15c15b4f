"""State dicts of torch: written by torch, read without it and without unpickling.

A ``.pt`` file is a stored zip archive of tensors' bytes and of a pickle that says how to
put them together.  Unpickling runs whatever the pickle says; so does, within limits, a
restricted unpickler.  Here its instructions are followed by a machine that knows those
of a dict of tensors, and no other.
"""

import io
import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from revelu.errors import FormatError, UntrustedError
from revelu.extras import import_extra
from revelu.formats.arrays import MAX_BYTES, Arrays, naming_damage, replace_file
from revelu.formats.names import from_state, to_state
from revelu.numerics.links import Link

# Most bytes of the pickle, which has some 200 for each tensor.
_MAX_PICKLE = 2**20

_DTYPES: dict[str, np.dtype[Any]] = {
    "torch DoubleStorage": np.dtype("<f8"),
    "torch FloatStorage": np.dtype("<f4"),
    "torch HalfStorage": np.dtype("<f2"),
    "torch LongStorage": np.dtype("<i8"),
}
_DICT = "collections OrderedDict"
_TENSOR = "torch._utils _rebuild_tensor_v2"


def dump(path: Path, arrays: Arrays, dtype: np.dtype, head: Link) -> None:
    """Write a state dict, which ``revelu.adapters.torch_modules.ReluNetwork`` loads."""
    torch = library()
    named = to_state(path, arrays, dtype, head)
    buffer = io.BytesIO()
    torch.save({name: torch.tensor(array) for name, array in named.items()}, buffer)
    replace_file(path, buffer.getvalue())


def load(path: Path) -> Arrays:
    """Read a state dict, without torch; nothing that the file says is run.

    Raises
    ------
    FormatError
        If it is damaged, too large, of a later schema, or not a network that revelu wrote.
    UntrustedError
        If it holds other things than tensors by name, which only running it would show.
    """
    return from_state(path, read_state(path))


def read_state(path: Path) -> dict[str, np.ndarray]:
    """Read the tensors of a state dict, or of the one that a checkpoint holds, by name.

    Raises
    ------
    FormatError
        If it is damaged or too large.
    UntrustedError
        If it holds other things than tensors, numbers and text.
    """
    with naming_damage(path, "state dict"), zipfile.ZipFile(path) as archive:
        return _read(path, archive)


def is_script(path: Path) -> bool:
    """Whether a file is a TorchScript program, which has its code in it."""
    if not zipfile.is_zipfile(path):
        return False
    with naming_damage(path, "archive"), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return any(name.endswith("/constants.pkl") for name in names) and any(
        "/code/" in name for name in names
    )


def library() -> Any:
    """Return torch, which writing needs."""
    return import_extra("torch", ".pt files are written by torch", "torch")


def _read(path: Path, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    entries = archive.infolist()
    # torch stores its entries uncompressed, so that no more is read than the file holds.
    if any(
        e.compress_type != zipfile.ZIP_STORED or e.compress_size != e.file_size for e in entries
    ):
        raise FormatError(f"{path}: a compressed archive, which torch does not write")
    if sum(e.file_size for e in entries) > MAX_BYTES:
        raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
    pickles = [e for e in entries if e.filename.endswith("/data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > _MAX_PICKLE:
        raise FormatError(f"{path}: not a state dict of tensors")
    folder = pickles[0].filename.removesuffix("data.pkl")
    if archive.read(f"{folder}byteorder") != b"little":
        raise FormatError(f"{path}: not in little-endian order")
    found = _Machine(path, lambda key: archive.read(f"{folder}data/{key}")).run(
        archive.read(pickles[0])
    )
    if not _is_state(found) and isinstance(found, dict):
        states = [value for value in found.values() if value and _is_state(value)]
        # A checkpoint has one beside numbers, text and what its optimiser keeps.
        found = states[0] if len(states) == 1 else None
    if not _is_state(found):
        raise UntrustedError(_Machine.refusal(path))
    return dict(found)


def _is_state(found: Any) -> bool:
    return isinstance(found, dict) and all(
        isinstance(key, str) and isinstance(value, np.ndarray) for key, value in found.items()
    )


class _Name(str):
    """A class or function that the pickle names; never looked up."""

    __slots__ = ()


class _Storage(NamedTuple):
    """The numbers of one tensor or several."""

    dtype: np.dtype
    content: bytes


class _Machine:
    """Follows the instructions of a pickled dict of tensors.

    Parameters
    ----------
    read : callable, str -> bytes
        Gives the bytes of a storage.
    """

    def __init__(self, path: Path, read: Callable[[str], bytes]) -> None:
        self.path, self.read = path, read
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[object, Any] = {}

    @staticmethod
    def refusal(path: Path) -> str:
        """What is said of a file that holds more than tensors."""
        return f"{path}: holds more than a state dict, and opening it executes code"

    def run(self, pickle: bytes) -> Any:
        """Return what the pickle describes."""
        for opcode, argument, _ in pickletools.genops(pickle):
            name = opcode.name
            if name == "STOP":
                return self.stack.pop()
            if name in {"PROTO", "FRAME"}:
                continue
            if name in {"BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}:
                self.stack.append(argument)
            elif name == "GLOBAL":
                self.stack.append(_Name(argument))
            elif name in {"BINPUT", "LONG_BINPUT"}:
                self.memo[argument] = self.stack[-1]
            elif name in {"BINGET", "LONG_BINGET"}:
                self.stack.append(self.memo[argument])
            elif name == "MARK":
                self.marks.append(len(self.stack))
            elif name in {"TUPLE1", "TUPLE2", "TUPLE3"}:
                self._tuple(len(self.stack) - int(name[-1]))
            elif name == "TUPLE":
                self._tuple(self.marks.pop())
            elif name == "SETITEMS":
                self._set_items(self.marks.pop())
            elif name == "SETITEM":
                self._set_items(len(self.stack) - 2)
            elif name == "APPENDS":
                self._append(self.marks.pop())
            elif name == "APPEND":
                self._append(len(self.stack) - 1)
            else:
                self._other(name)
        raise FormatError(f"{self.path}: a pickle without an end")

    def _other(self, name: str) -> None:
        """The instructions that make something, or end with it."""
        makers: dict[str, Callable[[], Any]] = {
            "EMPTY_DICT": dict,
            "EMPTY_LIST": list,
            "EMPTY_TUPLE": tuple,
            "NONE": lambda: None,
            "NEWFALSE": lambda: False,
            "NEWTRUE": lambda: True,
            "BINPERSID": lambda: self._storage(self.stack.pop()),
            "REDUCE": lambda: self._called(self.stack.pop(), self.stack.pop()),
            # torch adds the version of its module to a dict of tensors in this way.
            "BUILD": lambda: (self.stack.pop(), self.stack.pop())[1],
        }
        if name not in makers:
            self._refuse()
        self.stack.append(makers[name]())

    def _refuse(self) -> NoReturn:
        raise UntrustedError(self.refusal(self.path))

    def _tuple(self, start: int) -> None:
        if start < 0:
            raise FormatError(f"{self.path}: a damaged pickle")
        self.stack[start:] = [tuple(self.stack[start:])]

    def _set_items(self, start: int) -> None:
        items = self.stack[start:]
        del self.stack[start:]
        target = self.stack[-1]
        if not isinstance(target, dict) or not all(isinstance(k, str | int) for k in items[::2]):
            self._refuse()
        target.update(zip(items[::2], items[1::2], strict=True))

    def _append(self, start: int) -> None:
        items = self.stack[start:]
        del self.stack[start:]
        if not isinstance(self.stack[-1], list):
            self._refuse()
        self.stack[-1].extend(items)

    def _storage(self, described: Any) -> _Storage:
        kind, dtype, key, _, n = described
        if kind != "storage" or not isinstance(dtype, _Name):
            self._refuse()
        if dtype not in _DTYPES:
            raise FormatError(f"{self.path}: {dtype} is not float64 or float32")
        content = self.read(key)
        if len(content) != n * _DTYPES[dtype].itemsize:
            raise FormatError(f"{self.path}: a tensor declares what the file does not hold")
        return _Storage(_DTYPES[dtype], content)

    def _called(self, arguments: Any, function: Any) -> Any:
        if not isinstance(function, _Name):
            self._refuse()
        if function == _DICT and arguments == ():
            return {}
        if function != _TENSOR:
            self._refuse()
        storage, offset, shape, strides, *_ = arguments
        size, content = storage.dtype.itemsize, storage.content
        n = int(np.prod(shape, dtype=object))
        if n * size > len(content) or min(shape, default=0) < 0 or min(strides, default=0) < 0:
            raise FormatError(f"{self.path}: a tensor declares what the file does not hold")
        if not n:
            return np.empty(shape, storage.dtype)
        # NumPy checks that all of it lies in the content.
        steps = [s * size for s in strides]
        return np.ndarray(shape, storage.dtype, content, offset * size, steps)
