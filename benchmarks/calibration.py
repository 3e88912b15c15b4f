"""Calibration: stated standard errors, held against the truth.

    python benchmarks/calibration.py                print the table (an hour)
    python benchmarks/calibration.py --quick        one network a row
    python benchmarks/calibration.py --row "noise"  rows whose law or network has this
    python benchmarks/calibration.py --probes       without recovering any network
    python benchmarks/calibration.py --write        and keep it on its page

Every estimate that the code gives an error with is measured on networks whose truth is known: where
a line bends and by how much, a gradient, a row, and all weights of what is recovered.  (Estimate -
truth) / error is 1 in the root mean square where errors are true.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from runner import Line, Table, by_row, main
from trained import standardised, trained

import revelu
from revelu.errors import ReveluError
from revelu.network import Network, align, zoo
from revelu.oracle import InFloat32, NoiseFloor, Noisy, Oracle, Rounded, measure_noise
from revelu.oracle.degradations import Degradation
from revelu.probe.gradient import CheckedGradients
from revelu.probe.hyperplane import points_on_hyperplanes
from revelu.probe.kink_lines import KinkLines
from revelu.recover.fit.fit import Fit
from revelu.recover.fit.from_lines import FromLines
from revelu.recover.fit.sightings import Sightings
from revelu.recover.rows import Rows
from revelu.types import BoolArray, FloatArray

LOW, HIGH, FAR, MOST_FAR = 0.5, 1.5, 4.0, 0.02
KINDS = ("place", "jump", "gradient", "row", "weights")

Z = dict[str, list[FloatArray]]


@dataclass(frozen=True)
class Steps(Degradation):
    """Answers on a grid of any step."""

    step: float

    def degrade_answer(self, Y: FloatArray) -> FloatArray:
        """Return the nearest multiples."""
        return np.asarray(np.rint(Y / self.step) * self.step)


class InHalf:
    """A network whose products are summed in float32, and its layers' numbers float16."""

    def __init__(self, network: Network) -> None:
        self.truth = Network(
            *([half(a) for a in part] for part in (network.weights, network.biases))
        )
        self.dim_in = network.dim_in

    def __call__(self, X: FloatArray) -> FloatArray:
        """Answer, (n, d) -> (n, k)."""
        H = half(X)
        last = len(self.truth.weights) - 1
        for i, (W, b) in enumerate(zip(self.truth.weights, self.truth.biases, strict=True)):
            Z = half(half(H.astype(np.float32) @ W.T.astype(np.float32)) + b)
            H = Z if i == last else np.maximum(Z, 0.0)
        return H


def half(values: FloatArray) -> FloatArray:
    """The nearest float16 numbers."""
    return np.asarray(values).astype(np.float16).astype(np.float64)


def in_float32(network: Network) -> tuple[Any, Network]:
    """A target that computes in float32, and the network that it is."""
    return InFloat32("sequential")(network), InFloat32.truth(network)


def in_half(network: Network) -> tuple[Any, Network]:
    """The same in float16."""
    target = InHalf(network)
    return target, target.truth


def behind(make: Callable[[], Degradation]) -> Callable[[Network], tuple[Any, Network]]:
    """Targets behind a degradation."""
    return lambda network: (make()(network), network)


LAWS: dict[str, Callable[[Network], tuple[Any, Network]]] = {
    "float64": lambda network: (network, network),
    "float32": in_float32,
    "float16": in_half,
    **{f"{n} decimals": behind(lambda n=n: Steps(10.0**-n)) for n in (3, 4, 6)},
    "5 significant digits": behind(lambda: Rounded(5)),
    **{f"grid of 2^-{n}": behind(lambda n=n: Steps(2.0**-n)) for n in (8, 12, 20)},
    **{f"noise of {s:.0e}": behind(lambda s=s: Noisy(s, seed=5)) for s in (1e-3, 1e-5)},
}


def random(widths: tuple[int, ...]) -> Callable[[int], Network]:
    """Random networks of a shape."""
    return lambda seed: zoo.random_network(widths, seed=seed)


def trained_on(data: str, hidden: tuple[int, ...]) -> Callable[[int], Network]:
    """Networks that scikit-learn has trained."""

    def make(seed: int) -> Network:
        X, y = standardised(data, seed)
        return trained(X, y, hidden, seed % 2**31)

    return make


