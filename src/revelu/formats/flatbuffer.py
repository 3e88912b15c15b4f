"""FlatBuffers, read where they lie: tables, vectors and texts by their places, never beyond."""

import struct
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

__all__ = ["FlatTable"]


@dataclass(frozen=True)
class FlatTable:
    """A table: fields by their numbers in the schema.

    Attributes
    ----------
    content : bytes
    place : int
        Where it begins.
    """

    content: bytes
    place: int

    @classmethod
    def root(cls, content: bytes) -> Self:
        """Return the table that a file begins with."""
        return cls(content, _at(content, "<I", 0))

    @classmethod
    def without_fields(cls) -> Self:
        """Return what stands for a table that is not there: all its fields are as usual."""
        return cls(struct.pack("<HHi", 4, 4, 4), 4)

    def number(self, field: int, form: str, usual: float = 0) -> Any:
        """Return a number, or what stands for one that is not there; ``form`` as of struct."""
        place = self._place_of(field)
        return usual if place is None else _at(self.content, f"<{form}", place)

    def table(self, field: int) -> Self | None:
        """Return a table, or None."""
        place = self._place_of(field)
        return None if place is None else type(self)(self.content, self._followed(place))

    def tables(self, field: int) -> list[Self]:
        """Return a vector of tables."""
        start, n = self._vector(field, 4)
        places = (start + 4 * i for i in range(n))
        return [type(self)(self.content, self._followed(place)) for place in places]

    def array(self, field: int, dtype: str) -> np.ndarray:
        """Return a vector of numbers, which is not copied."""
        kind = np.dtype(dtype)
        start, n = self._vector(field, kind.itemsize)
        return np.frombuffer(self.content, kind, n, start) if n else np.empty(0, kind)

    def text(self, field: int) -> str:
        """Return a text, empty where there is none."""
        return bytes(self.array(field, "u1")).decode("utf-8")

    def _place_of(self, field: int) -> int | None:
        """Where a field is, by the table's table of places."""
        vtable = self.place - _at(self.content, "<i", self.place)
        at = 4 + 2 * field
        if at + 2 > _at(self.content, "<H", vtable):
            return None
        offset = _at(self.content, "<H", vtable + at)
        return self.place + offset if offset else None

    def _followed(self, place: int) -> int:
        return place + int(_at(self.content, "<I", place))

    def _vector(self, field: int, size: int) -> tuple[int, int]:
        """Where a vector's entries begin, and how many there are."""
        place = self._place_of(field)
        if place is None:
            return 0, 0
        start = self._followed(place)
        n = int(_at(self.content, "<I", start))
        if start + 4 + n * size > len(self.content):
            raise ValueError("a vector ends behind the file")
        return start + 4, n


def _at(content: bytes, form: str, place: int) -> Any:
    if place < 0:
        raise ValueError("a place before the file")
    return struct.unpack_from(form, content, place)[0]
