"""NumPy archives: ``weights_0``, ``biases_0``, …, ``skip_V``, ``skip_c``, ``schema``.

Where standard errors are known, they are ``weight_errors_0``, ``bias_errors_0``, …, those of a skip
last: of the network whose hidden rows have norm 1, infinite where nothing tells a weight.
"""

import io
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import MAX_BYTES, Arrays, naming_damage, replace_file
from revelu.formats.names import SCHEMA, Names, check_schema
from revelu.numerics.links import Link

_NAMES = Names("weights_{}", "biases_{}", ("skip_V", "skip_c"))
_ERRORS = ("weight_errors_{}", "bias_errors_{}")


def dump(path: Path, arrays: Arrays, dtype: np.dtype, head: Link) -> None:
    """Write an archive."""
    named = _NAMES.to_named(path, arrays, dtype, head)
    for i, pair in enumerate(arrays.errors or ()):
        named |= {name.format(i): values for name, values in zip(_ERRORS, pair, strict=True)}
    write_archive(path, named)


def write_archive(path: Path, named: Mapping[str, np.ndarray]) -> None:
    """Write named arrays and the schema; the file appears whole or not at all."""
    buffer = io.BytesIO()
    np.savez(buffer, schema=np.array(SCHEMA), **named)  # type: ignore[arg-type]
    replace_file(path, buffer.getvalue())


def load(path: Path) -> Arrays:
    """Read an archive, never unpickling anything."""
    named = read_archive(path)
    found = {name: named.pop(name) for name in list(named) if "_errors_" in name}
    arrays = _NAMES.from_named(path, named)
    return arrays._replace(errors=_errors(path, arrays, found)) if found else arrays


def _errors(
    path: Path, arrays: Arrays, found: Mapping[str, np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Standard errors by layer, shaped as the arrays."""
    layers = [*zip(arrays.weights, arrays.biases, strict=True)]
    layers += [] if arrays.skip is None else [arrays.skip]
    shapes = {
        name.format(i): array.shape
        for i, layer in enumerate(layers)
        for name, array in zip(_ERRORS, layer, strict=True)
    }
    given = {name: array.shape for name, array in found.items()}
    if given != shapes or any((np.isnan(a) | (a < 0.0)).any() for a in found.values()):
        raise FormatError(f"{path}: standard errors are not those of its network")
    weights, biases = _ERRORS
    return [(found[weights.format(i)], found[biases.format(i)]) for i in range(len(layers))]


def read_archive(
    path: Path, names: Collection[str] | None = None, max_bytes: int = MAX_BYTES
) -> dict[str, np.ndarray]:
    """Read named arrays of real numbers, never unpickling anything; ``schema`` is left out.

    Parameters
    ----------
    names : collection of str, optional
        Of the arrays to read; all of them where not given.
    max_bytes : int
        Most that the archive may unpack to.

    Raises
    ------
    FormatError
        If the file is damaged, too large, of a later schema, lacks an array or holds other
        things.
    """
    with naming_damage(path, ".npz archive"), zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > max_bytes:
            raise FormatError(f"{path}: unpacks to {size:,} bytes, over {max_bytes:,}")
        entries = {name.removesuffix(".npy"): name for name in archive.namelist()}
        if missing := sorted(set(names or ()) - set(entries)):
            raise FormatError(f"{path}: has no array {' and '.join(missing)}")
        wanted = entries if names is None else names
        named = {name: _array(archive, entries[name]) for name in wanted}
    check_schema(path, named.pop("schema", np.array(SCHEMA)))
    for name, array in named.items():
        if array.dtype.kind not in "fiu":
            raise FormatError(f"{path}: {name} holds {array.dtype}, not real numbers")
    return named


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    # A header may declare a huge shape over no data, so it is checked against what the archive
    # holds before anything is allocated.
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
        declared = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if dtype.hasobject or declared > archive.getinfo(name).file_size:
            raise ValueError(f"{name} declares what it does not hold")
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
