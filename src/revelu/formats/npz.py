"""NumPy archives: ``weights_0``, ``biases_0``, …, ``skip_V``, ``skip_c``, ``schema``."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import Arrays, replace_file

SCHEMA = 1

# A file that declares more than this, unpacked, is refused before it is unpacked.
MAX_BYTES = 4 * 2**30


def dump(path: Path, arrays: Arrays, dtype: np.dtype, softmax: bool) -> None:
    """Write an archive.

    Raises
    ------
    FormatError
        If it cannot be written, or a softmax is asked for: archives hold logits.
    """
    if softmax:
        raise FormatError(f"{path}: an .npz archive holds logits only, no softmax")
    named = {"schema": np.array(SCHEMA)}
    for i, (W, b) in enumerate(zip(arrays.weights, arrays.biases, strict=True)):
        named[f"weights_{i}"], named[f"biases_{i}"] = W.astype(dtype), b.astype(dtype)
    if arrays.skip is not None:
        named["skip_V"], named["skip_c"] = (a.astype(dtype) for a in arrays.skip)
    write_archive(path, named)


def write_archive(path: Path, named: Mapping[str, np.ndarray]) -> None:
    """Write named arrays; the file appears whole or not at all.

    Raises
    ------
    FormatError
        If the system refuses.
    """
    buffer = io.BytesIO()
    np.savez(buffer, **named)  # type: ignore[arg-type]
    replace_file(path, buffer.getvalue())


def load(path: Path) -> Arrays:
    """Read an archive, never unpickling anything.

    Raises
    ------
    FormatError
        If it is damaged, too large, of a later schema, or lacks an array.
    """
    named = read_archive(path)
    n_layers = sum(name.startswith("weights_") for name in named)
    wanted = [f"{kind}_{i}" for i in range(n_layers) for kind in ("weights", "biases")]
    has_skip = "skip_V" in named or "skip_c" in named
    wanted += ["skip_V", "skip_c"] if has_skip else []
    missing, extra = sorted(set(wanted) - set(named)), sorted(set(named) - set(wanted))
    if not n_layers or missing or extra:
        raise FormatError(
            f"{path}: not a network: missing {missing or 'weights_0'}, unexpected {extra}"
        )
    return Arrays(
        [named[f"weights_{i}"] for i in range(n_layers)],
        [named[f"biases_{i}"] for i in range(n_layers)],
        (named["skip_V"], named["skip_c"]) if has_skip else None,
    )


def read_archive(path: Path) -> dict[str, np.ndarray]:
    """Read named arrays of real numbers, never unpickling anything; ``schema`` is left out.

    Raises
    ------
    FormatError
        If the file is damaged, too large, of a later schema, or holds other things.
    """
    try:
        named = _read(path)
    except FormatError:
        raise
    # A damaged archive makes zipfile, zlib and NumPy's header parser raise almost
    # anything; whatever it is, the file is at fault.
    except Exception as error:  # noqa: BLE001
        raise FormatError(f"{path}: not a readable .npz archive: {error}") from None
    schema = named.pop("schema", np.array(SCHEMA))
    if schema.shape != () or schema.dtype.kind not in "iu" or int(schema) != SCHEMA:
        raise FormatError(f"{path}: schema {schema!r} is not the one known, {SCHEMA}")
    for name, array in named.items():
        if array.dtype.kind not in "fiu":
            raise FormatError(f"{path}: {name} holds {array.dtype}, not real numbers")
    return named


def _read(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_BYTES:
            raise FormatError(f"{path}: unpacks to {size:,} bytes, over {MAX_BYTES:,}")
        return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    # A header may declare a huge shape over no data: what it declares is checked
    # against what the archive holds before anything is allocated.
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
            raise FormatError(f"{archive.filename}: {name} declares what it does not hold")
    with archive.open(name) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
