"""What the gradients do where a neuron above known layers bends.

Where ``u = v h(x) + c`` crosses 0, the gradients change by the neuron's column times the slopes of
u.  With the changes ``J_q`` along pixel q, and ``h_q`` the slopes of the features,

    J_p (v h_q) = J_q (v h_p)    for all q,

p being the pixel along which the crossing was seen: as many equations for v as there are features
that the gradients tell apart there, for two queries each.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.probe.gradient import CheckedGradients
from revelu.recover.structured.below import KnownFilters
from revelu.recover.structured.pixel_lines import PixelLines
from revelu.types import BoolArray, FloatArray, IntArray

__all__ = ["Crossing", "CrossingSearch"]


@dataclass(frozen=True, eq=False)
class Crossing:
    """A critical point, and what the gradients do there."""

    x: FloatArray
    """Shape (d,)."""
    pixel: int
    """Along which it was seen."""
    pixels: IntArray
    """Shape (m,).  Along which the gradients were asked; the former is among them."""
    direction: FloatArray
    """Shape (k,).  Of the neuron's column, of norm 1."""
    changes: FloatArray
    """Shape (m,).  Of the outputs' derivatives along the pixels, in that direction."""

    def equations(self, below: KnownFilters) -> FloatArray:
        """What the weights of the neuron are orthogonal to, (m, channels, rows, columns)."""
        X = np.repeat(self.x[None], len(self.pixels), axis=0)
        slopes = below.slopes(X, self.pixels)
        along = self.pixels == self.pixel
        J = self.changes[:, None, None, None]
        rows = J[along] * slopes - J * slopes[along]
        return np.asarray(rows[~along] / max(float(np.abs(rows).max()), np.finfo(float).tiny))


@dataclass(frozen=True)
class CrossingSearch:
    """How they are measured."""

    gradients: CheckedGradients = field(default_factory=CheckedGradients)
    same: float = 1e-4
    """How far the changes may be off one direction, relative to the largest."""

    def measure(
        self, lines: PixelLines, points: IntArray | BoolArray, pixels: IntArray
    ) -> list[Crossing]:
        """Measure some of the critical points seen; what is not one neuron's is left out.

        Parameters
        ----------
        points : ndarray, shape (n,)
            Of all that the lines have shown.
        pixels : ndarray of int, shape (m,)
        """
        X, room = lines.X[points], lines.room[points]
        jumps = lines.jumps[points]
        along = lines.pixels[points]
        n = len(X)
        sides = np.concatenate([X, X])
        half = room / 2
        sides[np.arange(2 * n), np.tile(along, 2)] += np.concatenate([-half, half])
        noise = lines.noise
        directions = np.eye(lines.image.size)[pixels]
        J, errors = self.gradients.measure(
            lines.oracle, noise, sides, np.tile(half, 2), lines.rng, directions
        )
        found = []
        for i in range(n):
            error = float(errors[i] + errors[n + i])
            if not np.isfinite(error):
                continue
            change = (J[n + i] - J[i]).T  # (m, k)
            direction = jumps[i] / np.linalg.norm(jumps[i])
            along_it = change @ direction
            rest = np.linalg.norm(change - along_it[:, None] * direction, axis=1)
            size = float(np.linalg.norm(noise.unit))
            slack = SIGMAS * error * size + self.same * np.abs(along_it).max()
            if rest.max() <= slack:
                found.append(Crossing(X[i], int(along[i]), pixels, direction, along_it))
        return found
