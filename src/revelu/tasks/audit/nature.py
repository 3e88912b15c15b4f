"""What a target looks like of which no network was found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from revelu.errors import LimitReachedError
from revelu.oracle import NoiseFloor, Oracle
from revelu.oracle.labels import are_labels
from revelu.probe.steps import Jumps, Steps
from revelu.tasks.audit.rows import AuditRow
from revelu.tasks.diagnose.kind import UNKNOWN, Kind, KindSearch
from revelu.tasks.job import random_seeds
from revelu.types import FloatArray

# Functions that are no network of ReLUs, whatever is made of their answers.
OTHERS = ("steps", "smooth")

_SMOOTH = "the answers curve at {share:.0%} of the places seen"


@dataclass(frozen=True)
class Nature:
    """What a target is, by few of its answers.

    Its methods raise ``TargetError`` if the target does not answer.
    """

    oracle: Oracle
    seed: int

    def at_once(self, noise: NoiseFloor | None, Y: FloatArray) -> Kind:
        """Whether it is a step function, which no attack on networks could recover; else unknown.

        It is looked for where neighbours mostly have the same answers, or probabilities no digits.
        Fits to the votes of a forest take a minute, and find nothing that is a network.

        Parameters
        ----------
        noise : NoiseFloor or None
            None where it could not be measured.
        Y : ndarray, shape (n, k)
            Some of its answers.
        """
        steps = Steps()
        if are_labels(Y) or not (noise is None or steps.may_be(noise)):
            return Kind()
        grid = None if noise is None else noise.numbers.grid
        with self.oracle.phase("noise"):
            return _of_jumps(steps.look(self.oracle, grid, self._rng(), votes=True))

    def after(self, notes: Sequence[str], noise: NoiseFloor | None, Y: FloatArray) -> Kind:
        """What kind of function it is, of which an attack has found no network.

        Parameters
        ----------
        notes : sequence of str
            What the attack has seen.
        noise, Y
            As of :meth:`at_once`.
        """
        if are_labels(Y):
            return _of_labels(notes)
        if noise is not None and noise.is_smooth:
            return Kind(function="smooth", evidence=(_SMOOTH.format(share=noise.curved),))
        with self.oracle.phase("noise"):
            if noise is None:
                return _of_jumps(Steps().look(self.oracle, None, self._rng(), votes=True))
            before, self.oracle.link = self.oracle.link, noise.link
            try:
                return KindSearch(self.oracle, noise, self._rng(), of_function=True).run()
            finally:
                self.oracle.link = before

    def is_noise(self, noise: NoiseFloor | None, X: FloatArray, Y: FloatArray) -> bool:
        """Whether answers are drawn anew by all that they vary by, and tell nothing of inputs.

        Of answers that are, those to the same inputs have nothing in common: a correlation of over
        three standard errors, ``n**-0.5`` each, is a share of the variance that inputs explain.

        Parameters
        ----------
        X, Y : ndarray, shape (n, d) and (n, k)
            The target's own inputs, and what they were answered.
        """
        if noise is None or noise.is_deterministic:
            return False
        try:
            with self.oracle.phase("noise"):
                again = self.oracle.at(X)
        except LimitReachedError:
            return False
        A, B = Y - Y.mean(axis=0), again - again.mean(axis=0)
        sizes = float(np.linalg.norm(A) * np.linalg.norm(B))
        return bool((A * B).sum() <= 3.0 * len(X) ** -0.5 * sizes)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(random_seeds("kind", self.seed))


def not_attacked(defence: str, kind: Kind | None) -> AuditRow:
    """The row of a target that is no network, which no attack on networks could tell of.

    Parameters
    ----------
    kind : Kind or None
        What has shown that, to be noted.
    """
    reason = "an attack: these are attacks on networks of ReLUs, and the target looks like none"
    notes = () if kind is None else kind.evidence
    return AuditRow(defence, "nothing", not_in_class=True, not_tried=(reason,), notes=notes)


def not_as_network(row: AuditRow) -> AuditRow:
    """A row whose attack took the answers of a network for those of something else.

    That it found nothing does not say that they give nothing away: no attack was made on them that
    knows what a defence has made of them.
    """
    reason = "an attack that knows this defence: those that were made saw no network in the answers"
    return replace(row, cut=True, not_in_class=False, not_tried=(*row.not_tried, reason))


def _of_labels(notes: Sequence[str]) -> Kind:
    """What labels look like, as a search for the network behind them has said."""
    words = {"steps": "parallel to axes", "smooth": "square of the distance"}
    for function, word in words.items():
        if said := tuple(note for note in notes if word in note):
            steps = "trees" if function == "steps" else UNKNOWN
            return Kind(function=function, steps=steps, evidence=said)
    return Kind()


def _of_jumps(seen: Jumps) -> Kind:
    if not any(seen):
        return Kind()
    which = "trees" if seen.along else "others"
    return Kind(function="steps", steps=which, evidence=tuple(said for said in seen if said))


def in_words(kind: Kind) -> str:
    """What a target looks like, in words that follow "looks like"; empty where that is unknown."""
    if kind.function == "steps":
        steps = {
            "trees": "trees or a forest: its answers jump at values of single inputs, and are "
            "constant between",
            "others": "nearest neighbours, or other regions of constant answers: these jump "
            "between, at values of no single inputs",
            UNKNOWN: "trees or nearest neighbours: its answers are constant but for jumps",
        }
        return steps[kind.steps]
    if kind.function == "smooth":
        return "a smooth function, such as a network of tanh units, a kernel or a Gaussian process"
    if kind.function == "piecewise linear":
        several = ", with several hidden layers" if kind.hidden_layers == "several" else ""
        return f"a network of ReLUs{several}: its answers are piecewise linear"
    return ""
