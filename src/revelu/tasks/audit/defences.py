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
    OnGrid,
    Rounded,
    RoundedLogits,
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
    step : float
        Of the grid that it rounds answers to.
    """

    name: str
    degradations: tuple[Degradation, ...] = ()
    leaves: Literal["numbers", "top", "label", "labels"] = "numbers"
    relative: float = 0.0
    sigma: float = 0.0
    step: float = 0.0

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
        then errs by its own digits and at most ``share`` of that besides.  Noise can be added to a
        grid whose rounding, half a step, is ``share`` of it at most.  Digits and noise do not make
        each other: digits of an answer near 0 are finer than any noise, and those of one far from
        0 are coarser.
        """
        if self.name == other.name:
            return False
        if not self.degradations:
            return True
        if self.step > 0.0:
            return 0.5 * self.step <= share * other.sigma
        if self.sigma > 0.0:
            return self.sigma <= (share if self.clips else 1.0) * other.sigma
        return 0.0 < self.relative <= share * other.relative

    @property
    def rounds(self) -> bool:
        """Whether answers are rounded so that those of a network may look like labels or steps."""
        kinds = Rounded | OnGrid | RoundedLogits
        return any(isinstance(degradation, kinds) for degradation in self.degradations)

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
    bits: int = 16,
    decimals: int = 2,
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
    bits : int
        Of the grid, whose unit is 1 of probabilities, and of others the power of two that is
        nearest to ``deviation``.
    decimals : int
        That the logits of probabilities are rounded to.
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
    unit = 1.0 if probabilities or deviation == 0.0 else 2.0 ** round(np.log2(deviation))
    step = unit * 2.0**-bits
    listed.append(Defence(f"grid 2^-{bits}", (OnGrid(step),), step=step))
    if probabilities and n_outputs > 1:
        listed.append(Defence(f"logits to {decimals} decimals", (RoundedLogits(decimals),)))
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
    # What noise can be added to needs no attack where the noise hides nothing.
    grids = [
        i
        for i in others
        if any(isinstance(d, OnGrid | RoundedLogits) for d in listed[i].degradations)
    ]
    others = [i for i in others if i not in grids]
    exact = [i for i in others if listed[i].leaves == "numbers"]
    return [*exact, *digits, *noisy, *grids, *(i for i in others if i not in exact)]
