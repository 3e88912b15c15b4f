"""Exact recovery of a network of two hidden layers (DG21, Theorem 3 and section 3.5).

    f(x) = A relu(V relu(W x + b) + c) + e,    d1 <= d independent rows w_j

The paper's four steps: the hyperplanes of a line (3.5.1); which of them are the first
layer's (3.5.2, Algorithm 7); their signs (3.5.3); and the top two layers, asked through a
right inverse of W, as a two-layer network on the positive orthant (3.5.4, Theorem 2).
Beyond the paper: any number of outputs, and a last fit of all layers together.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.box import Box
from revelu.recover.deep.first_layer import FirstLayer, recover_first_layer
from revelu.recover.line import Peeling
from revelu.recover.refine.gauss_newton import Layers, polish
from revelu.recover.shallow.one_hidden import first_line
from revelu.recover.shallow.restricted import RestrictedSearch, explain_box
from revelu.recover.signs import resolve_signs
from revelu.recovery import Recovery, Status
from revelu.types import FloatArray

# With a right inverse whose condition number is larger, what derivatives leave of the
# digits, half or more, is gone.
_WORST_CONDITION = 1e6

# Points tried for home, where the top layers are affine around.
_MAX_HOMES = 8

# Equations a parameter of the last fit, and the share of what the recovery has asked that
# it may cost: one output needs many more queries for as many equations as ten do.
_EQUATIONS = 1.2
_POLISH_SHARE = 0.5


class TopLayers:
    """What lies above a known first layer, as a function of what that one puts out.

    A point ``h >= 0`` is asked at ``x = W^+ (h - b)``, of all inputs the shortest that
    give it (DG21, section 3.5.4).

    Parameters
    ----------
    oracle : Oracle
    first : FirstLayer
    """

    def __init__(self, oracle: Oracle, first: FirstLayer) -> None:
        self.oracle, self.first = oracle, first
        self.inverse = np.linalg.pinv(first.W)
        self.dim_in = len(first.W)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Ask one round, (n, d1) -> (n, k)."""
        return self.oracle(self.inputs(X))

    def round(self) -> AbstractContextManager[None]:
        """Count the calls made inside as one round."""
        return self.oracle.round()

    def inputs(self, H: FloatArray) -> FloatArray:
        """Return inputs that the first layer takes to ``H``, shape (n, d)."""
        return np.asarray((H - self.first.b) @ self.inverse.T)

    def hidden(self, X: FloatArray) -> FloatArray:
        """Return what the first layer makes of inputs, shape (n, d1)."""
        return np.asarray(np.maximum(X @ self.first.W.T + self.first.b, 0.0))


@dataclass
class ThreeLayers:
    """Two known layers of neurons, which grow where a check failed.

    Attributes
    ----------
    oracle : Oracle
    noise : NoiseFloor
    top : TopLayers
    search : RestrictedSearch
        The upper layer's, on the positive orthant.
    rng : numpy.random.Generator
    block : (X, Y), optional
        The answers of the last fit, which every later one uses again.
    sign_notes : list of str
        Why a skip was kept, if it was.
    """

    oracle: Oracle
    noise: NoiseFloor
    top: TopLayers
    search: RestrictedSearch
    rng: np.random.Generator
    block: tuple[FloatArray, FloatArray] | None = None
    sign_notes: list[str] = field(default_factory=list)

    def run(self) -> Recovery:
        """Grow the upper layer until it explains N(0, I), then fit all layers."""

        def draw(n: int) -> tuple[FloatArray, FloatArray]:
            X = self.rng.standard_normal((n, self.oracle.dim_in))
            return self.top.hidden(X), self.oracle(X)

        try:
            return self._finish(explain_box(self.search, draw))
        except LimitReachedError as error:
            return self._recovery(Status.BUDGET_EXHAUSTED, *self._network(), str(error))

    def repair(self, X: FloatArray) -> Recovery:
        """Look for what is missing at inputs where the network was wrong, shape (n, d)."""
        try:
            self.search.hold_against(self.top.hidden(X), self.oracle(X))
            return self._finish(self.search.explain())
        except LimitReachedError as error:
            return self._recovery(Status.BUDGET_EXHAUSTED, *self._network(), str(error))

    def _finish(self, explained: bool) -> Recovery:
        if explained:
            explained = self._holds_for_block()
        network, notes = self._network()
        if explained:
            return self._recovery(Status.UNVERIFIED, self._polished(network), notes)
        notes = []
        share = float(self.search.wrong().mean())
        d1 = self.top.dim_in
        notes.append(
            f"a first layer of {d1} neurons was found; what lies above it is not one layer of "
            f"neurons: {share:.1%} of the inputs asked are not explained"
        )
        n_bent, n_straight = self.search.n_bent, self.search.n_straight
        if self.search.bends:
            notes.append(
                f"{n_bent} of {n_bent + n_straight} hyperplanes above the first layer end or "
                "bend: the network is deeper, or has more first-layer neurons than inputs"
            )
        elif self.top.first.n_missing:
            notes.append(
                f"gradients show {self.top.first.n_missing} more direction(s) in which the "
                "function changes: first-layer neurons are missing"
            )
        elif self.search.message:
            notes.append(self.search.message)
        partial = self._recovery(Status.PARTIAL, network, notes)
        return replace(partial, details={**partial.details, "deeper": self.search.bends})

    def _network(self) -> tuple[Network, list[str]]:
        """Both layers, the upper one's signs resolved where that can be done."""
        upper, notes = resolve_signs(self.search.network, self.noise.half_digits)
        self.sign_notes = list(notes)
        first = self.top.first
        if not len(upper.weights[0]) and upper.skip is not None:
            # Nothing bends above the first layer: it is the only one.
            V, c = upper.skip
            return Network([first.W, V], [first.b, c + upper.biases[-1]]), []
        network = Network([first.W, *upper.weights], [first.b, *upper.biases], skip=upper.skip)
        return network, notes

    def _holds_for_block(self) -> bool:
        """Ask the answers of the last fit, once and where they cost little; explain them."""
        if self.block is None:
            n_parameters = self._network()[0].n_parameters
            n = int(np.ceil(_EQUATIONS * n_parameters / len(self.noise.scale)))
            if n > _POLISH_SHARE * self.oracle.n_queries or not self.oracle.affords(n):
                return True
            X = self.rng.standard_normal((n, self.oracle.dim_in))
            with self.oracle.phase("polish"):
                self.block = X, self.oracle(X)
            self.search.hold_against(self.top.hidden(X), self.block[1])
        return self.search.explain()

    def _polished(self, network: Network) -> Network:
        """Fit all layers to the block of answers, if there is one."""
        if self.block is None:
            return network
        X, Y = self.block
        V, constant = network.skip or (None, 0.0)
        biases = [*network.biases[:-1], network.biases[-1] + constant]
        found = polish(Layers(list(network.weights), biases, V), X, Y)
        skip = None if found.V is None else (found.V, np.zeros(network.dim_out))
        return Network(found.weights, found.biases, skip=skip)

    def _recovery(self, status: Status, network: Network, notes: list[str], *more: str) -> Recovery:
        return _recovery(self.oracle, status, network, [*notes, *more], self.top.first)


