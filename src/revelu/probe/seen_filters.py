"""Filters as corners show them, each with its covariance, and which of them are one.

A row is known up to its scale, so two are one where ``theta_1 - s theta_2`` is 0 within

    C_1 + s^2 C_2

for some s, and both tell more of it than one (Kalman 1960).  A face that took another one's kink
for its own is off by more; it is of a known filter where random ones are hardly ever as near.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc

from revelu.numerics.confidence import FALSE_ALARM, SIGMAS
from revelu.types import FloatArray

__all__ = ["SeenFilter", "associated"]


@dataclass(frozen=True)
class SeenFilter:
    """A filter, as a corner shows it.

    Attributes
    ----------
    kernel : ndarray, shape (channels, rows, columns)
    b : float
    covariance : ndarray, shape (entries + 1, entries + 1)
        Of its numbers, b last, as if their scale was known.
    is_least : bool
        The bias is the least that it may be: only ties were seen.
    is_oriented : bool
        Whether the sign is known.
    """

    kernel: FloatArray
    b: float
    covariance: FloatArray
    is_least: bool
    is_oriented: bool

    @property
    def row(self) -> FloatArray:
        """All numbers, b last, (entries + 1,)."""
        return np.append(self.kernel, self.b)

    @property
    def error(self) -> float:
        """The largest standard error, relative to the kernel."""
        variance = np.diag(self.covariance)[: self.kernel.size + (not self.is_least)].max()
        return float(np.sqrt(variance) / np.linalg.norm(self.kernel))

    def turned(self, sides: tuple[slice, ...]) -> "SeenFilter":
        """Return it with rows and columns turned."""
        order = np.arange(self.kernel.size).reshape(self.kernel.shape)[sides].ravel()
        order = np.append(order, self.kernel.size)
        return replace(
            self, kernel=self.kernel[sides], covariance=self.covariance[np.ix_(order, order)]
        )

    def with_row(self, row: FloatArray) -> "SeenFilter":
        """Return it with other numbers, b last."""
        return replace(self, kernel=row[:-1].reshape(self.kernel.shape), b=float(row[-1]))

    @property
    def roots(self) -> FloatArray:
        """One standard error in each of its directions, in rows, (entries + 1, entries + 1)."""
        values, V = np.linalg.eigh(self.covariance)
        return np.asarray((V * np.sqrt(np.maximum(values, 0.0))).T)

    def compared(self, other: "SeenFilter") -> tuple[float, float, FloatArray]:
        """Return the scale of another one, how many errors apart they are then, and weights."""
        n = self._n_compared(other)
        a, b = self.row[:n], other.row[:n]
        scale = float(a @ b) / float(b @ b)
        # No row is known better than to the digits of the inputs.
        floor = np.finfo(np.float32).eps ** 2 * float(a @ a) * np.eye(n)
        for _ in range(n):
            C = self.covariance[:n, :n] + scale**2 * other.covariance[:n, :n] + floor
            W = np.linalg.pinv(C, hermitian=True)
            before, scale = scale, float(b @ W @ a) / float(b @ W @ b)
            if abs(scale - before) <= np.finfo(np.float32).eps * abs(scale):
                break
        apart = a - scale * b
        return scale, float(np.sqrt(max(float(apart @ W @ apart), 0.0))), np.asarray(W)

    def is_near(self, other: "SeenFilter", n_known: int) -> bool:
        """Whether none of this many random kernels was as near to another one's."""
        cosine = float((self.kernel * other.kernel).sum())
        cosine /= float(np.linalg.norm(self.kernel) * np.linalg.norm(other.kernel))
        # Directions within an angle, whatever their signs, are this share of all.
        n, sine = self.kernel.size, max(1.0 - cosine**2, 0.0)
        share = betainc((n - 1) / 2.0, 0.5, sine) if n > 1 else 1.0
        return bool(n_known * share <= FALSE_ALARM)

    def _n_compared(self, other: "SeenFilter") -> int:
        """How many numbers decide: where a bias is the least that it may be, the kernel's."""
        return self.kernel.size + (not (self.is_least or other.is_least))

    def oriented_by(self, other: "SeenFilter") -> "SeenFilter":
        """Return it with the sign of another estimate of it, where that is known alone."""
        if self.is_oriented or not other.is_oriented:
            return self
        sign = np.sign(self.compared(other)[0])
        return replace(self.with_row(sign * self.row), is_oriented=True)

    def joined(self, other: "SeenFilter") -> "SeenFilter":
        """Return the filter of which both tell, as this one is scaled."""
        found = self.oriented_by(other)
        scale, apart, W = found.compared(other)
        if apart > self.most_apart or other.is_least:
            return found
        gain = self.covariance @ W
        row = found.row + gain @ (scale * other.row - found.row)
        covariance = self.covariance - gain @ self.covariance
        return replace(found.with_row(row), covariance=(covariance + covariance.T) / 2.0)

    @property
    def most_apart(self) -> float:
        """How many errors apart two rows of one filter are at most."""
        return float(np.sqrt(self.kernel.size) + SIGMAS)


def associated(seen: list[SeenFilter], before: list[SeenFilter]) -> list[SeenFilter]:
    """Join what was seen of each filter.

    Parameters
    ----------
    before : list of SeenFilter
        Those that were known, from some of the same lines.
    """
    found: list[SeenFilter] = []
    # The surest first: another one is one that is known, or a new one.
    for new in sorted(seen, key=_vagueness):
        at = _match(new, found)
        if at is None:
            found.append(new)
        else:
            found[at] = found[at].joined(new)
    for old in before:
        at = _match(old, found)
        if at is None:
            found.append(old)
        else:
            sure, vague = sorted([found[at], old], key=_vagueness)
            found[at] = sure.oriented_by(vague)
    return found


def _vagueness(one: SeenFilter) -> tuple[bool, float]:
    return one.is_least, -one.b if one.is_least else one.error


def _match(new: SeenFilter, known: list[SeenFilter]) -> int | None:
    """Which of the known ones another one is; None where it is none of them."""
    if not known:
        return None
    apart = [one.compared(new)[1] for one in known]
    best = int(np.argmin(apart))
    if apart[best] <= new.most_apart:
        return best
    near = [abs((one.kernel * new.kernel).sum()) / np.linalg.norm(one.kernel) for one in known]
    best = int(np.argmax(near))
    return best if known[best].is_near(new, len(known)) else None
