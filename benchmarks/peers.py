"""What else extracts networks, in one run: ART's attack and a student trained by Adam.

    pip install ".[bench]"
    python benchmarks/peers.py                     print the table (some ten minutes)
    python benchmarks/peers.py --quick             one network of each small shape, in a minute
    python benchmarks/peers.py --networks 1        one network of a shape
    python benchmarks/peers.py --results FILE      go on where an earlier run stopped
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
import platform
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from page import present, record, records
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

import revelu

ART = "adversarial-robustness-toolbox==1.20.1"
FIRST_SEED = 19_000_000
EXACT = 1e-7
QUICK_INPUTS = 100

# The student's passes over its samples, at most.
PASSES = 400

HEAD = (
    "| network | by | runs | exact | wrong and silent | queries, median | CPU s, median "
    "| error of what came back, median, largest | what it said of its result |"
)


@dataclass(frozen=True)
class Row:
    """A shape, how many networks, and CPU seconds for ART."""

    widths: tuple[int, ...]
    n_networks: int
    seconds: float


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


def ours(target: revelu.Network, seed: int) -> Run:
    """Extract by revelu, the width not given."""
    cpu = time.process_time()
    recovery = revelu.extract(target, seed=seed)
    cpu = time.process_time() - cpu
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


def one(row: Row, seed: int, python: Path | None) -> dict[str, Run]:
    """All methods on one target; without ``python`` not ART's."""
    target = revelu.zoo.random_network(list(row.widths), seed=seed)
    own = ours(target, seed)
    found = {"revelu": own}
    if python is not None:
        found["ART"] = art(target, seed, python, row.seconds)
    found["Adam"] = adam(target, seed, own.queries)
    return found


def line(row: Row, name: str, runs: list[Run]) -> str:
    """One line of the table."""
    errors = np.array([run.error for run in runs])
    back = errors[np.isfinite(errors)]
    said = [run.said for run in runs]
    verdicts = "; ".join(f"{said.count(word)} x {word}" for word in dict.fromkeys(said))
    returned = f"{np.median(back):.1e}, {back.max():.1e}" if len(back) else "-"
    return (
        f"| {'-'.join(map(str, row.widths))} | {name} | {len(runs)} | {(errors < EXACT).sum()} "
        f"| {sum(run.silent for run in runs)} "
        f"| {np.median([run.queries for run in runs]):,.0f} "
        f"| {np.median([run.seconds for run in runs]):.1f} | {returned} | {verdicts} |"
    )


def main() -> None:
    """Print, and perhaps keep, the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row", action="append", help="only this shape, such as 10-4-10")
    parser.add_argument("--quick", action="store_true", help="one network of each small shape")
    parser.add_argument("--networks", type=int, help="of each shape, at most")
    parser.add_argument("--results", type=Path, help="where the runs are, and are added")
    parser.add_argument("--tables", type=Path, help="write the table here, as JSON")
    parser.add_argument("--write", action="store_true", help="keep it on its page and in results/")
    parser.add_argument(
        "--environment", type=Path, default=Path(tempfile.gettempdir()) / "revelu-peers"
    )
    options = parser.parse_args()
    python = environment(options.environment, make=not options.quick)
    most = 1 if options.quick else options.networks
    kept = {
        seed: {name: Run(**run) for name, run in runs.items()}
        for seed, runs in records(options.results)
    }
    lines = [HEAD, "|" + "---|" * 9]
    for i, row in enumerate(ROWS):
        if options.row and "-".join(map(str, row.widths)) not in options.row:
            continue
        if options.quick and row.widths[0] > QUICK_INPUTS:
            continue
        runs: dict[str, list[Run]] = {}
        for j in range(min(row.n_networks, most or row.n_networks)):
            seed = FIRST_SEED + 1000 * i + j
            found = kept.get(seed) or one(row, seed, python)
            if seed not in kept:
                print(seed, found, flush=True)
                record(options.results, [seed, {name: asdict(run) for name, run in found.items()}])
            for name, run in found.items():
                runs.setdefault(name, []).append(run)
        lines += [line(row, name, done) for name, done in runs.items()]
    rival = f"{ART.replace('==', ' ')}, " if python else "ART not run, "
    versions = (
        f"Seeds from {FIRST_SEED:,}; {rival}NumPy {np.__version__}, "
        f"Python {platform.python_version()}, one BLAS thread."
    )
    text = "\n".join([*lines, "", versions])
    present("peers", text, write=options.write, tables=options.tables)


if __name__ == "__main__":
    main()
