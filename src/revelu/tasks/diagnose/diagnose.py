"""Diagnose: which assumptions of the theorems hold of a target, measured."""

import logging
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revelu.errors import InputError, LimitReachedError, SaturatedError
from revelu.network import LayeredNetwork, Network
from revelu.network.arrangement import Arrangement, arrangement
from revelu.network.regularity import Regularity, regularity
from revelu.network.smoothing import MOST_BITS, failure_bound, smoothed
from revelu.network.top_layers import top_layers
from revelu.numerics.threads import in_one_thread
from revelu.oracle import Domain, NoiseFloor
from revelu.probe.axes import (
    arrange,
    axis_line,
    kink_normals,
    n_hyperplane_queries,
    n_off_pieces,
    scan_axis,
)
from revelu.probe.scan import LineScan
from revelu.recover.method import Law
from revelu.recover.shallow.lines import reach
from revelu.recovery import Status
from revelu.tasks.diagnose.diagnosis import (
    COSTS,
    Diagnosis,
    Perturbed,
    notes_on_top,
    precision,
    query_counts,
)
from revelu.tasks.diagnose.kind import KindSearch
from revelu.tasks.diagnose.labels import kind_of_labels
from revelu.tasks.extract.precision import refusal
from revelu.tasks.job import Job, Refusal, open_target
from revelu.tasks.open_weights import beyond_methods, weights_of
from revelu.tasks.progress import Listener
from revelu.tasks.units import network_in_coordinates
from revelu.types import FloatArray

log = logging.getLogger(__name__)

_IN_BOX = "axes are followed everywhere, not inside a box: leave out the box"
_NO_DIGITS = "labels have no digits to measure a gradient by: ask for numbers"


@in_one_thread
def diagnose(
    target: Any,
    perturb: float | None = None,
    budget: int | None = None,
    seed: int = 0,
    executor: Executor | None = None,
    progress: Listener | None = None,
    *,
    dim_in: int | None = None,
    trust: bool = False,
    max_seconds: float | None = None,
    domain: Domain | None = None,
    link: str = "auto",
    box: tuple[float, float] | None = None,
    labels: bool = False,
) -> Diagnosis:
    """Measure which assumptions of the theorems hold of a target.

    Parameters
    ----------
    target : Oracle, Network, callable or str
        What to ask; see :func:`revelu.open_oracle`.  The weights of a ``Network`` and of
        a local file are used, too.
    perturb : float, optional
        Add a uniform number of ``[-perturb, perturb]`` to each weight, and say what that
        does; only where the weights are known.
    box : (lo, hi), optional
        No coordinate of any query leaves it.  Axes do: by queries there is then no more than the
        kind of function inside.
    labels : bool
        Ask for labels alone: how many classes there are, and how often each.
    budget, seed, executor, progress, dim_in, trust, max_seconds, domain, link
        As of :func:`revelu.extract`.

    Returns
    -------
    Diagnosis
        A target that cannot be measured is a status, not an exception.

    Raises
    ------
    InputError
        If an argument makes no sense.
    TargetError
        If the target fails, or answers what is not numbers.

    Notes
    -----
    Source: DG21, Definition 1, Lemmas 2, 6 and 7, Theorems 1 to 5.
    """
    oracle = open_target(
        target,
        seed,
        progress,
        dim_in=dim_in,
        budget=budget,
        box=box,
        trust=trust,
        executor=executor,
        max_seconds=max_seconds,
        domain=domain,
        link=link,
    )
    if oracle.box is not None and labels:
        raise InputError("labels are asked for everywhere; inside a box they are not supported")
    network = weights_of(target)
    if network is not None:
        network = network_in_coordinates(network, oracle.domain)
    if perturb is not None and network is None:
        raise InputError("perturb needs a Network, or a local file whose weights can be read")
    return _Examiner(oracle, seed, progress, "diagnose", "diag", network).run(
        perturb, labels=labels
    )


