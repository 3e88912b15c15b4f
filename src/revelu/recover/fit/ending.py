"""When a search with ever more neurons ends: where more of them explain hardly more."""

from dataclasses import dataclass

import numpy as np

from revelu.recover.refine.network_fit import Samples


@dataclass(frozen=True)
class Ending:
    """What ends a search that has not explained its samples."""

    max_neurons: int = 128
    """It ends at a network of more neurons than this and four times the inputs,"""
    per_kink: float = 4.0
    max_by_kinks: int = 32
    """at more than ``per_kink`` for each kink of a line and than ``max_by_kinks``: it crosses the
    hyperplane of each neuron once,"""
    max_work: float = 4e9
    """or at more multiplications a step,"""
    most_work: float = 4e11
    """or in all where the noise is estimated: answers of its digits show what they can on lines,
    and random starts are a last resort."""
    stuck: float = 0.95
    """It is stuck where twice the neurons leave more than this share of what fewer left of the
    answers' variation; on the way to random networks it was 0.85 at most,"""
    in_noise: float = 3.0
    stuck_in_noise: float = 0.5
    """and where fewer left no more than ``in_noise`` times what noise may, at less."""
    near_noise: float = 10.0
    """It ends near noise where the best before left ``near_noise`` times what that may, or less, as
    soon as the next one leaves more than the same share of it."""

    def most_neurons(self, d: int, n_kinks: int | None = None) -> int:
        """The widest network that is looked for.

        Parameters
        ----------
        n_kinks : int, optional
            Of a line; where none was seen, that says nothing.
        """
        most = max(self.max_neurons, 4 * d)
        if not n_kinks:
            return most
        return min(most, max(self.max_by_kinks, int(self.per_kink * n_kinks)))

    def obstacle(
        self,
        left: list[tuple[int, float]],
        samples: Samples,
        limit: float,
        n_kinks: int | None = None,
        *,
        is_estimate: bool,
    ) -> str:
        """Say why the search ends; an empty string where it goes on.

        Parameters
        ----------
        left : list of (int, float)
            The widths so far, and which share of the variation each left.
        samples : Samples
            The last ones.
        limit : float
            The reduced cost that noise alone may leave.
        n_kinks : int, optional
            Of a line.
        is_estimate : bool
            Whether that rests on an estimate: then what is left near it is noise.
        """
        width, last = left[-1]
        n, d = samples.X.shape
        fewer = min((share for w, share in left if 2 * w <= width), default=np.inf)
        spread = samples.evenly().spread()
        is_in_noise = is_estimate and fewer * spread <= self.in_noise * limit
        gain = self.stuck_in_noise if is_in_noise else self.stuck
        is_stuck = min(share for w, share in left if 2 * w > width) > gain * fewer
        # What explains its own samples alone leaves too little, and says nothing at once.
        honest = [share for _, share in left[:-1] if share * spread > limit]
        before = min(honest, default=np.inf)
        is_noise = is_estimate and last * spread > limit
        is_noise &= (
            before * spread <= self.near_noise * limit and last > self.stuck_in_noise * before
        )
        is_wide = width >= self.most_neurons(d, n_kinks) or n * d * width > self.max_work
        if not (is_stuck or is_noise or is_wide):
            return ""
        said = _not_found(width, n)
        if is_noise:
            return (
                f"{said}; what is left, {min(before, last) * spread:.2g} errors of an answer, is "
                "too little to show neurons, which answers of a digit or two more would"
            )
        if is_stuck:
            return (
                f"{said}, and twice the neurons explain no more: the target may have many more of "
                "them, or more hidden layers, which these answers did not show, or be no network"
            )
        return said

    def too_long(self, left: list[tuple[int, float]], samples: Samples) -> str:
        """Say that searches for wider networks would take too long."""
        width = max(w for w, _ in left)
        return f"{_not_found(width, len(samples.X))}; wider ones would take far longer"


def _not_found(width: int, n_answers: int) -> str:
    return (
        f"no network of one hidden layer and up to {width} neurons was found that explains "
        f"{n_answers:,} answers to within their digits"
    )
