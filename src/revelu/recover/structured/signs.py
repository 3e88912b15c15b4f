"""Signs of filters, and biases of those that have only been seen to tie."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.network.images import Image
from revelu.numerics.subset_sum import find_binary_solutions
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.structured.pixel_rows import PixelRows
from revelu.recover.structured.places import Places
from revelu.recover.structured.seen import Row, Seen
from revelu.recover.structured.sharing import Filter
from revelu.types import FloatArray

__all__ = ["MissingBiases", "sign_by_ties", "signs_of", "window_steps"]


def signs_of(seen: Seen, rows: list[Row], filters: list[Filter], rtol: float) -> FloatArray | None:
    """Return the sign of each filter; None where the slopes at the ends of a line leave it open.

    Far along a pixel a neuron is on where its weight there has the sign of the pixel: the slope
    there is the sum of the changes of slope of those that are on,

        f'(oo) = sum_f [s_f = 1] P_f + [s_f = -1] N_f,

    with ``P_f`` the changes of the copies of a filter that are up along the pixel where the filter
    is, and ``N_f`` of the others.
    """
    k = seen.jumps.shape[1]
    up, down = np.zeros((k, len(filters))), np.zeros((k, len(filters)))
    for f, one in enumerate(filters):
        for j, sign in one.copies:
            (up if sign > 0 else down)[:, f] += rows[j].jump
    # A kink that is no filter's may be on either way.
    known = np.array([row.jump for row in rows]).reshape(-1, k)
    others = [J for J in seen.jumps if not (np.abs(known - J).max(axis=1, initial=0.0) == 0).any()]
    G = np.column_stack([up - down, *others]) if others else up - down
    y = seen.slopes[1] - down.sum(axis=1)
    size = float(np.sqrt((seen.jumps**2).sum())) + float(np.linalg.norm(seen.slopes[1]))
    for factor in (1.0, 30.0, 1000.0):
        found = find_binary_solutions(G, y, factor * rtol * size, rounding=0.2).found
        if found:
            best = min(found, key=lambda x: float(np.linalg.norm(G @ x - y)))
            return np.where(best[: len(filters)] > 0.5, 1.0, -1.0)
    return None


def window_steps(filters: list[Filter], image: Image) -> list[tuple[int, int]]:
    """Steps from a place to the others of a window, of which ties have shown some."""
    seen = [step for one in filters for step in one.shift if step]
    if not seen:
        return []
    along = range(0, max(seen) + 1, int(np.gcd.reduce(seen)))
    down = along if image.shape[1] > 1 else range(1)
    return [(i, j) for i in down for j in along if i or j]


def sign_by_ties(
    one: Filter, oracle: Oracle, noise: NoiseFloor, image: Image, rng: np.random.Generator
) -> float:
    """Return the sign with which a filter is the largest of its window; 0 where neither is.

    Where the sums of its neighbours are under 0 the function bends as its own crosses 0; where
    they are over 0 one of them is the largest.
    """
    bends = []
    for sign in (1.0, -1.0):
        kernel, b = sign * one.kernel[None], np.array([sign * one.b])
        places = Places(oracle, noise, image, kernel, b, rng)
        found = [places.columns(0, [one.origin], (step, step))[1][0] for step in (1, 2)]
        bends.append(any(found))
    return float(bends[0]) - float(bends[1])


@dataclass(frozen=True)
class MissingBiases:
    """How biases are found of filters that tie where they were seen.

    Along the same pixel a filter has a kink where its sum ``w x + b`` is the largest of the others
    of its window, or 0 where those are under 0.  So ``-w x`` there is at most b, and is b at each
    place of the second kind.
    """

    n_lines: int = 24
    """Lines tried."""
    same_jump: float = 0.02
    """Share by which changes of slope of one filter may differ."""
    margin: float = 1.5
    """How far under 0 others of the window are taken."""
    most: float = 0.6
    """Share of the pixels that those may take."""

    def find(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        image: Image,
        filters: list[Filter],
        jumps: FloatArray,
        pixel: int,
        rng: np.random.Generator,
        lines: PixelRows,
        rtol: float,
    ) -> list[Filter] | None:
        """Return the filters with their biases; None where lines do not show them.

        Parameters
        ----------
        filters : list of Filter
            With their signs: the first entry that the pixel sees is not turned.
        jumps : ndarray, shape (filters, k)
            Changes of slope along the pixel.
        """
        missing = [f for f, one in enumerate(filters) if np.isnan(one.b)]
        seen: dict[int, list[float]] = {f: [] for f in missing}
        for _ in range(self.n_lines):
            if not missing:
                break
            x0 = self._start(image, filters, missing, rng)
            line = lines.scan(oracle, noise, pixel, rng, x0)
            if line is None:
                continue
            for t, jump in zip(line.kinks, line.jumps, strict=True):
                apart = np.linalg.norm(jumps - jump, axis=1)
                f = int(np.argmin(apart))
                if f not in missing or apart[f] > self.same_jump * np.linalg.norm(jumps[f]):
                    continue
                x = line.x0.copy()
                x[pixel] = t
                row = image.shifted(filters[f].kernel, *filters[f].origin)
                seen[f].append(-float(row @ x))
            for f in list(missing):
                largest = sorted(seen[f])[-2:]
                if len(largest) == 2 and largest[1] - largest[0] <= rtol * 3.0:
                    filters[f] = replace(filters[f], b=float(np.mean(largest)))
                    missing.remove(f)
        return None if missing else filters

    def _start(
        self, image: Image, filters: list[Filter], missing: list[int], rng: np.random.Generator
    ) -> FloatArray:
        """An input where the others of the windows of a few filters are likely under 0."""
        x = rng.standard_normal(image.size)
        rows: list[FloatArray] = []
        steps = window_steps(filters, image)
        for f in rng.permutation(missing):
            one = filters[int(f)]
            more = [
                image.shifted(one.kernel, one.origin[0] + i, one.origin[1] + j)
                for i, j in steps
                if i or j
            ]
            n_pixels = np.count_nonzero(np.abs(rows + more).max(axis=0))
            if rows and len(rows) + len(more) > self.most * n_pixels:
                break
            rows += more
        R = np.array(rows)
        z = R @ x
        return np.asarray(x + np.linalg.lstsq(R, np.minimum(z, -self.margin) - z, rcond=1e-2)[0])
