"""The errors that count as agreement with a target's answers."""

from dataclasses import dataclass

import numpy as np

from revelu.oracle import NoiseFloor
from revelu.types import FloatArray


@dataclass(frozen=True)
class Agreement:
    """How far a network and its target may be apart, for each law of the target's noise.

    Attributes
    ----------
    laxest : float
        Half of the digits of an answer, relative to what varies, but no laxer than this unless
        the answers themselves are noisier.
    noise_factor : float
        Errors of answers that have all their digits.
    coarse_factor : float
        Errors of answers that lack digits: the largest of a hundred thousand normal ones is
        half of eight.
    grid_units : float
        Answers on a grid err by half a unit, and the network may err by as much again; twice
        that is agreement.
    random_factor : float
        Deviations of noise drawn anew for every answer: six are exceeded once in five hundred
        million answers.
    n_deviations : float
        Of an output: no more than these are taken for its size.
    """

    laxest: float = 1e-6
    noise_factor: float = 32.0
    coarse_factor: float = 8.0
    grid_units: float = 2.0
    random_factor: float = 6.0
    n_deviations: float = 4.0

    def tolerances(self, noise: NoiseFloor, spread: FloatArray) -> FloatArray:
        """The largest |error| of each output that counts as agreement on N(0, I).

        Half of the digits that a float64 answer has: recovery divides differences of
        answers by the distance of kinks, and kinks nearer than the square root of the noise
        floor are not told apart by any of its steps.  Of noisier answers the square root
        would be lax: there it is a small multiple of the noise itself, and of rounded answers
        two units of their rounding, the typical or the answer's own, whichever is larger.

        Each output has its own: the weights of a hidden layer err in proportion to its
        neurons, and so, of a smaller output, by less.

        Parameters
        ----------
        spread : ndarray, shape (k,)
            Standard deviation of the outputs.

        Returns
        -------
        ndarray, shape (k,)
            In units of the outputs.
        """
        # |x|^2 = d on N(0, I), so the terms of an answer are sqrt(2) times the scale.
        scale = np.sqrt(2.0) * noise.scale
        # An output that is always 0 errs only by the network's arithmetic.
        floor = np.where(scale > 0, 0.0, np.finfo(np.float64).eps * scale.max())
        if noise.grid is not None:
            # nu is a root mean square, since the spacing changes tenfold at powers of ten.
            rounding = self.grid_units * np.sqrt(12.0) * noise.nu * scale
        elif noise.law == "random":
            rounding = self.random_factor * noise.nu * scale
        else:
            # A constant that hides the variation must not buy a tolerance.
            varying = np.minimum(scale, self.n_deviations * spread)
            precise = noise.has_all_digits(spread)
            factor = np.where(precise, self.noise_factor, self.coarse_factor)
            lax = min(noise.half_digits, self.laxest) * varying
            rounding = np.maximum(factor * noise.nu * scale, lax)
        return np.asarray(np.maximum(rounding, floor))

    def of_answers(self, noise: NoiseFloor, Y: FloatArray) -> FloatArray:
        """The same of each answer, which may lack more digits than typical ones, shape (n, k)."""
        if noise.grid is not None:
            return np.asarray(self.grid_units * noise.grid.spacing(Y))
        if noise.errs_inside:
            return self.coarse_factor * noise.rounding(Y)
        return np.zeros(Y.shape)

    def no_tail(self, typical: FloatArray, own: FloatArray) -> FloatArray:
        """Tolerances of rounded answers, no larger than a decade above what half of them have.

        The spacing of significant digits changes tenfold at powers of ten, so that the typical one
        is within ten times the median.  Of answers with a heavy tail, such as exponentials, it is
        that of a few, by far the largest, and all others would agree with anything.

        Parameters
        ----------
        typical : ndarray, shape (k,)
        own : ndarray, shape (n, k)
            Of each answer; 0 of one that is 0, which has no digits.
        """
        sizes = [column[column > 0.0] for column in own.T]
        most = [10 * np.median(of) if len(of) else np.inf for of in sizes]
        return np.asarray(np.minimum(typical, most))

    def in_units(self, noise: NoiseFloor) -> str:
        """What the tolerances are, in terms of what the target's answers lack themselves."""
        if noise.grid is not None:
            return f", {self.grid_units:g} units of the target's rounding to {noise.grid}"
        if noise.law == "random":
            # It is "about", since the noise is measured on a few dozen answers.
            return f", about {self.random_factor:g} deviations of the target's noise"
        if noise.errs_inside:
            return f", {self.coarse_factor:g} errors of its {noise.law} answers"
        return ""
