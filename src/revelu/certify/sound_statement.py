"""What a sound bound says: of outputs, and of the answers that a last step makes of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from revelu.numerics.balls import Ball
from revelu.numerics.links import Link
from revelu.types import FloatArray


@dataclass(frozen=True)
class SoundBound:
    """What two networks differ by in a box.

    Attributes
    ----------
    box : (lo, hi)
        Of every input.
    bounds : ndarray, shape (k,)
        No output differs by more anywhere in the box, in units of the outputs.
    found : ndarray, shape (k,)
        The largest difference of each output that a search met: it is at least that.
    where : ndarray, shape (d,)
        An input at which the largest of these is.
    n_matched, n_neurons : int
        Hidden neurons of the first network that have a partner, and all of it.
    link : Link or None
        What undoes the target's last step, behind which these outputs are; None where it is not
        known whether there is one.
    """

    box: tuple[float, float]
    bounds: FloatArray
    found: FloatArray
    where: FloatArray
    n_matched: int
    n_neurons: int
    link: Link | None = None

    @property
    def largest(self) -> float:
        """The bound of all outputs."""
        return float(self.bounds.max(initial=0.0))

    @property
    def largest_found(self) -> float:
        """The largest difference met."""
        return float(self.found.max(initial=0.0))

    @property
    def of(self) -> str:
        """What the bounds are of: ``answers``, or what is before the target's last step."""
        if self.link is None:
            return "outputs before any last step"
        if not self.link.has_head:
            return "answers"
        shift = " less the last one" if self.link.contrast else ""
        return f"{self.link.form.behind}{shift}"

    @property
    def largest_answer(self) -> float | None:
        """The bound of the answers after the target's last step; None where none is known.

        A step that is nowhere steeper than its steepest place moves an answer by that much at
        most.  Of probabilities the range of what all outputs do counts: the last one stays, and
        another two may go either way.
        """
        if self.link is None or not np.isfinite(self.link.form.steepest):
            return None
        if not self.link.has_head:
            return self.largest
        form, scale = self.link.form, self.link.scale
        second, first = sorted([0.0, *self.bounds.tolist()])[-2:]
        moved = Ball.exactly(first) + Ball.exactly(second if form.contrast else 0.0)
        steepest = Ball.exactly(form.steepest) * Ball.exactly(scale)
        return min(float((steepest * moved).high), scale * (form.high - form.low))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {
            "of": self.of,
            "largest_answer": self.largest_answer,
            "box": list(self.box),
            "largest": self.largest,
            "largest_found": self.largest_found,
            "bounds": self.bounds.tolist(),
            "found": self.found.tolist(),
            "where": self.where.tolist(),
            "matched": self.n_matched,
            "neurons": self.n_neurons,
        }

    @property
    def words(self) -> str:
        """What it says, in a sentence."""
        lo, hi = self.box
        said = (
            f"nowhere in the box [{lo:g}, {hi:g}] do {self.of} differ by more than "
            f"{self.largest:.2g}, in exact arithmetic; a search met {self.largest_found:.2g}"
        )
        if self.link is None or not self.link.has_head:
            return said
        answers = self.link.form.given
        if self.largest_answer is None:
            return f"{said}; the answers, {answers}, have no bound"
        return f"{said}; the answers, {answers}, differ by {self.largest_answer:.2g} at most"