def recover_three_layer(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    peeled: Peeling | None = None,
) -> Recovery:
    """Recover ``f(x) = A relu(V relu(W x + b) + c) + e`` by queries.

    Parameters
    ----------
    oracle : Oracle
    noise : NoiseFloor
        Every tolerance comes from it.
    seed : int or SeedSequence
    peeled : Peeling, optional
        The kinks and hyperplanes of a line, where they have been paid for.

    Returns
    -------
    Recovery
        ``UNVERIFIED`` with the network where every point asked was explained,
        ``PARTIAL`` where the first layer came back (``details["first_layer"]``) and not
        what is above it, ``NOT_IN_CLASS`` where a line has no affine pieces,
        ``BUDGET_EXHAUSTED`` with what was found.

    Notes
    -----
    Source: DG21, Theorem 3 and section 3.5.
    """
    return search_three_layers(oracle, noise, seed, peeled)[0]


def search_three_layers(
    oracle: Oracle,
    noise: NoiseFloor,
    seed: int | np.random.SeedSequence,
    peeled: Peeling | None = None,
) -> tuple[Recovery, ThreeLayers | None]:
    """As :func:`recover_three_layer`, with what can go on where a check fails."""
    rng = np.random.default_rng(seed)
    first: FirstLayer | None = None
    try:
        peeled = peeled or first_line(oracle, noise, rng)
        if not peeled.scan.complete:
            return _recovery(oracle, Status.NOT_IN_CLASS, None, [peeled.scan.message]), None
        first = recover_first_layer(oracle, noise, peeled, rng)
        obstacle = _obstacle(first)
        if obstacle:
            status = Status.PARTIAL if len(first.W) else Status.NOT_IN_CLASS
            return _recovery(oracle, status, None, [obstacle], first), None
        top = TopLayers(oracle, first)
        layers = ThreeLayers(oracle, noise, top, _settle(top, noise, rng), rng)
    except LimitReachedError as error:
        return _recovery(oracle, Status.BUDGET_EXHAUSTED, None, [str(error)], first), None
    except SaturatedError as error:
        return _recovery(oracle, Status.UNVERIFIED, None, [str(error)], first), None
    return layers.run(), layers


def _obstacle(first: FirstLayer) -> str:
    """Why the top layers cannot be asked through the first, if they cannot."""
    d1, d = first.W.shape
    if not d1:
        return (
            f"none of the {first.n_candidates} hyperplanes found bends the function wherever it "
            "goes: they are not a first layer's"
        )
    if d1 > d:
        return f"at least {d1} first-layer neurons for {d} inputs: they cannot be set at will"
    if first.condition > _WORST_CONDITION:
        return (
            f"the {d1} rows of the first layer are dependent (condition number "
            f"{first.condition:.1e}): its neurons cannot be set at will"
        )
    return ""


def _settle(top: TopLayers, noise: NoiseFloor, rng: np.random.Generator) -> RestrictedSearch:
    """Find a home where every first-layer neuron is on."""
    d, d1 = top.oracle.dim_in, top.dim_in
    box = Box(np.zeros(d1), np.full(d1, np.inf))
    for _ in range(_MAX_HOMES):
        X = rng.standard_normal((1, d))
        home = np.abs(X @ top.first.W.T + top.first.b)[0]
        # The inverse makes longer inputs of it, and their answers err by more.
        stretch = np.linalg.norm(top.inputs(home[None])) / np.sqrt(d)
        stretched = replace(noise, nu=noise.nu * max(float(stretch), 1.0))
        try:
            return RestrictedSearch(top, box, stretched, rng, home)
        except SaturatedError:
            continue
    raise SaturatedError(
        f"no affine piece was found above the first layer of {d1} neurons, at {_MAX_HOMES} points"
    )


def _recovery(
    oracle: Oracle,
    status: Status,
    network: Network | None,
    notes: list[str],
    first: FirstLayer | None = None,
) -> Recovery:
    details: dict[str, object] = {}
    if first is not None:
        details = {"first_layer": (first.W, first.b), "condition": first.condition}
    return Recovery(
        status,
        network,
        ledger=oracle.ledger(),
        evidence=tuple(notes),
        method="three_layer",
        details=details,
    )
