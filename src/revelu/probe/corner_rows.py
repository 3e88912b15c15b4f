"""Filters that crowd: lines along pixels at the corners of images, asked evenly.

At each corner of what is seen another entry of a filter bends the function; where all filters are 0
there, the next one does.
"""

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from revelu.network.images import Image
from revelu.network.open_filters import OpenFilters
from revelu.numerics.confidence import SIGMAS
from revelu.numerics.lone_kinks import bends
from revelu.probe.corner_ends import CornerEnds
from revelu.probe.corner_kinks import CornerKinks, CornerLines
from revelu.probe.corner_units import CornerUnit, alike
from revelu.probe.draws import Draws
from revelu.probe.seen_filters import SeenFilter, associated
from revelu.types import FloatArray, IntArray

__all__ = ["CornerRows"]

log = logging.getLogger(__name__)

Corner = tuple[tuple[int, ...], tuple[int, int, int]]


@dataclass
class CornerRows:
    """Rows of neurons that share their weights, from lines along pixels at the corners of images.

    Parameters
    ----------
    how : CornerLines
    draws : Draws
    image : Image
    boxes : dict
        Rows and columns at each corner, by whether they are turned.
    corners : dict
        What lines at corners show, by how those are turned and the entry that lines go along.
    found : list of SeenFilter
    ties : bool
        Whether the largest of windows is taken.
    extent : (int, int) or None
        Rows and columns of a filter.
    entry : (int, int, int)
        Channel, row and column, from the corner, of the pixel that lines go along.
    """

    how: CornerLines
    draws: Draws
    image: Image
    boxes: dict[tuple[int, ...], list[tuple[int, int]]] = field(default_factory=dict, init=False)
    corners: dict[Corner, CornerEnds] = field(default_factory=dict, init=False)
    found: "list[SeenFilter]" = field(default_factory=list, init=False)
    ties: bool = field(default=False, init=False)
    extent: tuple[int, int] | None = field(default=None, init=False)
    entry: tuple[int, int, int] = field(default=(0, 0, 0), init=False)

    def window(self) -> tuple[int, int] | None:
        """Rows and columns that act together with the first pixel.

        None where most of them do, or nothing bends at the corner.
        Where all filters are 0 there, with the next pixel: as long as none before it is seen, no
        more than the first place of a filter sees it.
        """
        for entry in self._entries:
            if not self._bends(self.image.pixel(*entry)):
                continue
            found = []
            for axis, size in enumerate(self.image.shape[1:]):
                nearest, farthest = entry[1 + axis], size - 1
                while nearest < farthest:
                    middle = (nearest + farthest) // 2
                    beyond = self.image.beyond(axis, 0, 1, middle)
                    if self._acts(self.image.pixel(*entry), beyond):
                        nearest = middle + 1
                    else:
                        farthest = middle
                    if size > 1 and nearest >= self.how.local * size:
                        return None
                found.append(nearest + 1)
            self.entry = entry
            return found[0], found[1]
        return None

    @property
    def _entries(self) -> list[tuple[int, int, int]]:
        """Channels, rows and columns at a corner, the nearest first."""
        channels, rows, columns = (range(min(size, 3)) for size in self.image.shape)
        return sorted(product(channels, rows, columns), key=lambda entry: (sum(entry[1:]), entry))

    def _bends(self, pixel: int) -> bool:
        """Whether the function bends along a pixel."""
        n, d = self.how.asked[0], self.image.size
        X = np.repeat(self.draws.drawn(n, d)[None], 3, axis=0)
        X[:, :, pixel] = np.linspace(*self.draws.ends, 3)[:, None]
        flat = self.draws.rounded(X.reshape(-1, d))
        Y = self.draws.oracle(flat)
        error = self.draws.noise.sigma_at(flat, Y).reshape(3, n, -1).sum(axis=0)
        return bool(bends(np.diff(Y.reshape(3, n, -1), n=2, axis=0)[0], error).any())

    def _acts(self, pixel: int, others: IntArray) -> bool:
        """Whether some pixels change what another one does."""
        n, d = self.how.asked[0], self.image.size
        X = np.repeat(self.draws.drawn(n, d)[None], 4, axis=0)
        X[1::2, :, pixel], X[::2, :, pixel] = self.draws.ends
        X[2:][:, :, others] = self.draws.drawn(n, len(others))
        flat = self.draws.rounded(X.reshape(-1, d))
        Y = self.draws.oracle(flat)
        error = np.sqrt((self.draws.noise.sigma_at(flat, Y) ** 2).reshape(4, n, -1).sum(axis=0))
        Y = Y.reshape(4, n, -1)
        apart = np.abs(Y[0] - Y[1] - Y[2] + Y[3])
        return bool((apart > SIGMAS * error).any())

    def look(self, window: tuple[int, int]) -> None:
        """Find filters at a corner, and beside those wherever they do not tell all that bends.

        Parameters
        ----------
        window : (int, int)
            Rows and columns that act together.
        """
        last = [self._last(axis) for axis in (0, 1)]
        boxes = [
            ((0, size), (end + 1 - size, end + 1))[: 2 if size > 1 else 1]
            for size, end in zip(window, last, strict=True)
        ]
        for turns in product(*(range(len(ends)) for ends in boxes)):
            self.boxes[turns] = [ends[turn] for ends, turn in zip(boxes, turns, strict=True)]
        corner = self._corner(next(iter(self.boxes)), self.entry).corner
        corner.look(self.how.most_rounds[0])
        if not corner.jumps and self._collect():
            # What is left beyond the errors of filters is another filter's.
            while self.look_beside(1.0):
                pass

    def _corner(self, turns: tuple[int, ...], entry: tuple[int, int, int]) -> CornerEnds:
        """Lines along an entry of some rows and columns, turned so that a corner is the first."""
        if (turns, entry) not in self.corners:
            box = self.boxes[turns]
            shape = (self.image.shape[0], *(end - start for start, end in box))
            pixels = self.image.pixels(box[0], box[1]).reshape(shape)[_turned(*turns)]
            along = int(np.ravel_multi_index(entry, shape))
            corner = CornerKinks(self.how, self.draws, self.image.size, pixels, along)
            self.corners[turns, entry] = CornerEnds(corner, _turned(*turns), entry[1:])
        return self.corners[turns, entry]

    def look_beside(self, least: float, patches: FloatArray | None = None) -> bool:
        """Find filters beside those that are known, and return whether there are any.

        Lines are asked along pixels at corners across which answers differ most by what those do
        not tell, until a few looks in a row have shown none.

        Parameters
        ----------
        least : float
            What may be left of a line, in what errors leave at most.
        patches : ndarray, shape (n, channels, rows, columns), optional
            Where others may be on, which are looked at in each corner.
        """
        n_before = len(self.found)
        unknown = self._unknown(patches)
        log.debug("unknown: %s", unknown)
        for _ in range(self.how.most_rounds[0]):
            at = max(unknown, key=lambda at: unknown[at])
            if unknown[at] <= least:
                break
            log.debug("%s: %.2g of its errors unknown", at, unknown[at])
            ends = self.corners[at]
            # The first lines at a corner show those that are known there as well.
            n = self.how.asked[2 if len(ends.corner.X) else 0]
            shown = ends.between(n)
            for _ in range(self.how.most_rounds[0]):
                n_lines = len(ends.corner.X)
                others = ends.corner.look_at(shown)
                self._collect()
                if len(self.found) > n_before:
                    return True
                # Of what hardly ever bends too few lines tell: others near those.
                others = others[others >= n_lines]
                if not len(others):
                    break
                shown = ends.corner.near(others, self.how.asked[2])
            # What was not understood may be with more lines, but others come first.
            del unknown[at]
        return False

    def _unknown(self, patches: FloatArray | None) -> dict[Corner, float]:
        """What is left of lines at corners, in what the errors of filters leave at most."""
        at_corners = [entry for entry in self._entries if not any(entry[1:])]
        unknown: dict[Corner, float] = {}
        for at in product(self.boxes, {self.entry: 0, **dict.fromkeys(at_corners)}):
            ends = self._corner(*at)
            if patches is not None:
                ends.ask(ends.showing(patches))
            unknown[at] = ends.hold_against(self.found, self.how.asked[0], ties=self.ties)
        return unknown

    @property
    def open_filters(self) -> OpenFilters:
        """The filters found."""
        kernels = np.array([one.kernel for one in self.found])
        biases = np.array([one.b for one in self.found])
        is_open = np.array([not one.is_oriented for one in self.found])
        is_least = np.array([one.is_least for one in self.found])
        roots = np.array([one.roots for one in self.found])
        shape = self.image.shape
        return OpenFilters(kernels, biases, is_open, is_least, shape, self.draws.on, roots)

    def _collect(self) -> bool:
        """Filters of all corners, each of them once; return whether some were not known."""
        before = self.found
        units = [
            (_turned(*turns), CornerUnit(ends.corner, ends.corner.pixels.shape, group, ties=False))
            for (turns, _), ends in self.corners.items()
            for group in alike(ends.corner)
        ]
        self.ties = self.ties or any(unit.shows_ties for _, unit in units)
        units = [(turned, replace(unit, ties=self.ties)) for turned, unit in units]
        extents = Counter(extent for _, unit in units if (extent := unit.extent) is not None)
        if not extents:
            return False
        self.extent = self.extent or extents.most_common(1)[0][0]
        seen = [one.turned(sides) for sides, unit in units for one in unit.filters(self.extent)]
        # A row that is not known to differ from 0 is none yet.
        self.found = associated([one for one in seen if SIGMAS * one.error < 1.0], before)
        return len(self.found) > len(before)

    def _last(self, axis: int) -> int:
        """The last row or column that the outputs see: windows may leave some out."""
        n, d = self.how.asked[0], self.image.size
        nearest, farthest = 0, self.image.shape[1 + axis] - 1
        while nearest < farthest:
            middle = (nearest + farthest) // 2
            X = np.repeat(self.draws.drawn(n, d)[None], 2, axis=0)
            pixels = self.image.beyond(axis, 0, 1, middle)
            X[1][:, pixels] = self.draws.drawn(n, len(pixels))
            X = self.draws.rounded(X.reshape(-1, d))
            Y = self.draws.oracle(X)
            apart = np.abs(Y[:n] - Y[n:]) / self.draws.noise.sigma_at(X, Y)[:n]
            if (apart > 2.0 * SIGMAS).any():
                nearest = middle + 1
            else:
                farthest = middle
        return nearest


def _turned(down: int, across: int) -> tuple[slice, ...]:
    """What turns rows and columns."""
    return slice(None), slice(None, None, 1 - 2 * down), slice(None, None, 1 - 2 * across)
