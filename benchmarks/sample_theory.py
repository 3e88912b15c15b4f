"""What ATV21 proves of samples, measured: smoothed analysis, Lemma 5.2, Algorithm 5.

    python benchmarks/sample_theory.py            print the tables
    python benchmarks/sample_theory.py --write    and keep them on their page

Networks as in samples.py, unless said.
"""

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np
from page import keep
from samples import FIRST_SEED, draw, errors_of, table

import revelu
from revelu.numerics.hermite import network_coefficient
from revelu.numerics.quadratic import Quadratic, fit_quadratic
from revelu.probe.moments import estimate_moments, monomials
from revelu.recover.fit.tensors import estimate_units, recover_units

DRAWS = 20
NETWORKS = 3
FACTORIALS = {2: 2.0, 3: 6.0, 4: 24.0}

# Halvings of the interval that the multiplier of a ball is in.
BISECTIONS = 60


def smoothed_row(tau: float) -> str:
    """Section 6: columns in a plane, each moved by a Gaussian of average length tau."""
    d, m = 8, 20
    least, errors = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + DRAWS):
        truth, rng = draw(d, m, seed), np.random.default_rng([seed, 2])
        angles = rng.uniform(0.0, 2.0 * np.pi, m)
        plane = np.linalg.qr(rng.standard_normal((d, 2)))[0]
        W = np.column_stack([np.cos(angles), np.sin(angles)]) @ plane.T
        W = W + tau * rng.standard_normal((m, d)) / np.sqrt(d)
        powers = np.einsum("mi,mj->mij", W, W).reshape(m, -1)
        least.append(np.linalg.svd(powers, compute_uv=False)[-1])
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        tensors = {k: network_coefficient(k, truth.a, W, truth.b) for k in range(1, 7)}
        units = recover_units(tensors, m, 2, np.random.default_rng(seed))
        if not units:
            errors.append(np.inf)
            continue
        moved = type(truth)(W, truth.b, truth.a)
        off, _ = errors_of(units[0].W, units[0].b, units[0].a, moved, signs=False)
        errors.append(float(np.abs(off).max()))
    return (
        f"| {tau:g} | {np.median(least):.1e} | {min(least):.1e} | {np.median(least) / tau**2:.3f} "
        f"| {np.median(errors):.1e} |"
    )


def lemma_row(d: int, m: int, n: int) -> str:
    """Lemma 5.2: errors of estimated coefficients beside their standard errors."""
    truth = draw(d, m, FIRST_SEED)
    plain = Quadratic(0.0, np.zeros(d), np.zeros((d, d)))
    cells = []
    for control in (plain, None):
        off: dict[int, list[float]] = {k: [] for k in FACTORIALS}
        said: dict[int, list[float]] = {k: [] for k in FACTORIALS}
        for seed in range(NETWORKS):
            X = np.random.default_rng([FIRST_SEED, 3, seed]).standard_normal((n, d))
            y = truth(X)
            moments = estimate_moments([(X, y)], control or fit_quadratic(X, y))
            for k in FACTORIALS:
                T = network_coefficient(k, truth.a, truth.W, truth.b)
                off[k].append(float(np.linalg.norm(moments.tensor(k) - T)))
                said[k].append(_whole_norm(moments.errors[k], d, k))
        for k in FACTORIALS:
            eta, error = np.mean(off[k]), np.mean(said[k])
            cells.append(f"{eta:.2g} / {error:.2g}, {n * eta**2 / d**k:.1f}")
    return f"| ({d}, {m}) | {n:,} | " + " | ".join(cells) + " |"


def _whole_norm(errors: np.ndarray, d: int, k: int) -> float:
    """Root mean square of the Frobenius norm: an entry counts as often as it stands."""
    return float(np.sqrt(np.sum(errors**2 * FACTORIALS[k] / monomials(d, k).factorials)))


