"""Networks from Gaussian samples alone: exactness, samples, error bars, seconds.

    python benchmarks/samples.py                  print the tables
    python benchmarks/samples.py --row "(10, 5)"  rows whose name has this
    python benchmarks/samples.py --write          and keep them on their page

Random unit rows, |a| in [0.5, 1.5] with random signs, b in [-1, 1]; p = m (d + 1).  The
number of neurons is not given.  Exact: every weight, bias and output weight is within 1e-9
of the truth, signs included.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from runner import Line, Table, main, timed

import revelu
from revelu.network import l2_distance, l2_norm
from revelu.numerics.hermite import network_coefficient
from revelu.numerics.matching import match_rows
from revelu.numerics.quadratic import fit_quadratic
from revelu.probe.moments import estimate_moments
from revelu.recover.fit.covariance import standard_errors
from revelu.recover.fit.tensors import UnitNeurons, estimate_again, estimate_units, recover_units
from revelu.recover.refine.network_fit import Samples

FIRST_SEED = 17_000_000
EXACT = 1e-9

# Two standard normal deviations hold 90% between them.
NINETY = 1.6448536269514722


@dataclass(frozen=True)
class Truth:
    """A drawn network."""

    W: np.ndarray
    b: np.ndarray
    a: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Evaluate, (n, d) -> (n,)."""
        return np.maximum(X @ self.W.T + self.b, 0.0) @ self.a


def draw(d: int, m: int, seed: int) -> Truth:
    rng = np.random.default_rng([seed, 0])
    W = rng.standard_normal((m, d))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    a = rng.uniform(0.5, 1.5, m) * rng.choice([-1.0, 1.0], m)
    return Truth(W, rng.uniform(-1.0, 1.0, m), a)