@dataclass
class _Examiner(Job):
    """One diagnosis: from the weights, by queries, and what follows from both.

    Attributes
    ----------
    network : Network or None
        The weights, where they are known.
    max_axes : int
        Axes whose kinks are looked for by queries.
    max_gradient_queries : int
        What gradients beside kinks may take where there are more axes than one.
    max_exact_axes, max_deep_axes : int
        Axes cut from weights of one hidden layer, and of more: deeper networks have many more
        hyperplanes than neurons.
    """

    network: Network | None
    max_axes: int = 16
    max_gradient_queries: int = 20_000
    max_exact_axes: int = 1_024
    max_deep_axes: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        for_axes, self.for_noise, self.for_exact_axes, self.for_weights = self.seeds.spawn(4)
        (self.for_kind,) = self.seeds.spawn(1)
        self.rng = np.random.default_rng(for_axes)
        self.scans: dict[int, LineScan] = {}
        self.normals: dict[int, tuple[FloatArray, FloatArray]] = {}
        self.hidden: dict[int, int] = {}
        self.notes: list[str] = []
        self.seems_deep = False

    def run(self, perturb: float | None, *, labels: bool = False) -> Diagnosis:
        """Run to the end, whatever it is; a spent budget keeps what was measured."""
        found = Diagnosis(
            None, self.oracle.dim_in, ledger=self.oracle.ledger(), network=self.network
        )
        if self.network is not None:
            found = self._from_weights(found, self.network, perturb)
        if labels:
            return self._of_labels(found)
        noise = self.measure_noise(self.for_noise)
        if isinstance(noise, Refusal):
            return self._ended(found, noise.status, noise.reason)
        self.tell("looking what kind of function it is")
        kind = KindSearch(self.oracle, noise, np.random.default_rng(self.for_kind)).run()
        if self.oracle.tally.are_labels:
            # The first answers may all be of one class.
            return self._of_labels(found)
        found = replace(found, noise=noise, kind=kind)
        self._note_what_is_out_of_reach(noise)
        if kind.function == "steps" and kind.extract_with is None:
            return self._ended(found, Status.NOT_IN_CLASS, kind.evidence[-1])
        if (refused := refusal(noise)) is not None:
            return self._ended(found, refused.status, refused.reason)
        if Law.of(noise) is not Law.FLOAT64:
            return self._ended(found, *self._without_digits(noise))
        if self.oracle.box is not None:
            return self._ended(found, *self._by_weights_alone(_IN_BOX))
        status, reason = self._ask(noise)
        if self.scans:
            arranged = arrange(self.scans, self.normals, self.hidden)
            self._note_what_was_seen(arranged)
            found = replace(
                found,
                n_axes=len(self.scans),
                measured=regularity(arranged),
                precision=precision(arranged, noise),
            )
        return self._ended(found, status, reason)

    def _ask(self, noise: NoiseFloor) -> tuple[Status | None, str]:
        """Scan axes, then measure hyperplanes on as many of them as queries allow."""
        axes = _some_axes(self.oracle.dim_in, self.max_axes, self.rng)
        spent = 0
        try:
            for i, axis in enumerate(axes):
                self.tell(f"following axis {i + 1} of {len(axes)}")
                interval = reach(self.oracle, axis_line(self.oracle.dim_in, axis))
                scan = scan_axis(self.oracle, noise, axis, self.rng, interval)
                if not scan.complete:
                    return Status.NOT_IN_CLASS, f"axis {axis}: {scan.message}"
                self.scans[axis] = scan
                self.hidden[axis] = n_off_pieces(self.oracle, scan, self.rng)
            for i, axis in enumerate(axes):
                n_queries = n_hyperplane_queries(self.scans[axis])
                if not len(self.scans[axis].kinks):
                    continue
                if self.normals and spent + n_queries > self.max_gradient_queries:
                    break
                self.tell(f"measuring hyperplanes on axis {i + 1} of {len(axes)}")
                self.normals[axis] = kink_normals(self.oracle, noise, self.scans[axis], axis)
                spent += n_queries
        except LimitReachedError as error:
            return Status.BUDGET_EXHAUSTED, str(error)
        except SaturatedError as error:
            return Status.PARTIAL, f"{error}: the axes lead where classes have no digits"
        return None, ""

    def _from_weights(
        self, found: Diagnosis, network: Network, amplitude: float | None
    ) -> Diagnosis:
        """Everything that needs no query; a bad amplitude is a bad argument."""
        if isinstance(network, LayeredNetwork):
            self.notes.append(
                f"weights: {network.describe()}; the figures are of its rows of ReLUs"
            )
            network = network.to_dense()
        changed = None
        if amplitude is not None:
            changed = smoothed(network, amplitude, np.random.default_rng(self.for_weights))
        self.tell("reading the weights")
        most = self.max_exact_axes if len(network.weights) <= 2 else self.max_deep_axes
        axes = _some_axes(network.dim_in, most, np.random.default_rng(self.for_exact_axes))
        if len(axes) < network.dim_in:
            self.notes.append(f"weights: {len(axes)} of {network.dim_in} axes, drawn by the seed")
        top = top_layers(network)
        found = replace(found, exact=exact_regularity(network, axes), top_layers=top)
        if changed is not None and amplitude is not None:
            after = exact_regularity(changed, axes)
            perturbed = Perturbed(
                amplitude=float(amplitude),
                network=changed,
                regularity=after,
                failure_bound=failure_bound(network, amplitude, after.delta),
                lemma_amplitude=2.0**-network.dim_in,
            )
            found = replace(found, perturbed=perturbed)
            if changed == network:
                self.notes.append(f"an amplitude of {amplitude:g} is lost in rounding: no change")
            if network.dim_in > MOST_BITS:
                self.notes.append(
                    f"the proofs' amplitude, 2^-{network.dim_in}, is nothing in float64, which has "
                    f"{MOST_BITS} bits: only a larger one changes weights near 1"
                )
        self.notes += notes_on_top(network, top)
        return found

    def _note_what_is_out_of_reach(self, noise: NoiseFloor) -> None:
        """Say which layers of the file an extraction would ask for in vain."""
        if not isinstance(self.network, LayeredNetwork):
            return
        is_float64, in_box = noise.law == "float64", self.oracle.box is not None
        layers = self.network.layers
        if said := beyond_methods(layers, is_float64=is_float64, in_box=in_box):
            self.notes.append(f"extract: no method here finds {', or '.join(said)}")

    def _note_what_was_seen(self, found: Arrangement) -> None:
        d = self.oracle.dim_in
        if len(self.scans) < d:
            self.notes.append(f"queries: {len(self.scans)} of {d} axes, drawn by the seed")
        with_kinks = sum(len(scan.kinks) > 0 for scan in self.scans.values())
        if len(self.normals) < with_kinks:
            self.notes.append(f"queries: hyperplanes were measured on {len(self.normals)} axes")
        unknown = sum(
            int(np.isnan(normals).any(axis=1).sum()) for normals, _ in self.normals.values()
        )
        if unknown:
            self.notes.append(
                f"queries: the hyperplanes of {unknown} kinks are not known, for the kinks are "
                "faint or too near others"
            )
        self.seems_deep = bool(found.tied.any())
        if self.seems_deep:
            self.notes.append(
                f"queries: {int(found.tied.sum())} of {len(found.normals)} hyperplanes end "
                "between axes: there is more than one hidden layer"
            )
        if all(scan.reach < 1e3 for scan in self.scans.values()):
            self.notes.append("queries: axes were followed only as far as no class is saturated")

    def _without_digits(self, noise: NoiseFloor) -> tuple[Status | None, str]:
        reason = (
            f"the answers err by {noise.nu.max():.1g} of their size ({noise.law}): too much to "
            "measure a gradient beside a kink; ask for float64"
        )
        return self._by_weights_alone(reason)

    def _by_weights_alone(self, reason: str) -> tuple[Status | None, str]:
        """How a diagnosis ends whose queries show no regularity."""
        if self.network is None:
            return Status.PARTIAL, f"{reason}, or give a file whose weights can be read"
        self.notes.append(f"{reason}: the figures are from the weights alone")
        return None, ""

    def _of_labels(self, found: Diagnosis) -> Diagnosis:
        """Say what labels alone show."""
        self.tell("asking for labels")
        try:
            kind, changed = kind_of_labels(self.oracle, self.rng)
        except LimitReachedError as error:
            return self._ended(found, Status.BUDGET_EXHAUSTED, str(error))
        found = replace(found, kind=kind)
        if changed:
            return self._ended(found, Status.NOT_DETERMINISTIC, changed)
        return self._ended(found, *self._by_weights_alone(_NO_DIGITS))

    def _ended(self, found: Diagnosis, status: Status | None, reason: str) -> Diagnosis:
        """Attach the ledger, the theorems' counts and what was noted."""
        evidence = [reason] if reason else []
        if (risk := found.at_risk) is not None:
            named = f"most at risk is condition {risk.number}: {risk.text}; {COSTS[risk.name]}"
            evidence.append(named)
        if found.precision is not None:
            evidence.append(found.precision.text)
        counts: dict[str, float | None] = {}
        if found.regularity is not None and found.delta is not None:
            widths: tuple[int, ...] = (found.regularity.n_hyperplanes,)
            if self.network is not None:
                widths = self.network.architecture[1:-1]
            elif self.seems_deep:
                widths = ()
            counts = query_counts(found.delta, self.oracle.dim_in, widths)
        found = replace(
            found,
            status=status,
            query_counts=counts,
            link=self.oracle.link,
            domain=self.oracle.where,
            dim_in=self.oracle.dim_in,
            warnings=(*self.notes, *(self.oracle.domain.notes if self.oracle.domain else ())),
        )
        return self.finished(found, *evidence)


def exact_regularity(network: Network, axes: Sequence[int]) -> Regularity:
    """Measure the conditions of Definition 1 from the weights.

    Parameters
    ----------
    axes : sequence of int
        The axes to cut.

    Returns
    -------
    Regularity
        Of a network with two hidden layers or more, the top two included (condition 7),
        on the positive half-axes of what feeds them.
    """
    top = None
    if len(network.weights) > 2:
        upper = Network(network.weights[-2:], network.biases[-2:], network.skip)
        top = regularity(arrangement(upper, range(upper.dim_in), start=0.0))
    return regularity(arrangement(network, axes), top)


def _some_axes(d: int, most: int, rng: np.random.Generator) -> list[int]:
    """All axes where they are few, or else as many as may be, drawn at random."""
    if d <= most:
        return list(range(d))
    return sorted(int(i) for i in rng.choice(d, most, replace=False))
