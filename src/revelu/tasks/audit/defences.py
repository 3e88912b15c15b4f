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
    leaves : {"numbers", "top", "label", "labels"}
        All numbers, one number a row, or a class; ``labels`` for a class of which the network is
        looked for.
    relative : float
        Most that it rounds an answer by, over the answer itself.
    sigma : float
        Standard deviation of its noise.
    """

    name: str
    degradations: tuple[Degradation, ...] = ()
    leaves: Literal["numbers", "top", "label", "labels"] = "numbers"
    relative: float = 0.0
    sigma: float = 0.0

    def of(self, Y: FloatArray) -> FloatArray:
        """Return what is answered instead of ``Y (n, k)``."""
        for degradation in self.degradations:
            Y = degradation.degrade_answer(Y)
        return Y

    def makes(self, other: "Defence", *, share: float = 0.1) -> bool:
        """Whether who gets these answers can make of them those behind another defence.

        The target's own answers make all others.  Independent noise adds up to more noise; where
        noisy answers were made probabilities again, that has moved them by their own noise at
        most, which is to be ``share`` of the other.  What is rounded can be rounded further: it
        then errs by its own digits and at most ``share`` of that besides.  Neither makes the
        other: digits of an answer near 0 are finer than any noise, and those of one far from 0
        are coarser.
        """
        if self.name == other.name:
            return False
        if not self.degradations:
            return True
        if self.sigma > 0.0:
            return self.sigma <= (share if self.clips else 1.0) * other.sigma
        return 0.0 < self.relative <= share * other.relative

    @property
    def clips(self) -> bool:
        """Whether noisy answers are changed again, by no more than their noise."""
        return any(isinstance(degradation, Normalised) for degradation in self.degradations)


def defences(
    deviation: float,
    n_outputs: int,
    seed: int,
    *,
    probabilities: bool,
    middle: float | None = None,
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
    middle : float, optional
        Above which a single answer says one of two classes.
    digits : sequence of int
        That answers are rounded to.
    noises : sequence of float
        In units of ``deviation``.
    """
    half_unit = float(np.finfo(np.float32).eps) / 2.0
    listed = [Defence("none"), Defence("float32", (Float32(),), relative=half_unit)]
    # Half a unit of the last of n digits, of a number that begins with 1.
    listed += [
        Defence(f"{n} digits", (Rounded(n),), relative=0.5 * 10.0 ** (1 - n)) for n in digits
    ]
    for share in noises:
        sigma = share * deviation
        # The noise is kept apart from the random choices of an attack with the same seed.
        noise: tuple[Degradation, ...] = (Noisy(sigma, stream("audi") + seed),)
        exponent = round(np.log10(share))
        noise += (Normalised(),) if probabilities else ()
        listed.append(Defence(f"noise 1e{exponent}", noise, sigma=sigma))
    if n_outputs == 1:
        of_two = () if middle is None else (Labels(middle),)
        return [*listed, *(Defence("labels", (labels,), "label") for labels in of_two)]
    listed.append(Defence("top-1 probability", (TopProbability(),), "top"))
    return [*listed, Defence("labels", (Labels(),), "label")]


def in_turn(listed: Sequence[Defence]) -> list[int]:
    """Return the places of defences in the order in which they are worth attacking.

    Of answers with fewer digits, or more noise, others can be made: where these give a network
    away, finer ones need no attack.  A middle number of digits comes first, then the finer ones,
    which are likelier to give something away where that does not, then the coarsest.
    """
    places = range(len(listed))
    rounded = [i for i in places if any(isinstance(d, Rounded) for d in listed[i].degradations)]
    rounded.sort(key=lambda i: listed[i].relative)
    middle = (len(rounded) - 1) // 2
    digits = [*rounded[middle : middle + 1], *rounded[:middle], *rounded[:middle:-1]]
    noisy = sorted((i for i in places if listed[i].sigma > 0.0), key=lambda i: -listed[i].sigma)
    others = [i for i in places if i not in digits and i not in noisy]
    exact = [i for i in others if listed[i].leaves == "numbers"]
    return [*exact, *digits, *noisy, *(i for i in others if i not in exact)]
