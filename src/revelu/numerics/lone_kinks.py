"""Kinks of piecewise affine functions on evenly spaced points, one to a spacing.

A second difference is 0 but beside a kink: of one that changes the slope by ``J`` a share ``a`` of
a spacing beyond a point, those at that point and at the next one are ``(1 - a) J h`` and ``a J h``.
So both tell ``J``, and their centre is the kink.  Two kinks in one spacing, or in neighbouring
ones, point in other directions in the space of outputs, and are left out.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from revelu.numerics.confidence import SIGMAS
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["LoneKinks", "bends", "second_differences", "without_kink"]


@dataclass(frozen=True)
class LoneKinks:
    """What many lines show.

    Attributes
    ----------
    line : ndarray of int, shape (m,)
    place : ndarray, shape (m,)
        In spacings from a line's first point.
    jump : ndarray, shape (m, k)
        Change of slope to each spacing.
    error : ndarray, shape (m, k)
        Standard error of a second difference there.
    """

    line: IntArray
    place: FloatArray
    jump: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, D: FloatArray, error: FloatArray) -> "LoneKinks":
        """Find the kinks of which second differences (lines, points - 2, k) tell.

        Parameters
        ----------
        error : ndarray, shape (lines, k)
            Their standard errors.
        """
        n_lines, n, k = D.shape
        scaled = D / error[:, None]
        is_bent = bends(D, error[:, None])
        found: list[tuple[int, float, FloatArray, FloatArray]] = []
        for i in range(n_lines):
            for start, end in _runs(is_bent[i]):
                if start == 0 or end == n or end - start > 2:
                    continue
                at = np.arange(start - (end - start == 1), end + (end - start == 1))
                jump = D[i, start:end].sum(axis=0)
                shares = scaled[i, at] @ (jump / error[i])
                if not shares.sum():
                    continue
                shares /= shares.sum()
                rest = np.linalg.norm(scaled[i, at] - np.outer(shares, jump / error[i]))
                if rest <= np.sqrt(k * len(at)) + SIGMAS and (shares > -0.5).all():
                    found.append((i, float(shares @ at) + 1.0, jump, error[i]))
        if not found:
            none = np.empty((0, k))
            return cls(np.empty(0, dtype=np.intp), np.empty(0), none, none)
        lines, places, jumps, errors = zip(*found, strict=True)
        return cls(np.array(lines), np.array(places), np.array(jumps), np.array(errors))

    @property
    def spread(self) -> FloatArray:
        """Standard error of each place, at most, (m,)."""
        return np.asarray(1.0 / np.linalg.norm(self.jump / self.error, axis=1))

    def apart(self, other: int) -> FloatArray:
        """How far jumps are from another one, in their errors, (m,)."""
        error = np.hypot(self.error, self.error[other])
        return np.asarray(np.linalg.norm((self.jump - self.jump[other]) / error, axis=1))


def second_differences(Y: FloatArray, rounding: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return those of answers (lines, points, k), and their standard errors (lines, k).

    Parameters
    ----------
    rounding : ndarray, shape (lines, k)
        What an answer errs by at least.
    """
    D = Y[:, :-2] - 2.0 * Y[:, 1:-1] + Y[:, 2:]
    # Most are rounding: their median tells its size.
    typical = np.median(np.abs(D), axis=1) / ndtri(3 / 4)
    return D, np.maximum(typical, rounding * np.sqrt(6))


def bends(D: FloatArray, error: FloatArray) -> BoolArray:
    """Which second differences (..., k) are more than their standard errors, (...)."""
    return np.asarray(np.linalg.norm(D / error, axis=-1) > np.sqrt(D.shape[-1]) + SIGMAS)


def without_kink(
    D: FloatArray, error: FloatArray, places: FloatArray, jump: FloatArray
) -> FloatArray:
    """Second differences without a kink, on the lines where that leaves less of them.

    Parameters
    ----------
    D, error : ndarray
        As of :meth:`LoneKinks.of`.
    places : ndarray, shape (lines,)
        In spacings from the first point of each line.
    jump : ndarray, shape (k,)
    """
    n = D.shape[1]
    before = np.floor(places).astype(np.intp)
    lines = np.flatnonzero((before >= 0) & (before <= n))
    D = np.pad(D, ((0, 0), (1, 1), (0, 0)))
    at = before[lines, None] + np.arange(2)
    share = places[lines] - before[lines]
    seen = D[lines[:, None], at]
    without = seen - np.stack([1.0 - share, share], axis=1)[:, :, None] * jump
    scale = error[lines, None]
    is_inside = ((at >= 1) & (at <= n))[:, :, None]
    size = [(((x / scale) ** 2) * is_inside).sum(axis=(1, 2)) for x in (seen, without)]
    is_less = size[1] < size[0]
    D[lines[is_less, None], at[is_less]] = without[is_less]
    return np.asarray(D[:, 1:-1])


def _runs(is_on: FloatArray) -> list[tuple[int, int]]:
    """First and last of each run of true ones, the last exclusive."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_on.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
