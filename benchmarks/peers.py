"""What else extracts networks, in one run: ART's attack and a student trained by Adam.

    pip install ".[bench]"
    python benchmarks/peers.py                     print the table (some ten minutes)
    python benchmarks/peers.py --quick             one network of each small shape, in a minute
    python benchmarks/peers.py --environment DIR   where ART's environment is, or is made
    python benchmarks/peers.py --write             and keep it on its page

``FunctionallyEquivalentExtraction`` of adversarial-robustness-toolbox 1.20.1 is told the
width, asks in float64, and has a limit of CPU seconds, which only endless loops met.  The
student is scikit-learn's MLPRegressor, of the same width, on as many Gaussian queries as ours
took with its certificate.  Error: the largest over 4,000 points of N(0, I).  A quick run
makes no environment, and leaves ART out where there is none.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from runner import Line, Table, main, shape, timed
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

import revelu

ART = "adversarial-robustness-toolbox==1.20.1"
EXACT = 1e-7
QUICK_INPUTS = 100

# The student's passes over its samples, at most.
PASSES = 400


@dataclass(frozen=True)
class Row:
    """A shape, how many networks, CPU seconds for ART, and its Python where it is."""

    widths: tuple[int, ...]
    networks: int
    seconds: float
    python: Path | None = None

    @property
    def name(self) -> str:
        """Its widths."""
        return shape(self.widths)


ROWS = (Row((10, 4, 10), 6, 10.0), Row((10, 8, 10), 6, 10.0), Row((784, 32, 10), 3, 240.0))


@dataclass(frozen=True)
class Run:
    """One extraction; ``error`` is infinite where nothing came back."""

    error: float
    queries: int
    seconds: float
    said: str
    vouched: bool = True

    @property
    def silent(self) -> bool:
        """Whether it is wrong and says nothing of it."""
        return self.vouched and np.isfinite(self.error) and self.error > EXACT


def error_of(found: revelu.Network, target: revelu.Network, seed: int) -> float:
    X = np.random.default_rng([seed, 1]).standard_normal((4000, target.dim_in))
    return float(np.abs(found(X) - target(X)).max())


def ours(target: revelu.Network, seed: int, limit: float | None) -> Run:
    """Extract by revelu, the width not given."""
    recovery, cpu = timed(revelu.extract, target, seed=seed, max_seconds=limit)
    error = np.inf if recovery.network is None else error_of(recovery.network, target, seed)
    recovered = recovery.status is revelu.Status.RECOVERED
    said = "certified" if recovered else recovery.status.value
    return Run(error, recovery.ledger.n_queries, cpu, said, vouched=recovered)


def adam(target: revelu.Network, seed: int, n: int) -> Run:
    """Train a student of the same width."""
    X = np.random.default_rng([seed, 2]).standard_normal((n, target.dim_in))
    model = MLPRegressor(
        hidden_layer_sizes=[target.architecture[1]],
        solver="adam",
        max_iter=PASSES,
        tol=0.0,
        n_iter_no_change=50,
        random_state=seed % 2**32,
    )
    cpu = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, target(X))
    cpu = time.process_time() - cpu
    short = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    found = revelu.Network([W.T for W in model.coefs_], list(model.intercepts_))
    said = "not converged" if short else "converged"
    return Run(error_of(found, target, seed), n, cpu, said, vouched=not short)


def art(target: revelu.Network, seed: int, python: Path, seconds: float) -> Run:
    """Extract by ART, in its environment."""
    with tempfile.TemporaryDirectory() as folder:
        truth, result = Path(folder) / "truth.npz", Path(folder) / "result.npz"
        arrays = (target.weights[0], target.biases[0], target.weights[1], target.biases[1])
        np.savez(truth, **dict(zip("WbAc", arrays, strict=True)))
        script = Path(__file__).parent / "art_extraction.py"
        command = [python, script, truth, result, seed % 2**32, seconds]
        done = subprocess.run(  # noqa: S603 - our script, in the environment we made
            [str(part) for part in command], capture_output=True, text=True, check=True
        )
        told = json.loads(done.stdout.splitlines()[-1])
        error = np.inf
        if result.exists():
            with np.load(result) as found:
                W, b, A, c = (found[name] for name in "WbAc")
            finite = all(np.isfinite(a).all() for a in (W, b, A, c))
            error = error_of(revelu.Network([W, A], [b, c]), target, seed) if finite else np.inf
    return Run(error, told["queries"], told["seconds"], told["ended"])


def environment(folder: Path, *, make: bool) -> Path | None:
    """ART's Python, in an environment of its own, which is made, or else None, where it is not."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        if not make:
            return None
        venv.create(folder, with_pip=True)
        # It imports packaging without asking for it.
        command = [str(python), "-m", "pip", "install", "--quiet", ART, "packaging"]
        subprocess.run(command, check=True)  # noqa: S603
    return python


def one(row: Row, seed: int, limit: float | None) -> dict[str, dict[str, object]]:
    """All methods on one target; without ``python`` not ART's."""
    target = revelu.zoo.random_network(list(row.widths), seed=seed)
    own = ours(target, seed, limit)
    found = {"revelu": own}
    if row.python is not None:
        found["ART"] = art(target, seed, row.python, row.seconds)
    found["Adam"] = adam(target, seed, own.queries)
    return {name: asdict(run) for name, run in found.items()}


def lines(found: Mapping[Row, list[dict[str, dict[str, object]]]]) -> Iterator[Line]:
    """A line for each shape and method."""
    for row, runs in found.items():
        for name in dict.fromkeys(name for run in runs for name in run):
            yield line(row, name, [Run(**run[name]) for run in runs if name in run])


def line(row: Row, name: str, runs: list[Run]) -> Line:
    """One line of the table."""
    errors = np.array([run.error for run in runs])
    back = errors[np.isfinite(errors)]
    said = [run.said for run in runs]
    return {
        "network": row.name,
        "by": name,
        "runs": f"{len(runs)}",
        "exact": f"{(errors < EXACT).sum()}",
        "wrong and silent": f"{sum(run.silent for run in runs)}",
        "queries, median": f"{np.median([run.queries for run in runs]):,.0f}",
        "CPU s, median": f"{np.median([run.seconds for run in runs]):.1f}",
        "error of what came back, median, largest": f"{np.median(back):.1e}, {back.max():.1e}"
        if len(back)
        else "-",
        "what it said of its result": "; ".join(
            f"{said.count(word)} x {word}" for word in dict.fromkeys(said)
        ),
    }


def rows(given: argparse.Namespace) -> list[Row]:
    """Tell rows where ART is."""
    python = environment(given.environment, make=not given.quick)
    return [replace(row, python=python) for row in ROWS]


def options(parser: argparse.ArgumentParser) -> None:
    """Where ART is."""
    default = Path(tempfile.gettempdir()) / "revelu-peers"
    parser.add_argument("--environment", type=Path, default=default, help="of ART, or made for it")


TABLE = Table(
    "peers",
    __doc__,
    rows,
    one,
    lines,
    first_seed=19_000_000,
    apart=1000,
    named_by=2,
    quick=lambda row: row.widths[0] <= QUICK_INPUTS,
    note=lambda found: (
        f"{ART.replace('==', ' ')}." if any(row.python for row in found) else "ART not run."
    ),
    options=options,
)

if __name__ == "__main__":
    main(TABLE)
