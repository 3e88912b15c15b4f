"""Samples that do not fit in memory: what a sample costs, two workers, 1,000 inputs.

    python benchmarks/streamed_samples.py                     print the tables
    python benchmarks/streamed_samples.py --samples 10000000  of the whole run
    python benchmarks/streamed_samples.py --inputs 300        of the whole run; else 1,000
    python benchmarks/streamed_samples.py --row passes        rows whose name has this
    python benchmarks/streamed_samples.py --write             and keep them on their page

Networks as in samples.py.  Chunks of 4,000 samples are drawn where they are worked on, so the
cost of drawing them is in every figure of whole runs.
"""

import argparse
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from runner import Line, Table, main
from samples import EXACT, FIRST_SEED, Truth, draw, learnt

import revelu
from revelu.formats.samples import CheckedChunk
from revelu.numerics.quadratic import Quadratic, fit_quadratic
from revelu.probe.moments import estimate_moments, estimate_second_moment
from revelu.tasks.learn.samples import gather

CHUNK = 4000
REPEATS = 3


@dataclass(frozen=True)
class Stream:
    """Chunks of samples of one network, the same at every call."""

    truth: Truth
    n: int
    seed: int

    def __call__(self) -> list[partial[tuple[np.ndarray, np.ndarray]]]:
        """Return what draws each chunk."""
        return [partial(self.draw, start) for start in range(0, self.n, CHUNK)]

    def draw(self, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Draw the chunk that begins at a sample."""
        rng = np.random.default_rng([self.seed, 1, start])
        X = rng.standard_normal((min(CHUNK, self.n - start), self.truth.W.shape[1]))
        return X, self.truth(X)


def cost_row(name: str, d: int, m: int, n: int = 12_000) -> list[Line]:
    """CPU time a sample of one pass, drawing left out; the least of a few."""
    chunks = [Stream(draw(d, m, FIRST_SEED), CHUNK, FIRST_SEED).draw(0)] * (n // CHUNK)
    is_fourth = name != "second coefficient"
    rng = np.random.default_rng(0)
    M = rng.standard_normal((d, d)) / d
    control = Quadratic(0.1, rng.standard_normal(d), M + M.T)
    basis = np.linalg.qr(rng.standard_normal((d, m)))[0].T
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        if is_fourth:
            estimate_moments(chunks, control, basis)
        else:
            estimate_second_moment(chunks, control)
        seconds.append(time.process_time() - start)
    least = min(seconds) / n
    flops = 4.0 * d**2 + (4.0 * m**4 / 24.0 if is_fourth else 0.0)
    cells = (name, f"{d:,}", f"{m}", f"{1e6 * least:.1f}", f"{1e12 * least / flops:.0f}")
    heads = ("pass", "d", "m", "CPU µs a sample", "ps over 4 d² + m⁴ / 6")
    return [dict(zip(heads, cells, strict=True))]


def passes_rows(d: int, m: int, n: int) -> list[Line]:
    """The two passes over all samples that have as many inputs, and memory as they go on."""
    stream = Stream(draw(d, m, FIRST_SEED), n, FIRST_SEED)
    lines: list[Line] = []
    start = time.process_time()

    def watched(name: str) -> Iterator[CheckedChunk]:
        for i, chunk in enumerate(stream()):
            if i and i * CHUNK % (n // 4) < CHUNK:
                tell(name, i * CHUNK)
            yield CheckedChunk(f"chunk {i}", chunk)
        tell(name, n)

    def tell(name: str, so_many: int) -> None:
        seconds = time.process_time() - start
        cells = (name, f"({d:,}, {m})", f"{so_many:,}", f"{peak():.0f}", f"{seconds:.0f}")
        heads = ("pass", "(d, m)", "samples so far", "MiB at the peak", "CPU seconds so far")
        lines.append(dict(zip(heads, cells, strict=True)))

    stored = gather(
        lambda: watched("taking some into memory"), None, np.random.SeedSequence(FIRST_SEED), None
    )
    estimate_second_moment(watched("second coefficient"), fit_quadratic(stored.X, stored.y))
    return lines


def workers_row(d: int, m: int, n: int) -> list[Line]:
    """The pass over all samples, drawn as they come, by one and by two threads."""
    stream = Stream(draw(d, m, FIRST_SEED), n, FIRST_SEED)
    control = Quadratic(0.0, np.zeros(d), np.zeros((d, d)))
    seconds: dict[int, list[float]] = {1: [], 2: []}
    alone = []
    for _ in range(REPEATS):
        for n_workers in (1, 2):
            with ThreadPoolExecutor(n_workers) as pool:
                start, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
                estimate_second_moment(stream(), control, pool)
                seconds[n_workers].append(time.perf_counter() - start)
                own, cpu = time.thread_time() - own, time.process_time() - cpu
                alone.append(own / cpu)
    one, two = min(seconds[1]), min(seconds[2])
    return [
        {
            "two workers": f"({d:,}, {m})",
            "samples": f"{n:,}",
            "s, one": f"{one:.1f}",
            "s, two": f"{two:.1f}",
            "faster (bar)": f"{one / two:.2f} (≥ 1.7)",
            "CPU in one thread only": f"{np.median(alone):.1%}",
        }
    ]


def whole_row(d: int, m: int, n: int, n_workers: int) -> list[Line]:
    """From the first sample to the network."""
    truth = draw(d, m, FIRST_SEED)
    stream = Stream(truth, n, FIRST_SEED)
    wall, cpu = time.perf_counter(), time.process_time()

    def tell(event: object) -> None:
        print(
            f"  {time.perf_counter() - wall:.0f} s: {event.message}, {peak():.0f} MiB", flush=True
        )

    with ThreadPoolExecutor(n_workers) as pool:
        recovery = revelu.learn(stream, seed=0, executor=pool, progress=tell)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    worst = float(np.abs(learnt(recovery, truth)[0]).max())
    return [
        {
            "whole run": f"({d:,}, {m})",
            "samples": f"{n:,}",
            "status": recovery.status.value,
            "largest parameter error (bar)": f"{worst:.1e} (≤ {EXACT:.0e})",
            "MiB at the peak (bar)": f"{peak():.0f} (≤ 1,024)",
            "workers": f"{n_workers}",
            "seconds, CPU seconds": f"{wall:.0f}, {cpu:.0f}",
        }
    ]


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@dataclass(frozen=True)
class Row:
    """What makes lines of a table, once, and of what."""

    name: str
    measure: Callable[..., list[Line]]
    of: tuple[float | str, ...]
    networks: int = 1


def one(row: Row, _seed: int, _limit: float | None) -> list[Line]:
    """Measure it."""
    return row.measure(*row.of)


def lines(found: Mapping[Row, list[list[Line]]]) -> Iterator[Line]:
    """All lines, one below the other."""
    return (line for runs in found.values() for some in runs for line in some)


def rows(given: argparse.Namespace) -> list[Row]:
    """The whole run first, for its peak of memory."""
    second = [("second coefficient", d, 20) for d in (100, 200, 400, 800, 1600)]
    fourth = [
        ("orders up to 4", d, m) for d, m in ((20, 5), (20, 10), (20, 15), (20, 20), (1000, 20))
    ]
    return [
        Row(
            f"whole run, {given.inputs}, {given.samples:,}",
            whole_row,
            (given.inputs, 20, given.samples, given.workers),
        ),
        Row(f"passes, {given.samples:,}", passes_rows, (1000, 20, given.samples)),
        *(Row(f"cost, {name}, {d}, {m}", cost_row, (name, d, m)) for name, d, m in second + fourth),
        *(
            Row(f"workers, {d}", workers_row, (d, 20, n))
            for d, n in ((1000, 20_000), (100, 200_000))
        ),
    ]


def options(parser: argparse.ArgumentParser) -> None:
    """How large the whole run is."""
    parser.add_argument("--samples", type=int, default=1_000_000, help="of the whole run")
    parser.add_argument("--inputs", type=int, default=1000, help="of the whole run")
    parser.add_argument("--workers", type=int, default=1, help="of the whole run")


TABLE = Table("streamed_samples", __doc__, rows, one, lines, first_seed=FIRST_SEED, options=options)

if __name__ == "__main__":
    main(TABLE)