NETWORKS: dict[str, Callable[[int], Network]] = {
    "narrow, 6-4-1": random((6, 4, 1)),
    "wide, 4-10-2": random((4, 10, 2)),
    "10-16-1": random((10, 16, 1)),
    "20-30-3": random((20, 30, 3)),
    "64-32-10": random((64, 32, 10)),
    "trained, 10-6-1": trained_on("diabetes", (6,)),
    "two layers, 6-4-3-1": random((6, 4, 3, 1)),
    "two layers, wide, 4-8-5-1": random((4, 8, 5, 1)),
}


@dataclass
class Found:
    """What one line of the table was made of."""

    z: Z = field(default_factory=lambda: {kind: [] for kind in KINDS})
    n_runs: int = 0
    n_certified: int = 0

    def cells(self) -> list[str]:
        """The root mean square, and the share beyond 4; a mark where a bar is missed."""
        found = []
        for kind in KINDS:
            z = np.concatenate([np.zeros(0), *self.z[kind]])
            z = z[np.isfinite(z)]
            if not len(z):
                found.append("-")
                continue
            rms, far = float(np.sqrt(np.mean(z**2))), float(np.mean(np.abs(z) > FAR))
            mark = "" if LOW <= rms <= HIGH and far <= MOST_FAR else " (!)"
            found.append(f"{rms:.2f}, {far:.1%}{mark}")
        return [*found, f"{self.n_certified} of {self.n_runs}"]


def measure(law: str, network: Network, seed: int, found: Found, *, recovers: bool = True) -> None:
    """Add what one network behind a law shows."""
    target, truth = LAWS[law](network)
    found.n_runs += 1
    # Networks are drawn from the seed itself: inputs from the same one would be their weights.
    asked, drawn = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(drawn)
    with Oracle(target, network.dim_in) as oracle:
        noise = measure_noise(oracle, asked)
        for of in (_of_kinks, _of_gradients, _of_rows):
            of(oracle, noise, truth, rng, found.z)
    if not recovers:
        return
    recovery = revelu.extract(LAWS[law](network)[0], dim_in=network.dim_in, seed=seed)
    if recovery.standard_errors is None or recovery.network is None:
        return
    found.n_certified += 1
    if (z := of_weights(recovery, truth)) is not None:
        found.z["weights"].append(z)


def _of_kinks(
    oracle: Oracle, noise: NoiseFloor, truth: Network, rng: np.random.Generator, z: Z, n: int = 40
) -> None:
    """Places and jumps that four points show, of lines that nothing else bends near."""
    W, b = truth.weights[0], truth.biases[0]
    rows = rng.integers(len(W), size=n)
    norms = np.linalg.norm(W, axis=1)
    X, M = points_on_hyperplanes(rng, W[rows] / norms[rows, None], b[rows] / norms[rows])
    reach = np.array([_room(truth, x, m) for x, m in zip(X, M, strict=True)])
    lines = KinkLines(X, M, 0.1 * reach * rng.uniform(-1.0, 1.0, n), 0.8 * reach)
    seen = lines.read(oracle(lines.points), noise)
    told = seen.is_kink
    step = (0.5 * reach)[:, None] * M
    # By the weights: differences of answers would err as the estimates do.
    steeper = truth.jacobian(X + step) - truth.jacobian(X - step)
    jumps = np.einsum("nkd,nd->nk", steeper, M) / noise.unit
    off = np.linalg.norm(seen.jumps - jumps, axis=1)
    z["place"].append(seen.tau[told] / seen.tau_error[told])
    z["jump"].append(off[told] / (seen.error * np.linalg.norm(seen.jumps, axis=1))[told])


def _room(truth: Network, x: FloatArray, m: FloatArray, far: float = 1.0) -> float:
    """How far a line through a kink at ``x`` goes without another, both ways."""
    kinks = np.abs(truth.kinks_on_line(x, m, (-far, far)))
    return float(min(kinks[kinks > 1e-9].min(initial=far), far))


def _of_gradients(
    oracle: Oracle, noise: NoiseFloor, truth: Network, rng: np.random.Generator, z: Z, n: int = 12
) -> None:
    X = rng.standard_normal((n, truth.dim_in))
    zs = truth.preactivations(X)[0]
    reach = np.abs(zs / np.linalg.norm(truth.weights[0], axis=1)).min(axis=1)
    J, errors = CheckedGradients().measure(oracle, noise, X, reach, rng)
    off = (J - truth.jacobian(X)) / noise.unit[:, None] / errors[:, None, None]
    z["gradient"].append(off[np.isfinite(errors)].ravel())


