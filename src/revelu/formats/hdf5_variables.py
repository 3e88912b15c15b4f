"""Variables of an HDF5 file, by pyfive: no more of them than a file of its size has.

pyfive unpacks a chunk whole, however large that is; what chunks unpack to is looked at before.
"""

import zlib
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError

__all__ = ["Variables", "text"]

# Filters that chunks are packed by, as HDF5 numbers them; a checksum has 4 bytes of its own.
_DEFLATE, _SHUFFLE, _CHECKSUM = range(1, 4)


class Variables:
    """Reads arrays of an HDF5 file, which may be no larger in all than a file of its size.

    Parameters
    ----------
    path : pathlib.Path
    most, packed : int
        Bytes of all, and of what they are unpacked from.
    most_groups : int
        That are looked at: of a damaged file one may hold itself.
    """

    def __init__(self, path: Path, most: int, packed: int, most_groups: int = 10_000) -> None:
        self.path, self.most, self.whole = path, most, most
        self.packed, self.most_groups = packed, most_groups

    def read(self, dataset: Any) -> np.ndarray:
        """Read one."""
        kind = np.dtype(dataset.dtype)
        if kind.kind not in "fiu":
            raise FormatError(f"{self.path}: a variable of {kind}")
        self.most -= prod(int(n) for n in dataset.shape) * kind.itemsize
        if self.most < 0:
            raise FormatError(f"{self.path}: variables of more bytes than a file of its size has")
        if dataset.chunks is not None:
            self._check_chunks(dataset.id, prod(dataset.chunks) * kind.itemsize)
        return np.asarray(dataset[()])

    def _check_chunks(self, kept: Any, most: int) -> None:
        """See that chunks unpack to no more bytes than is said, for pyfive unpacks all there is."""
        filters = [one["filter_id"] for one in kept.filter_pipeline or ()]
        at = filters.index(_DEFLATE) if _DEFLATE in filters else len(filters)
        known = {_DEFLATE, _SHUFFLE, _CHECKSUM}
        if not set(filters) <= known or not set(filters[at + 1 :]) <= {_CHECKSUM}:
            raise FormatError(f"{self.path}: its variables are packed in a way that is not read")
        if most > self.whole:
            raise FormatError(f"{self.path}: chunks of {most:,} bytes, more than it may hold")
        for i in range(kept.get_num_chunks()):
            info = kept.get_chunk_info(i)
            self.packed -= info.size
            if self.packed < 0:
                raise FormatError(f"{self.path}: chunks of more bytes than the file has")
            _, content = kept.read_direct_chunk(info.chunk_offset)
            if at == len(filters) or info.filter_mask >> at & 1:
                continue
            allowed = most + 4 * filters.count(_CHECKSUM)
            if len(zlib.decompressobj().decompress(content, allowed + 1)) > allowed:
                raise FormatError(f"{self.path}: a chunk unpacks to over {allowed:,} bytes")

    def by_layer(self, file: Any, places: Mapping[str, str]) -> dict[str, list[np.ndarray]]:
        """Read all variables, by the names of their layers.

        Parameters
        ----------
        places : mapping of str to str
            Names of layers by what their groups are called, where no group says the name.
        """
        found: dict[str, list[np.ndarray]] = {}
        waiting = [("", file)]
        while waiting:
            called, group = waiting.pop()
            self.most_groups -= 1
            if self.most_groups < 0:
                raise FormatError(f"{self.path}: too many groups")
            for name in list(group):
                inner = group[name]
                if not hasattr(inner, "keys"):
                    continue
                if name != "vars":
                    waiting.append((name, inner))
                    continue
                said = inner.attrs.get("name")
                layer = places.get(called, "") if said is None else text(said)
                numbered = sorted((n for n in inner if n.isdecimal()), key=int)
                if numbered:
                    found[layer] = [self.read(inner[n]) for n in numbered]
        return found


def text(found: Any) -> str:
    """Return a text of a file, however it is kept."""
    return found.decode("utf-8") if isinstance(found, bytes) else f"{found}"
