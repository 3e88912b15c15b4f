"""A two-layer network behind an oracle that answers in a box only (DG21, Theorem 2)."""

from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.box import Box
from revelu.recover.shallow.restricted import RestrictedSearch, explain_box
from revelu.recover.signs import resolve_signs
from revelu.recovery import Recovery, Status
from revelu.types import FloatArray

# Points tried for home, where the target is affine around.
_MAX_HOMES = 8


@dataclass
class Boxed:
    """A network that is known in a box, and grows where a check failed.

    Attributes
    ----------
    oracle : Oracle
    noise : NoiseFloor
        Measured in the box.
    search : RestrictedSearch
    sign_notes : list of str
        Why a skip was kept, if it was.
    """

    oracle: Oracle
    noise: NoiseFloor
    search: RestrictedSearch
    sign_notes: list[str] = field(default_factory=list)

    def run(self) -> Recovery:
        """Grow until fresh points of the box, and of its corners, are explained."""

        def draw(n: int) -> tuple[FloatArray, FloatArray]:
            X = self.search.box.draw(self.search.rng, n)
            return X, self.oracle(X)

        try:
            return self._finish(explain_box(self.search, draw))
        except LimitReachedError as error:
            return self._recovery(Status.BUDGET_EXHAUSTED, [str(error)])

    def repair(self, X: FloatArray) -> Recovery:
        """Look for what is missing at points where the network was wrong, shape (n, d)."""
        try:
            self.search.hold_against(X, self.oracle(X))
            return self._finish(self.search.explain())
        except LimitReachedError as error:
            return self._recovery(Status.BUDGET_EXHAUSTED, [str(error)])

    def _finish(self, explained: bool) -> Recovery:
        if explained:
            return self._recovery(Status.UNVERIFIED, [])
        search = self.search
        if search.bends:
            reason = (
                f"{search.n_bent} of {search.n_bent + search.n_straight} hyperplanes end or bend "
                "inside the box: the target has more than one hidden layer, or is not piecewise "
                "affine"
            )
            return self._recovery(Status.NOT_IN_CLASS, [reason])
        reason = f"{search.wrong().mean():.1%} of the points asked are not explained"
        return self._recovery(Status.PARTIAL, [*filter(None, [reason, search.message])])

    def _recovery(self, status: Status, notes: list[str]) -> Recovery:
        network: Network | None
        network, sign_notes = resolve_signs(self.search.network, self.noise.half_digits)
        self.sign_notes = list(sign_notes)
        if status is Status.NOT_IN_CLASS:
            network, sign_notes = None, []
        evidence = tuple(sign_notes + notes)
        ledger = self.oracle.ledger()
        return Recovery(status, network, ledger=ledger, evidence=evidence, method="two_layer")


def recover_in_box(
    oracle: Oracle, noise: NoiseFloor, seed: int | np.random.SeedSequence
) -> Recovery:
    """Recover ``f(x) = A relu(W x + b) + V x + c`` for the ``x`` of the oracle's box.

    Parameters
    ----------
    oracle : Oracle
        With a box; no query leaves it.
    noise : NoiseFloor
        Measured in the box.
    seed : int or SeedSequence

    Returns
    -------
    Recovery
        ``UNVERIFIED`` with the network where every point asked was explained,
        ``NOT_IN_CLASS`` where hyperplanes end or bend in the box, ``PARTIAL`` where some
        points were not explained, ``BUDGET_EXHAUSTED`` with what was found.

    Notes
    -----
    Source: DG21, Theorem 2 and section 3.4.1.  A neuron whose hyperplane misses the box is
    affine there, and no neuron of the answer.
    """
    return search_box(oracle, noise, seed)[0]


def search_box(
    oracle: Oracle, noise: NoiseFloor, seed: int | np.random.SeedSequence
) -> tuple[Recovery, Boxed | None]:
    """As :func:`recover_in_box`, with what can go on where a check fails."""
    rng = np.random.default_rng(seed)
    lo, hi = oracle.box or (-np.inf, np.inf)
    box = Box.cube(lo, hi, oracle.dim_in)
    status, reason = Status.UNVERIFIED, ""
    for _ in range(_MAX_HOMES):
        home = rng.uniform(lo, hi, oracle.dim_in)
        try:
            boxed = Boxed(oracle, noise, RestrictedSearch(oracle, box, noise, rng, home))
        except SaturatedError as error:
            reason = f"{error}, as at every one of {_MAX_HOMES} points tried"
            continue
        except LimitReachedError as error:
            status, reason = Status.BUDGET_EXHAUSTED, str(error)
            break
        return boxed.run(), boxed
    ended = Recovery(status, None, ledger=oracle.ledger(), evidence=(reason,), method="two_layer")
    return ended, None
