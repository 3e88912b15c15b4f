"""When a search with ever more neurons ends: where more of them explain hardly more."""

from dataclasses import dataclass

import numpy as np

from revelu.recover.refine.network_fit import Samples


@dataclass(frozen=True)
class Ending:
    """What ends a search that has not explained its samples.

    Attributes
    ----------
    max_neurons : int
        It ends at a network of more neurons than this and four times the inputs,
    max_work : float
        or at more multiplications a step.
    stuck : float
        It is stuck where twice the neurons leave more than this share of what fewer left of
        the answers' variation; on the way to random networks it was 0.85 at most,
    near_noise, stuck_in_noise : float
        and where the best before left no more than so many times what noise may, as soon as the
        next one leaves more than this share of that.
    """

    max_neurons: int = 128
    max_work: float = 4e9
    stuck: float = 0.95
    near_noise: float = 10.0
    stuck_in_noise: float = 0.5

    def most_neurons(self, d: int) -> int:
        """The widest network that is looked for."""
        return max(self.max_neurons, 4 * d)

    def obstacle(
        self, left: list[tuple[int, float]], samples: Samples, limit: float, *, is_estimate: bool
    ) -> str:
        """Say why the search ends; an empty string where it goes on.

        Parameters
        ----------
        left : list of (int, float)
            The widths so far, and which share of the variation each left.
        samples : Samples
            The last ones.
        limit : float
            The reduced cost that noise alone may leave,
        is_estimate : bool
            and whether it rests on an estimate: then what is left near it is noise.
        """
        width, last = left[-1]
        n, d = samples.X.shape
        fewer = min((share for w, share in left if 2 * w <= width), default=np.inf)
        is_stuck = min(share for w, share in left if 2 * w > width) > self.stuck * fewer
        # What explains its own samples alone leaves too little, and says nothing.
        spread = samples.evenly().spread()
        honest = [share for _, share in left[:-1] if share * spread > limit]
        before = min(honest, default=np.inf)
        is_noise = is_estimate and last * spread > limit
        is_noise &= before * spread <= self.near_noise * limit and last > self.stuck_in_noise * before
        is_wide = width >= self.most_neurons(d) or n * d * width > self.max_work
        if not (is_stuck or is_noise or is_wide):
            return ""
        said = (
            f"no network of one hidden layer and up to {width} neurons was found that explains "
            f"{n:,} answers to within their digits"
        )
        if is_noise:
            return (
                f"{said}; what is left, {min(before, last) * spread:.2g} errors of an answer, is "
                "too little to show neurons, which answers of a digit or two more would"
            )
        if is_stuck:
            return (
                f"{said}, and twice the neurons explain no more: the target may have more hidden "
                "layers, which these answers did not show"
            )
        return said