def truncated_row(radius: float, ball: float) -> str:
    """Algorithm 5: regression on the units found, truncated and inside a ball."""
    d, m, n = 10, 6, 30_000
    left = []
    for seed in range(FIRST_SEED, FIRST_SEED + NETWORKS):
        truth, rng = draw(d, m, seed), np.random.default_rng([seed, 4])
        truth.b[:2] = 4.0, -4.0
        X = rng.standard_normal((n, d))
        y = truth(X)
        quadratic = fit_quadratic(X, y)
        values, U = np.linalg.eigh(quadratic.M)
        B = U[:, np.argsort(-np.abs(values))[: m - 2]].T
        units = estimate_units(estimate_moments([(X, y)], quadratic, B), m - 2, rng)
        if units is None:
            left.append(np.inf)
            continue
        F = _features(X, units.W @ B, units.b)
        beta = _in_ball(F[np.linalg.norm(F, axis=1) < radius], y, F, radius, ball)
        Z = rng.standard_normal((n, d))
        off = _features(Z, units.W @ B, units.b) @ beta - truth(Z)
        left.append(float(np.linalg.norm(off) / np.linalg.norm(truth(Z))))
    name = "none" if np.isinf(radius) else f"{radius:g}"
    kept = "none" if np.isinf(ball) else f"{ball:g}"
    return f"| {name} | {kept} | {np.median(left):.1e} | {max(left):.1e} |"


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


def order_row(d: int, m: int, n: int) -> str:
    """The choice of the order by a gap after m < d eigenvalues."""
    ranks = []
    for seed in range(FIRST_SEED, FIRST_SEED + NETWORKS):
        truth = draw(d, m, seed)
        X = np.random.default_rng([seed, 1]).standard_normal((n, d))
        messages: list[str] = []
        revelu.learn(
            X, truth(X), seed=seed, progress=lambda e, kept=messages: kept.append(e.message)
        )
        inside = [text.split()[3] for text in messages if "inside" in text]
        ranks.append(inside[0] if inside else "all")
    return f"| ({d}, {m}) | {n:,} | {', '.join(ranks)} |"


def rows(row: Callable[..., str], *shapes: tuple[float, ...]) -> list[str]:
    """A table's lines, each told as it comes."""
    lines = []
    for shape in shapes:
        start = time.process_time()
        lines.append(row(*shape))
        print(f"  {lines[-1]}  {time.process_time() - start:.1f} s", flush=True)
    return lines


def tables() -> str:
    """All tables, as Markdown."""
    taus = ((1.0,), (0.3,), (0.1,), (0.03,), (0.01,), (0.003,))
    shapes = (4, 4, 10_000), (8, 4, 10_000), (12, 4, 10_000), (8, 8, 10_000), (8, 4, 40_000)
    cuts = (np.inf, np.inf), (10.0, np.inf), (5.0, np.inf), (np.inf, 10.0), (np.inf, 3.0)
    parts = [
        table(
            "τ | s_m(W ⊙ W), median | least | median / τ² | error from exact moments, median",
            rows(smoothed_row, *taus),
        ),
        table(
            "(d, m) | samples | order 2: error / standard error, N η² / d² | order 3, d³ "
            "| order 4, d⁴ | with control variates: 2 | 3 | 4",
            rows(lemma_row, *shapes),
        ),
        table(
            "features shorter than | norm ball | relative L2, median | largest",
            rows(truncated_row, *cuts, (np.inf, 1.0)),
        ),
        table(
            "(d, m) | samples | dimensions searched, by network",
            rows(order_row, (20, 5, 5000), (20, 18, 8000)),
        ),
    ]
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    options = parser.parse_args()
    text = tables() + (
        f"\n\nrevelu {revelu.__version__}, NumPy {np.__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, seeds from {FIRST_SEED}."
    )
    print(text)
    if options.write:
        keep("sample_theory", text)


if __name__ == "__main__":
    main()