def errors_of(
    W: np.ndarray, b: np.ndarray, a: np.ndarray, truth: Truth, *, signs: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of all parameters, by neuron of the truth, and the partners; inf if one lacks."""
    if len(W) != len(truth.W):
        return np.full((len(truth.W), truth.W.shape[1] + 2), np.inf), np.arange(len(truth.W))
    rows, turned = match_rows(
        np.column_stack([W, b]), np.column_stack([truth.W, truth.b]), up_to_sign=not signs
    )
    off = [turned[:, None] * W[rows] - truth.W, turned * b[rows] - truth.b, a[rows] - truth.a]
    return np.column_stack(off), rows


def learnt(recovery: revelu.Recovery, truth: Truth) -> tuple[np.ndarray, np.ndarray]:
    (W, A), (b, _) = recovery.network.weights, recovery.network.biases
    return errors_of(W, b, A[0], truth)


class Measured(Protocol):
    """A row that says how it is measured, and what its line is."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def networks(self) -> int:
        """How many runs it has."""

    def measure(self, seed: int) -> dict[str, Any]:
        """Measure one network."""

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """Say what all of them gave."""


def measured(row: Measured, seed: int, _limit: float | None) -> dict[str, Any]:
    """Measure one network of a row."""
    return row.measure(seed)


def lines_of(found: Mapping[Measured, list[dict[str, Any]]]) -> Iterator[Line]:
    """Each row's own line."""
    return (row.line(runs) for row, runs in found.items())


def column(runs: list[dict[str, Any]], name: str) -> np.ndarray:
    """One figure of all runs."""
    return np.array([run[name] for run in runs])


@dataclass(frozen=True)
class Moments:
    """From exact moments; biases 0, 1 and -1 are among them."""

    d: int
    m: int
    order: int = 1
    networks: int = 20

    @property
    def name(self) -> str:
        """Its shape."""
        return f"moments ({self.d}, {self.m}){', order 2' * (self.order == 2)}"

    def measure(self, seed: int) -> dict[str, Any]:
        """Recover one network."""
        d, m, order = self.d, self.m, self.order
        truth = draw(d, m, seed)
        truth.b[:3] = 0.0, 1.0, -1.0
        T = network_coefficient(2, truth.a, truth.W, truth.b)
        values, U = np.linalg.eigh(T)
        B = U[:, np.argsort(-np.abs(values))[:m]].T if m < d else np.eye(d)
        tensors = {
            k: network_coefficient(k, truth.a, truth.W @ B.T, truth.b)
            for k in range(1, 2 * order + 3)
        }
        start = time.process_time()
        units = recover_units(tensors, m, order, np.random.default_rng(seed))[0]
        seconds = time.process_time() - start
        off, _ = errors_of(units.W @ B, units.b, units.a, truth, signs=order == 1)
        return {"worst": float(np.abs(off).max()), "cpu": seconds}

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """Errors and time."""
        worst = column(runs, "worst")
        return {
            "exact moments": self.name,
            "networks": f"{len(runs)}",
            "error, median": f"{np.median(worst):.1e}",
            "largest (bar)": f"{worst.max():.1e} (≤ 1e-12)",
            "CPU s (bar)": f"{np.median(column(runs, 'cpu')):.2f} (≤ 1)",
        }


@dataclass(frozen=True)
class Exact:
    """From n samples without noise."""

    d: int
    m: int
    n: int
    label: str
    bar: str
    networks: int = 20

    @property
    def name(self) -> str:
        """Its shape, and how many samples."""
        return f"({self.d}, {self.m}), {self.label}"

    def measure(self, seed: int) -> dict[str, Any]:
        """Recover one network."""
        truth = draw(self.d, self.m, seed)
        X = np.random.default_rng([seed, 1]).standard_normal((self.n, self.d))
        y = truth(X)
        wall, start = time.perf_counter(), time.process_time()
        recovery = revelu.learn(X, y, seed=seed)
        wall, cpu = time.perf_counter() - wall, time.process_time() - start
        worst = float(np.abs(learnt(recovery, truth)[0]).max())
        return {"worst": worst, "status": recovery.status.value, "seconds": wall, "cpu": cpu}

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """How many are exact."""
        worst = column(runs, "worst")
        silent = sum(run["worst"] > EXACT and run["status"] == "recovered" for run in runs)
        seconds, cpu = (np.median(column(runs, name)) for name in ("seconds", "cpu"))
        return {
            "(d, m)": self.name,
            "samples": f"{self.n:,}",
            "networks": f"{len(runs)}",
            "exact (bar)": f"{(worst <= EXACT).mean():.0%} ({self.bar})",
            "error, median": f"{np.median(worst):.1e}",
            "wrong and silent": f"{silent}",
            "seconds, CPU seconds, median": f"{seconds:.1f}, {cpu:.1f}",
        }


@dataclass(frozen=True)
class Tensor:
    """The tensor step alone, no fit to samples."""

    n: int
    bar: float
    networks: int = 20

    @property
    def name(self) -> str:
        """What it is, and how many samples."""
        return f"tensor step, {self.n:,}"

    def measure(self, seed: int) -> dict[str, Any]:
        """Recover one network."""
        d, m = 10, 5
        truth = draw(d, m, seed)
        X = np.random.default_rng([seed, 1]).standard_normal((self.n, d))
        y = truth(X)
        start = time.process_time()
        quadratic = fit_quadratic(X, y)
        values, U = np.linalg.eigh(quadratic.M)
        B = U[:, np.argsort(-np.abs(values))[:m]].T
        moments = estimate_moments([(X, y)], quadratic, B)
        units = estimate_units(moments, m, np.random.default_rng(seed)) or UnitNeurons(
            np.zeros(0), np.zeros((0, m)), np.zeros(0)
        )
        if len(units.a):
            units, B = estimate_again(units, B, X, y)
        cpu = time.process_time() - start
        off = errors_of(units.W @ B, units.b, units.a, truth)[0]
        return {"worst": float(np.abs(off).max()), "cpu": cpu}

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """Errors and time."""
        worst = column(runs, "worst")
        return {
            "start": "(10, 5), tensor step alone",
            "samples": f"{self.n:,}",
            "networks": f"{len(runs)}",
            "error, median": f"{np.median(worst):.3f}",
            "largest (bar)": f"{worst.max():.3f} (≤ {self.bar})",
            "CPU s": f"{np.median(column(runs, 'cpu')):.1f}",
        }


@dataclass(frozen=True)
class Noise:
    """Label noise: errors against the Cramer-Rao bound at the truth."""

    d: int
    m: int
    sigma: float
    networks: int = 20

    @property
    def n(self) -> int:
        """Samples: fifty a parameter."""
        return 50 * self.m * (self.d + 1)

    @property
    def name(self) -> str:
        """Its shape, and the noise."""
        return f"noise ({self.d}, {self.m}), σ = {self.sigma}"

    def measure(self, seed: int) -> dict[str, Any]:
        """Recover one network; figures are of what has all neurons and signs."""
        truth = draw(self.d, self.m, seed)
        rng = np.random.default_rng([seed, 1])
        X = rng.standard_normal((self.n, self.d))
        y = truth(X) + self.sigma * rng.standard_normal(self.n)
        start = time.process_time()
        recovery = revelu.learn(X, y, seed=seed)
        found: dict[str, Any] = {"cpu": time.process_time() - start}
        off, rows = learnt(recovery, truth)
        if not np.isfinite(off).all() or recovery.network.skip is not None:
            return found | {"missing": 1, "squares": 0.0, "bounds": 0.0, "covered": 0, "of": 0}
        true = revelu.Network([truth.W, truth.a[None]], [truth.b, np.zeros(1)])
        bound = standard_errors(true, Samples(X, y[:, None], np.array([self.sigma])))
        own = recovery.details["standard_errors"]
        bars = np.column_stack([own.W[rows], own.b[rows], own.A[0][rows]])
        return found | {
            "missing": 0,
            "squares": float((off**2).sum()),
            "bounds": float((bound.W**2).sum() + (bound.b**2).sum() + (bound.A**2).sum()),
            "covered": int((np.abs(off) <= NINETY * bars).sum()),
            "of": off.size,
        }

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """Errors beside the bound, and how often intervals cover the truth."""
        squares, bounds, covered, of, missing = (
            column(runs, name).sum() for name in ("squares", "bounds", "covered", "of", "missing")
        )
        ratio = np.sqrt(squares / bounds) if bounds else np.inf
        return {
            "label noise": f"({self.d}, {self.m}), σ = {self.sigma}",
            "samples": f"{self.n:,}",
            "networks": f"{len(runs)}",
            "RMS / Cramér-Rao (bar)": f"{ratio:.2f} (≤ 1.2)",
            "90% intervals cover (bar)": f"{covered / of if of else 0.0:.0%} (85-95%)",
            "neurons or signs wrong": f"{missing}",
            "CPU s": f"{np.median(column(runs, 'cpu')):.1f}",
        }


@dataclass(frozen=True)
class Far:
    """Two of eight units whose kinks hardly any sample shows."""

    name: str = "far units"
    networks: int = 20
    n: int = 100_000

    def measure(self, seed: int) -> dict[str, Any]:
        """Recover one network."""
        truth = draw(10, 8, seed)
        truth.b[:2] = 4.0, -4.0
        rng = np.random.default_rng([seed, 1])
        X = rng.standard_normal((self.n, 10))
        recovery, cpu = timed(revelu.learn, X, truth(X), seed=seed)
        # Computed: what is wrong is so rare that samples would hardly meet it.
        true = revelu.Network([truth.W, truth.a[None]], [truth.b, [0.0]])
        left = float(l2_distance(recovery.network, true) / l2_norm(true))
        units = recovery.network.architecture[1] + 2 * (recovery.network.skip is not None)
        return {"left": left, "units": units, "cpu": cpu}

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """What is left, and of how many units."""
        left = column(runs, "left")
        return {
            "far units": "(10, 8), two of b = ±4",
            "samples": f"{self.n:,}",
            "networks": f"{len(runs)}",
            "relative L2, median": f"{np.median(left):.1e}",
            "largest (bar)": f"{left.max():.1e} (≤ 2e-3)",
            "units (bar)": f"{column(runs, 'units').max()} (≤ 10)",
            "CPU s": f"{np.median(column(runs, 'cpu')):.1f}",
        }


ROWS: tuple[Measured, ...] = (
    *(Moments(d, m) for d, m in ((10, 5), (10, 10), (20, 20))),
    Moments(8, 20, 2),
    Exact(10, 5, 275, "5p", "100%"),
    Exact(10, 5, 165, "3p", "≥ 90%"),
    Exact(20, 10, 1050, "5p", "≥ 95%"),
    Exact(20, 10, 630, "3p", "≥ 80%"),
    Exact(50, 10, 5100, "10p", "≥ 95%"),
    Exact(8, 20, 3600, "20p", "≥ 95%"),
    Exact(50, 20, 100_000, "1e5", "≥ 95%"),
    Exact(100, 20, 100_000, "1e5", "≥ 95%"),
    *(Tensor(n, bar) for n, bar in ((100_000, 0.1), (1_000_000, 0.02))),
    *(Noise(d, m, sigma) for d, m in ((10, 5), (20, 10)) for sigma in (0.01, 0.1)),
    Far(),
)
TABLE = Table("samples", __doc__, ROWS, measured, lines_of, first_seed=FIRST_SEED)

if __name__ == "__main__":
    main(TABLE)
