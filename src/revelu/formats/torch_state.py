"""State dicts of torch: written by torch, read without it and without unpickling.

A ``.pt`` file is a stored zip archive of tensors' bytes and of a pickle that says how to
put them together.  Unpickling runs whatever the pickle says; so does, within limits, a
restricted unpickler.  Here its instructions are followed by a machine that knows those
of a dict of tensors, and no other.
"""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from revelu.errors import FormatError, UntrustedError
from revelu.extras import import_extra
from revelu.formats.arrays import MAX_BYTES, Arrays, naming_damage, replace_file
from revelu.formats.names import from_state, to_state
from revelu.formats.pickled import Machine, Name
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


def read_state_in(path: Path, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """Read the tensors of a state dict from an archive that is open; errors name ``path``.

    Errors are those of :func:`read_state`.
    """
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
    pickle = archive.read(pickles[0])
    found = _Machine(path, pickle, lambda key: archive.read(f"{folder}data/{key}")).run()
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


class _Storage(NamedTuple):
    """The numbers of one tensor or several."""

    dtype: np.dtype
    content: bytes


class _Machine(Machine):
    """Follows the instructions of a pickled dict of tensors.

    Parameters
    ----------
    read : callable, str -> bytes
        Gives the bytes of a storage.
    """

    def __init__(self, path: Path, content: bytes, read: Callable[[str], bytes]) -> None:
        super().__init__(path, content)
        self.read = read
        # A pickle may name one storage any number of times, as tied weights do.
        self.contents: dict[str, bytes] = {}

    @staticmethod
    def refusal(path: Path) -> str:
        """What is said of a file that holds more than tensors."""
        return f"{path}: holds more than a state dict, and opening it executes code"

    def knows(self, name: Name) -> bool:
        """Whether a name is that of a dict, of a tensor, or of one of torch's classes."""
        return name in {_DICT, _TENSOR} or name.startswith("torch ")

    def refuse(self, _: str) -> NoReturn:
        """Raise of what only running the file would open."""
        raise UntrustedError(self.refusal(self.path))

    def built(self, found: Any, _: Any) -> Any:
        """Return a dict as it is: torch adds the version of its module to it in this way."""
        return found

    def persistent(self, described: Any) -> _Storage:
        """Return the numbers that tensors share."""
        kind, dtype, key, _, n = described
        if kind != "storage" or not isinstance(dtype, Name):
            self.refuse("no storage")
        if dtype not in _DTYPES:
            raise FormatError(f"{self.path}: {dtype} is not float64 or float32")
        if key not in self.contents:
            self.contents[key] = self.read(key)
        content = self.contents[key]
        if len(content) != n * _DTYPES[dtype].itemsize:
            raise FormatError(f"{self.path}: a tensor declares what the file does not hold")
        return _Storage(_DTYPES[dtype], content)

    def called(self, name: Name, arguments: tuple[Any, ...]) -> Any:
        """Return an empty dict, or a tensor."""
        if name == _DICT and arguments == ():
            return {}
        if name != _TENSOR:
            self.refuse(name)
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
