"""Images in which a filter's window is on, or off, that hardly ever is so at random.

What outputs read of a filter that is hardly ever on shows where a window is as bright for it as can
be.  Where the largest of a window is taken, ties show a filter's weights but not its bias: that
shows where the window is as dark for it as can be, at the least maximum of the window's sums.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from revelu.network.open_filters import OpenFilters
from revelu.numerics.least_maximum import least_maximum
from revelu.probe.draws import Draws
from revelu.types import FloatArray, IntArray

__all__ = ["WindowImages"]


@dataclass(frozen=True)
class WindowImages:
    """Images that tell filters as they are known.

    Attributes
    ----------
    filters : OpenFilters
    draws : Draws
    """

    filters: OpenFilters
    draws: Draws

    def beside(self, X: FloatArray) -> FloatArray:
        """Return images, (m, d), to be asked beside others, (n, d)."""
        found = [image for f in range(len(self.filters.conv.biases)) for image in self._off(f)]
        return np.array([*found, *self._on(X)]).reshape(-1, X.shape[1])

    def _off(self, f: int) -> list[FloatArray]:
        """Images with a window between the darkest and where a filter, as known, is 0."""
        pool, n = self.filters.pool, self.filters.kernels[0].size + 1
        if pool is None or pool.kind != "max":
            return []
        pixels, W = self._sums(f, pool.reads[0])
        b = self.filters.conv.biases[f]
        darkest = least_maximum(W, self.draws.ends)
        low = float((W @ darkest).max()) + b
        if low >= 0.0:
            return []
        found = []
        # As many as a filter has numbers.
        for i, x in enumerate(self.draws.drawn(n, self.filters.conv.size_in)):
            pixels, _ = self._sums(f, pool.reads[i % len(pool.reads)])
            # The largest of sums is convex along a line of images.
            share = -low / (max(float((W @ x[pixels]).max()) + b, 0.0) - low)
            x[pixels] = darkest + i / n * share * (x[pixels] - darkest)
            found.append(x)
        return found

    def _on(self, X: FloatArray) -> list[FloatArray]:
        """Images with a window on: one tells what it adds, others a share of a filter's numbers.

        The other way round, filters of open signs are on where these are off.
        """
        found = self._bright(X, 1.0, range(len(self.filters.conv.biases)))
        if self.filters.are_both:
            return found
        return found + self._bright(X, -1.0, np.flatnonzero(self.filters.is_open))

    def _bright(self, X: FloatArray, side: float, which: Iterable[int]) -> list[FloatArray]:
        """Images with windows of some filters on, or off where the side is negative."""
        conv, pool = self.filters.conv, self.filters.pool
        H = np.maximum(side * conv(X), 0.0)
        H = H if pool is None else pool(H)
        n_on = np.count_nonzero(H, axis=0).reshape(len(conv.biases), -1)
        places = np.arange(len(conv.reads))[:, None] if pool is None else pool.reads
        least = 1 + -(-(self.filters.kernels[0].size + 1) // len(places))
        found = []
        for f in which:
            for window in np.repeat(np.arange(len(places)), np.maximum(least - n_on[f], 0)):
                pixels, W = self._sums(f, self.draws.rng.choice(places[window], 1))
                w, b = side * W[0], side * conv.biases[f]
                x = self.draws.drawn(1, conv.size_in)[0]
                brightest = np.where(w > 0.0, *self.draws.ends[::-1])
                z, high = (float(w @ y) + b for y in (x[pixels], brightest))
                if high > 0.0:
                    share = self.draws.rng.random() * high / (high - min(z, 0.0))
                    x[pixels] = brightest + share * (x[pixels] - brightest)
                    found.append(x)
        return found

    def _sums(self, f: int, places: IntArray) -> tuple[IntArray, FloatArray]:
        """What a filter reads at places, and its weights there, (places, pixels)."""
        reads = self.filters.conv.reads[places]
        pixels, entries = np.unique(reads, return_inverse=True)
        W = np.zeros((len(places), len(pixels)))
        W[np.arange(len(W))[:, None], entries.reshape(reads.shape)] = self.filters.conv.kernels[
            f
        ].ravel()
        return pixels, W