def _of_rows(
    oracle: Oracle,
    noise: NoiseFloor,
    truth: Network,
    rng: np.random.Generator,
    z: Z,
    n_lines: int = 5,
) -> None:
    """Rows and biases that lines have met, where answers are such that lines are used for them.

    A row that no other line has met may be the sum of two.  Of deeper networks not all kinks are
    the first layer's.
    """
    is_coarse = noise.typical_coarseness > Fit().coarse_lines
    if truth.n_hidden > 1 or noise.is_exact or is_coarse:
        return
    # Rows take the norms of their output columns.
    own = np.column_stack([truth.weights[0], truth.biases[0]])
    own *= np.linalg.norm(truth.weights[1], axis=0)[:, None]
    sizes = np.linalg.norm(own[:, :-1], axis=1)
    known, how = Sightings(Rows.none(truth.dim_in, truth.dim_out)), FromLines()
    for _ in range(n_lines):
        if how.look(oracle, known, noise, rng) is None:
            return
    for j in np.flatnonzero(known.n_met > 0):
        row = np.append(known.rows.W[j], known.rows.b[j])
        products = own[:, :-1] @ row[:-1] / sizes
        mine = int(np.abs(products).argmax())
        errors = np.sqrt([known.variance(int(j), c) for c in np.eye(len(row))])
        z["row"].append((row - np.sign(products[mine]) * own[mine]) / errors)


def of_weights(recovery: revelu.Recovery, truth: Network) -> FloatArray | None:
    """Errors of all weights and biases in those that are stated; None of a neuron too many."""
    if recovery.network is None or recovery.standard_errors is None:
        return None
    if recovery.network.n_hidden != truth.n_hidden:
        return None
    found = align(recovery.network, truth)
    if not found.matched:
        return None
    orders = [np.arange(truth.dim_in), *found.permutations, np.arange(truth.dim_out)]
    errors = [
        (W[np.ix_(rows, columns)], b[rows])
        for (W, b), rows, columns in zip(
            recovery.standard_errors, orders[1:], orders[:-1], strict=False
        )
    ]
    told = [np.isfinite(W) for W, _ in errors]
    z = []
    mine, others = (of_norm_one(f, told) for f in (found.aligned, found.reference))
    for (W, b), (V, c), (dW, db) in zip(mine, others, errors, strict=True):
        z += [((W - V) / dW).ravel(), (b - c) / db]
    return np.concatenate(z)


def of_norm_one(network: Network, told: list[BoolArray]) -> list[tuple[FloatArray, FloatArray]]:
    """Weights and biases of layers, of whose hidden rows the weights that are told have norm 1."""
    layers, scale = [], np.ones(network.dim_in)
    for i, (V, b, is_told) in enumerate(zip(network.weights, network.biases, told, strict=True)):
        W = V * scale
        norms = np.linalg.norm(np.where(is_told, W, 0.0), axis=1)
        scale = np.where((norms > 0.0) & (i < network.n_hidden), norms, 1.0)
        layers.append((W / scale[:, None], b / scale))
    return layers


@dataclass(frozen=True)
class Row:
    """Networks of one kind behind a law of answers, and whether they are recovered."""

    law: str
    network: str
    recovers: bool
    networks: int = 4

    @property
    def name(self) -> str:
        """Both."""
        return f"{self.law}, {self.network}"


def one(row: Row, seed: int, _limit: float | None) -> dict[str, Any]:
    """Measure one network; what a run that fails has shown until then counts."""
    found = Found()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            measure(row.law, NETWORKS[row.network](seed), seed, found, recovers=row.recovers)
        except ReveluError as error:
            print(f"{row.name}, {seed}: {error}", flush=True)
    z = {kind: np.concatenate([np.zeros(0), *some]).tolist() for kind, some in found.z.items()}
    return {"z": z, "n_runs": found.n_runs, "n_certified": found.n_certified}


def together(runs: list[dict[str, Any]]) -> Found:
    """All runs of a row as one."""
    z = {kind: [np.array(run["z"][kind]) for run in runs] for kind in KINDS}
    return Found(z, *(sum(run[name] for run in runs) for name in ("n_runs", "n_certified")))


def line(row: Row, runs: list[dict[str, Any]]) -> Line:
    """One line of the table."""
    cells = together(runs).cells()
    return dict(
        zip(
            ("answers", "networks", *KINDS, "certified"),
            (row.law, row.network, *cells),
            strict=True,
        )
    )


TABLE = Table(
    "calibration",
    __doc__,
    lambda given: [Row(law, network, not given.probes) for law in LAWS for network in NETWORKS],
    one,
    by_row(line),
    first_seed=8_660_000,
    apart=4,
    named_by=2,
    options=lambda parser: parser.add_argument(
        "--probes", action="store_true", help="without recovering any network"
    ),
)

if __name__ == "__main__":
    main(TABLE)
