"""Defences: what an owner may do to answers before anyone sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from revelu.oracle import (
    Degradation,
    Float32,
    Labels,
    Noisy,
    Normalised,
    Rounded,
    TopProbability,
)
from revelu.tasks.job import stream
from revelu.types import FloatArray


@dataclass(frozen=True)
class Defence:
    """A defence, and what kind of answers it leaves.

    Attributes
    ----------
    name : str
        What tables call it; ``none`` for the answers as they are.
    leaves : {"numbers", "top", "label"}
        All numbers, one number a row, or a class.
    """

    name: str
    degradations: tuple[Degradation, ...] = ()
    leaves: Literal["numbers", "top", "label"] = "numbers"

    def of(self, Y: FloatArray) -> FloatArray:
        """Return what is answered instead of ``Y (n, k)``."""
        for degradation in self.degradations:
            Y = degradation.degrade_answer(Y)
        return Y


def defences(
    deviation: float,
    n_outputs: int,
    seed: int,
    *,
    probabilities: bool,
    digits: Sequence[int] = (6, 4, 3, 2),
    noises: Sequence[float] = (1e-4, 1e-2),
) -> list[Defence]:
    """List the defences that make sense for a target, the answers as they are first.

    Parameters
    ----------
    deviation : float
        Of the outputs: the unit of the noise.
    n_outputs : int
        Of a single one there is no largest.
    seed : int
        Of the noise.
    probabilities : bool
        Whether rows sum to 1, and are to do so with noise.
    digits : sequence of int
        That answers are rounded to.
    noises : sequence of float
        In units of ``deviation``.
    """
    listed = [Defence("none"), Defence("float32", (Float32(),))]
    listed += [Defence(f"{n} digits", (Rounded(n),)) for n in digits]
    for share in noises:
        # The noise is kept apart from the random choices of an attack with the same seed.
        noise: tuple[Degradation, ...] = (Noisy(share * deviation, stream("audi") + seed),)
        exponent = round(np.log10(share))
        noise += (Normalised(),) if probabilities else ()
        listed.append(Defence(f"noise 1e{exponent}", noise))
    if n_outputs > 1:
        listed.append(Defence("top-1 probability", (TopProbability(),), "top"))
    return [*listed, Defence("labels", (Labels(),), "label")]
