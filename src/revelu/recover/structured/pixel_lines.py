"""Lines along pixels, one after another, and all critical points that they show."""

from dataclasses import dataclass, field

import numpy as np

from revelu.network.images import Image
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.structured.pixel_rows import PixelRows
from revelu.recover.structured.seen import Row, Seen
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["PixelLines"]


@dataclass
class PixelLines:
    """Lines of a target along pixels."""

    oracle: Oracle
    noise: NoiseFloor
    image: Image
    rng: np.random.Generator
    how: PixelRows
    pixel: int
    """Along which lines go unless another one is said."""
    sizes: tuple[float, float] = (0.5, 4.0)
    """Least and largest size of what a line starts at, relative to N(0, I)."""
    seen: list[Seen] = field(default_factory=list, init=False)
    """What each line has shown."""
    has_filters: bool = field(default=False, init=False)
    """Filters recur on them."""

    def scan(self, start: FloatArray | None = None, pixel: int | None = None) -> Seen | None:
        """Find and keep the kinks of another line; None where they are not all found.

        Parameters
        ----------
        start : ndarray, shape (d,), optional
            Where the pixel is 0; drawn if none is given.
        """
        if start is None:
            size = np.exp(self.rng.uniform(*np.log(self.sizes)))
            start = size * self.rng.standard_normal(self.image.size)
        along = self.pixel if pixel is None else pixel
        found = self.how.scan(self.oracle, self.noise, along, self.rng, start)
        if found is not None:
            self.seen.append(found)
        return found

    def measure(self, seen: Seen) -> list[Row] | None:
        """As :meth:`PixelRows.measure`."""
        return self.how.measure(self.oracle, self.noise, self.image, seen)

    def measure_some(self, seen: Seen, pixels: IntArray, is_wanted: BoolArray) -> list[Row]:
        """As :meth:`PixelRows.measure_some`."""
        return self.how.measure_some(self.oracle, self.noise, self.image, seen, pixels, is_wanted)

    def measure_small(self, seen: Seen, is_known: BoolArray) -> tuple[list[Row], int]:
        """As :meth:`PixelRows.measure_small`."""
        return self.how.measure_small(self.oracle, self.noise, self.image, seen, is_known)

    @property
    def X(self) -> FloatArray:  # noqa: N802 - a matrix
        """All critical points seen, (n, d)."""
        return np.vstack([np.empty((0, self.image.size)), *(one.points for one in self.seen)])

    @property
    def jumps(self) -> FloatArray:
        """Changes of slope there, (n, k)."""
        k = len(self.noise.scale)
        return np.vstack([np.empty((0, k)), *(one.jumps for one in self.seen)])

    @property
    def numbers(self) -> IntArray:
        """Of which line each is, (n,)."""
        return np.repeat(np.arange(len(self.seen)), [len(one.kinks) for one in self.seen])

    @property
    def pixels(self) -> IntArray:
        """Along which pixel each was seen, (n,)."""
        return np.array([one.pixel for one in self.seen], dtype=np.intp)[self.numbers]

    @property
    def room(self) -> FloatArray:
        """How far the nearest other one of its line is, (n,)."""
        return np.concatenate([np.empty(0), *(one.room for one in self.seen)])
