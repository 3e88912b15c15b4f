"""What ATV21 proves of samples, measured: smoothed analysis, Lemma 5.2, Algorithm 5.

    python benchmarks/sample_theory.py            print the tables
    python benchmarks/sample_theory.py --write    and keep them on their page

Networks as in samples.py, unless said.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from runner import Line, Table, main
from samples import FIRST_SEED, column, draw, errors_of, lines_of, measured

import revelu
from revelu.numerics.hermite import network_coefficient
from revelu.numerics.quadratic import Quadratic, fit_quadratic
from revelu.probe.moments import estimate_moments, monomials
from revelu.recover.fit.tensors import estimate_units, recover_units

FACTORIALS = {2: 2.0, 3: 6.0, 4: 24.0}

# Halvings of the interval that the multiplier of a ball is in.
BISECTIONS = 60


@dataclass(frozen=True)
class Smoothed:
    """Section 6: columns in a plane, each moved by a Gaussian of average length tau."""

    tau: float
    networks: int = 20

    @property
    def name(self) -> str:
        """How far they are moved."""
        return f"τ = {self.tau:g}"

    def measure(self, seed: int) -> dict[str, Any]:
        """Recover one network from exact moments."""
        d, m = 8, 20
        truth, rng = draw(d, m, seed), np.random.default_rng([seed, 2])
        angles = rng.uniform(0.0, 2.0 * np.pi, m)
        plane = np.linalg.qr(rng.standard_normal((d, 2)))[0]
        W = np.column_stack([np.cos(angles), np.sin(angles)]) @ plane.T
        W = W + self.tau * rng.standard_normal((m, d)) / np.sqrt(d)
        powers = np.einsum("mi,mj->mij", W, W).reshape(m, -1)
        least = float(np.linalg.svd(powers, compute_uv=False)[-1])
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        tensors = {k: network_coefficient(k, truth.a, W, truth.b) for k in range(1, 7)}
        units = recover_units(tensors, m, 2, np.random.default_rng(seed))
        if not units:
            return {"least": least, "error": np.inf}
        moved = type(truth)(W, truth.b, truth.a)
        off, _ = errors_of(units[0].W, units[0].b, units[0].a, moved, signs=False)
        return {"least": least, "error": float(np.abs(off).max())}

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """Least singular values, and errors."""
        least = column(runs, "least")
        return {
            "τ": f"{self.tau:g}",
            "s_m(W ⊙ W), median": f"{np.median(least):.1e}",
            "least": f"{least.min():.1e}",
            "median / τ²": f"{np.median(least) / self.tau**2:.3f}",
            "error from exact moments, median": f"{np.median(column(runs, 'error')):.1e}",
        }


@dataclass(frozen=True)
class Lemma:
    """Lemma 5.2: errors of estimated coefficients beside their standard errors."""

    d: int
    m: int
    n: int
    networks: int = 3

    @property
    def name(self) -> str:
        """Its shape, and how many samples."""
        return f"lemma ({self.d}, {self.m}), {self.n:,}"

    def measure(self, seed: int) -> dict[str, Any]:
        """Estimate from fresh samples of one network, without and with control variates."""
        d = self.d
        truth = draw(d, self.m, FIRST_SEED)
        X = np.random.default_rng([FIRST_SEED, 3, seed - FIRST_SEED]).standard_normal((self.n, d))
        y = truth(X)
        found = {}
        plain = Quadratic(0.0, np.zeros(d), np.zeros((d, d)))
        for words, control in (("", plain), ("controlled ", fit_quadratic(X, y))):
            moments = estimate_moments([(X, y)], control)
            for k in FACTORIALS:
                T = network_coefficient(k, truth.a, truth.W, truth.b)
                found[f"{words}off {k}"] = float(np.linalg.norm(moments.tensor(k) - T))
                found[f"{words}said {k}"] = _whole_norm(moments.errors[k], d, k)
        return found

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """Both, and the error in the lemma's unit."""
        heads = ("order 2: error / standard error, N η² / d²", "order 3, d³", "order 4, d⁴")
        more = ("with control variates: 2", "3", "4")
        cells = []
        for words in ("", "controlled "):
            for k in FACTORIALS:
                eta, error = (np.mean(column(runs, f"{words}{s} {k}")) for s in ("off", "said"))
                scaled = self.n * eta**2 / self.d**k
                cells.append(f"{eta:.2g} / {error:.2g}, {scaled:.1f}")
        return {
            "(d, m)": f"({self.d}, {self.m})",
            "samples": f"{self.n:,}",
            **dict(zip((*heads, *more), cells, strict=True)),
        }


def _whole_norm(errors: np.ndarray, d: int, k: int) -> float:
    """Root mean square of the Frobenius norm: an entry counts as often as it stands."""
    return float(np.sqrt(np.sum(errors**2 * FACTORIALS[k] / monomials(d, k).factorials)))


