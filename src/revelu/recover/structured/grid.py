"""Whether rows of numbers are images whose pixels act together with near ones alone.

Moved from ``-L e_p`` to ``L e_p``, the first input crosses the hyperplanes of nearly all neurons
that see it, and

    g(y) = f(x + y + L e_p) - f(x + y - L e_p)

changes with a move ``y`` of other inputs if such a neuron sees them, too.  Of a dense network any
move shows that.  Of filters the inputs that act together with the first one are a window at the
corner of the image: the shape of the image is the one in which they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from revelu.network.layers import ImageShape
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor, Oracle
from revelu.types import BoolArray, IntArray

__all__ = ["ImageGrid"]


@dataclass(frozen=True)
class ImageGrid:
    """How the shape of images is found that a target does not say."""

    fewest: int = 36
    """Inputs that may be an image."""
    reach: float = 1000.0
    reach_if_rounded: float = 64.0
    """How far the first input is moved to either side, of float64 answers and of others: filters
    whose weight there is a hundredth of the others' have to change their minds, and in float32 the
    answers keep three digits of what other inputs do."""
    far: float = 0.125
    """Share of the inputs, the last ones, that no filter at the first one's corner sees,"""
    n_pairs: int = 4
    """at ``n_pairs`` points; a dense target shows at the first of them that it is none."""
    local: float = 0.75
    """Share of the image's rows or columns that a filter sees at most."""
    filled: float = 0.5
    """Share of the window's inputs that have to act together with the first one: where layers lie
    above filters, not all do at every point."""
    n_tries: int = 6
    """Points at which inputs that do are looked for, until no others do,"""
    n_agreeing: int = 3
    """or the shape stays what it is for ``n_agreeing`` points."""
    most_channels: int = 4
    most_blocks: int = 400

    def find(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator
    ) -> ImageShape | None:
        """Return channels, height and width; None where inputs do not act as those of images do.

        A dense target is told from an image by four queries.

        Raises
        ------
        LimitReachedError
            If the budget ends.
        """
        d = oracle.dim_in
        if d < self.fewest:
            return None
        last = np.arange(d - int(self.far * d), d)
        for _ in range(self.n_pairs):
            if self._act(oracle, noise, rng, [last])[0]:
                return None
        seen, left = np.zeros(d, dtype=bool), np.arange(1, d, dtype=np.intp)
        found: list[ImageShape | None] = []
        for _ in range(self.n_tries):
            more = self._seen(oracle, noise, rng, left)
            if more is None:
                if not seen.any():
                    return None
                continue
            seen |= more
            found.append(shape := self._shape(seen))
            if shape is None:
                left = np.arange(1, d, dtype=np.intp)
                continue
            # Of layers above filters a point may show little, which other shapes fit as well.
            left = _outside(seen.reshape(shape))
            n_same = sum(one == shape for one in found[-self.n_agreeing :])
            is_agreed = n_same == self.n_agreeing and np.count_nonzero(seen) > self.n_agreeing
            acting = (self._act(oracle, noise, rng, [left])[0] for _ in range(self.n_pairs))
            if is_agreed or not any(acting):
                return shape
        return None

    def _act(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, groups: list[IntArray]
    ) -> BoolArray:
        """Whether any input of each group acts together with the first one."""
        n, d = len(groups) + 1, oracle.dim_in
        X = np.repeat(rng.standard_normal((1, d)), n, axis=0)
        for x, group in zip(X[1:], groups, strict=True):
            x[group] = rng.standard_normal(len(group))
        X = oracle.in_float32(X)
        ends = np.repeat(X[None], 2, axis=0)
        reach = self._reach(noise)
        ends[0, :, 0], ends[1, :, 0] = -reach, reach
        Y = oracle(ends.reshape(-1, d)).reshape(2, n, -1)
        apart = np.abs(Y[1] - Y[0] - (Y[1, :1] - Y[0, :1]))[1:]
        error = noise.growth(ends.reshape(-1, d)).max() * noise.nu * noise.scale
        return np.asarray((apart > 3.0 * SIGMAS * error).any(axis=1))

    def _seen(
        self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator, among: IntArray
    ) -> BoolArray | None:
        """Which of some inputs act together with the first one, (d,), by halving blocks.

        None where none does, or more than a window has.
        """
        blocks = [among]
        seen = np.zeros(oracle.dim_in, dtype=bool)
        while blocks and len(blocks) <= self.most_blocks:
            acting = self._act(oracle, noise, rng, blocks)
            kept = [block for block, acts in zip(blocks, acting, strict=True) if acts]
            for block in kept:
                seen[block] = len(block) == 1
            blocks = [half for b in kept if len(b) > 1 for half in np.array_split(b, 2)]
        seen[0] = seen.any() or self._bends(oracle, noise, rng)
        return seen if seen[0] and not blocks else None

    def _reach(self, noise: NoiseFloor) -> float:
        return self.reach if noise.is_exact else self.reach_if_rounded

    def _bends(self, oracle: Oracle, noise: NoiseFloor, rng: np.random.Generator) -> bool:
        """Whether the function bends along the first input."""
        X = np.repeat(rng.standard_normal((1, oracle.dim_in)), 3, axis=0)
        X[:, 0] = self._reach(noise) * np.array([-1.0, 0.0, 1.0])
        Y = oracle(oracle.in_float32(X))
        error = noise.growth(X).max() * noise.nu * noise.scale
        return bool((np.abs(Y[0] - 2.0 * Y[1] + Y[2]) > 3.0 * SIGMAS * error).any())

    def _shape(self, seen: BoolArray) -> ImageShape | None:
        """The shape in which the inputs seen fill a window at the corner best."""
        best, most = None, self.filled
        for shape in _shapes(len(seen), self.most_channels):
            share = self._share(seen.reshape(shape))
            if share > most:
                best, most = shape, share
        return best

    def _share(self, seen: BoolArray) -> float:
        """Share of the least window around what is seen that is; 0 where that is no filter's."""
        channels, height, width = seen.shape
        used = [np.flatnonzero(seen.any(axis=(0, 2 - axis))) for axis in (0, 1)]
        rows, columns = (int(at[-1]) + 1 for at in used)
        too_large = columns > self.local * width or (height > 1 and rows > self.local * height)
        # Windows of one row are those of a series.
        if too_large or (rows == 1 and height > 1):
            return 0.0
        # Dilated filters leave out every other row and every other column.
        steps = {int(np.gcd.reduce(at)) for at in used if len(at) > 1}
        step = steps.pop() if len(steps) == 1 else 1
        n = channels * ((rows - 1) // step + 1) * ((columns - 1) // step + 1)
        return float(np.count_nonzero(seen) / n)


def _outside(seen: BoolArray) -> IntArray:
    """Inputs outside the least window around those seen, which are an image's."""
    rows, columns = (np.flatnonzero(seen.any(axis=(0, 2 - axis)))[-1] + 1 for axis in (0, 1))
    is_outside = np.ones(seen.shape, dtype=bool)
    is_outside[:, :rows, :columns] = False
    return np.flatnonzero(is_outside)


def _shapes(d: int, most_channels: int) -> Iterator[ImageShape]:
    """Images and series of d numbers, the likeliest first: square ones, of few channels."""
    channels = [c for c in range(1, most_channels + 1) if d % c == 0]
    found = [
        (c, h, d // c // h)
        for c in channels
        for h in range(1, d // c + 1)
        if d % (c * h) == 0 and d // c // h > 1
    ]

    def unlikely(shape: ImageShape) -> tuple[float, int]:
        c, h, w = shape
        return abs(np.log(w / h)), c

    yield from sorted(found, key=unlikely)