@dataclass(frozen=True)
class Truncated:
    """Algorithm 5: regression on the units found, truncated and inside a ball."""

    radius: float
    ball: float
    networks: int = 3

    @property
    def name(self) -> str:
        """Both limits."""
        return f"features shorter than {self.radius:g}, a ball of {self.ball:g}"

    def measure(self, seed: int) -> dict[str, Any]:
        """Fit one network of which two units are far."""
        d, m, n, radius = 10, 6, 30_000, self.radius
        truth, rng = draw(d, m, seed), np.random.default_rng([seed, 4])
        truth.b[:2] = 4.0, -4.0
        X = rng.standard_normal((n, d))
        y = truth(X)
        quadratic = fit_quadratic(X, y)
        values, U = np.linalg.eigh(quadratic.M)
        B = U[:, np.argsort(-np.abs(values))[: m - 2]].T
        units = estimate_units(estimate_moments([(X, y)], quadratic, B), m - 2, rng)
        if units is None:
            return {"left": np.inf}
        F = _features(X, units.W @ B, units.b)
        beta = _in_ball(F[np.linalg.norm(F, axis=1) < radius], y, F, radius, self.ball)
        Z = rng.standard_normal((n, d))
        off = _features(Z, units.W @ B, units.b) @ beta - truth(Z)
        return {"left": float(np.linalg.norm(off) / np.linalg.norm(truth(Z)))}

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """What is left."""
        left = column(runs, "left")
        return {
            "features shorter than": "none" if np.isinf(self.radius) else f"{self.radius:g}",
            "norm ball": "none" if np.isinf(self.ball) else f"{self.ball:g}",
            "relative L2, median": f"{np.median(left):.1e}",
            "largest": f"{left.max():.1e}",
        }


def _features(X: np.ndarray, W: np.ndarray, b: np.ndarray) -> np.ndarray:
    Z = X @ W.T + b
    return np.column_stack([np.maximum(Z, 0.0), np.maximum(-Z, 0.0), X, np.ones(len(X))])


def _in_ball(
    kept: np.ndarray, y: np.ndarray, F: np.ndarray, radius: float, ball: float
) -> np.ndarray:
    """Least squares with ``|beta| <= ball``: the multiplier by bisection."""
    gram = kept.T @ kept / len(F)
    right = kept.T @ y[np.linalg.norm(F, axis=1) < radius] / len(F)
    # Both signs of a neuron and the affine map are dependent: of all solutions the shortest.
    beta = np.linalg.lstsq(gram, right, rcond=None)[0]
    if np.linalg.norm(beta) <= ball:
        return beta
    low, high = 0.0, float(np.linalg.norm(right)) / ball  # where |beta| <= |right| / high
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        beta = np.linalg.solve(gram + middle * np.eye(len(gram)), right)
        low, high = (middle, high) if np.linalg.norm(beta) > ball else (low, middle)
    return np.linalg.solve(gram + high * np.eye(len(gram)), right)


@dataclass(frozen=True)
class Order:
    """The choice of the order by a gap after m < d eigenvalues."""

    d: int
    m: int
    n: int
    networks: int = 3

    @property
    def name(self) -> str:
        """Its shape."""
        return f"order ({self.d}, {self.m})"

    def measure(self, seed: int) -> dict[str, Any]:
        """Learn one network, and hear in how many dimensions is searched."""
        truth = draw(self.d, self.m, seed)
        X = np.random.default_rng([seed, 1]).standard_normal((self.n, self.d))
        messages: list[str] = []
        revelu.learn(X, truth(X), seed=seed, progress=lambda event: messages.append(event.message))
        inside = [text.split()[3] for text in messages if "inside" in text]
        return {"rank": inside[0] if inside else "all"}

    def line(self, runs: list[dict[str, Any]]) -> Line:
        """The dimensions."""
        return {
            "(d, m)": f"({self.d}, {self.m})",
            "samples": f"{self.n:,}",
            "dimensions searched, by network": ", ".join(run["rank"] for run in runs),
        }


NONE = np.inf
ROWS = (
    *(Smoothed(tau) for tau in (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)),
    *(Lemma(d, m, 10_000) for d, m in ((4, 4), (8, 4), (12, 4), (8, 8))),
    Lemma(8, 4, 40_000),
    *(Truncated(*cut) for cut in ((NONE, NONE), (10.0, NONE), (5.0, NONE))),
    *(Truncated(NONE, ball) for ball in (10.0, 3.0, 1.0)),
    Order(20, 5, 5000),
    Order(20, 18, 8000),
)
TABLE = Table("sample_theory", __doc__, ROWS, measured, lines_of, first_seed=FIRST_SEED)

if __name__ == "__main__":
    main(TABLE)
