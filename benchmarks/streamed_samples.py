"""Samples that do not fit in memory: what a sample costs, two workers, 1,000 inputs.

    python benchmarks/streamed_samples.py                     print the tables
    python benchmarks/streamed_samples.py --samples 10000000  of the whole run
    python benchmarks/streamed_samples.py --inputs 300        of the whole run; else 1,000
    python benchmarks/streamed_samples.py --part passes       whole, passes, cost, or workers
    python benchmarks/streamed_samples.py --write             and keep them on their page

Networks as in samples.py.  Chunks of 4,000 samples are drawn where they are worked on, so the
cost of drawing them is in every figure of whole runs.
"""

import argparse
import platform
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from page import keep
from samples import EXACT, FIRST_SEED, Truth, draw, learnt, table

import revelu
from revelu.formats.samples import CheckedChunk
from revelu.numerics.quadratic import Quadratic, fit_quadratic
from revelu.probe.moments import estimate_moments, estimate_second_moment
from revelu.tasks.learn.samples import gather

CHUNK = 4000
REPEATS = 3
PARTS = "whole", "passes", "cost", "workers"


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


def cost_row(name: str, d: int, m: int, n: int, *, fourth: bool) -> str:
    """CPU time a sample of one pass, drawing left out; the least of a few."""
    chunks = [Stream(draw(d, m, FIRST_SEED), CHUNK, FIRST_SEED).draw(0)] * (n // CHUNK)
    rng = np.random.default_rng(0)
    M = rng.standard_normal((d, d)) / d
    control = Quadratic(0.1, rng.standard_normal(d), M + M.T)
    basis = np.linalg.qr(rng.standard_normal((d, m)))[0].T
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        if fourth:
            estimate_moments(chunks, control, basis)
        else:
            estimate_second_moment(chunks, control)
        seconds.append(time.process_time() - start)
    least = min(seconds) / n
    flops = 4.0 * d**2 + (4.0 * m**4 / 24.0 if fourth else 0.0)
    return f"| {name} | {d:,} | {m} | {1e6 * least:.1f} | {1e12 * least / flops:.0f} |"


def passes_rows(d: int, m: int, n: int) -> list[str]:
    """The two passes over all samples that have as many inputs, and memory as they go on."""
    stream = Stream(draw(d, m, FIRST_SEED), n, FIRST_SEED)
    lines, seen, start = [], 0, time.process_time()

    def watched(name: str) -> Iterator[CheckedChunk]:
        nonlocal seen
        for i, chunk in enumerate(stream()):
            if i and i * CHUNK % (n // 4) < CHUNK:
                tell(name, i * CHUNK)
            yield CheckedChunk(f"chunk {i}", chunk)
        tell(name, n)

    def tell(name: str, so_many: int) -> None:
        seconds = time.process_time() - start
        lines.append(f"| {name} | ({d:,}, {m}) | {so_many:,} | {peak():.0f} | {seconds:.0f} |")
        print(f"  {lines[-1]}", flush=True)

    stored = gather(
        lambda: watched("taking some into memory"), None, np.random.SeedSequence(FIRST_SEED), None
    )
    estimate_second_moment(watched("second coefficient"), fit_quadratic(stored.X, stored.y))
    return lines


def workers_row(d: int, m: int, n: int) -> str:
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
    return (
        f"| ({d:,}, {m}) | {n:,} | {one:.1f} | {two:.1f} | {one / two:.2f} (≥ 1.7) "
        f"| {np.median(alone):.1%} |"
    )


def whole_row(d: int, m: int, n: int, n_workers: int) -> str:
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
    return (
        f"| ({d:,}, {m}) | {n:,} | {recovery.status.value} | {worst:.1e} (≤ {EXACT:.0e}) "
        f"| {peak():.0f} (≤ 1,024) | {n_workers} | {wall:.0f}, {cpu:.0f} |"
    )


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tables(n: int, d: int, n_workers: int, part: str | None) -> str:
    """All tables, as Markdown; the whole run first, for its peak of memory."""

    def wanted(name: str) -> bool:
        return part in (None, name)

    parts = []
    if n and wanted("whole"):
        heads = (
            "whole run | samples | status | largest parameter error (bar) | MiB at the peak (bar) "
            "| workers | seconds, CPU seconds"
        )
        parts.append(table(heads, [whole_row(d, 20, n, n_workers)]))
    if n and wanted("passes"):
        heads = "pass | (d, m) | samples so far | MiB at the peak | CPU seconds so far"
        parts.append(table(heads, passes_rows(1000, 20, n)))
    if wanted("cost"):
        inputs = (100, 200, 400, 800, 1600)
        lines = [cost_row("second coefficient", k, 20, 12_000, fourth=False) for k in inputs]
        lines += [cost_row("orders up to 4", 20, m, 12_000, fourth=True) for m in (5, 10, 15, 20)]
        lines += [cost_row("orders up to 4", 1000, 20, 12_000, fourth=True)]
        parts.append(table("pass | d | m | CPU µs a sample | ps over 4 d² + m⁴ / 6", lines))
    if wanted("workers"):
        lines = [workers_row(1000, 20, 20_000), workers_row(100, 20, 200_000)]
        heads = "two workers | samples | s, one | s, two | faster (bar) | CPU in one thread only"
        parts.append(table(heads, lines))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000, help="of the whole run; 0: none")
    parser.add_argument("--inputs", type=int, default=1000, help="of the whole run")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--part", choices=PARTS, help="one table; else all")
    parser.add_argument("--write", action="store_true", help="keep it on its page")
    options = parser.parse_args()
    text = tables(options.samples, options.inputs, options.workers, options.part)
    text += (
        f"\n\nrevelu {revelu.__version__}, NumPy {np.__version__}, Python "
        f"{platform.python_version()}, {platform.machine()}, seed {FIRST_SEED}."
    )
    print(f"\n{text}")
    if options.write:
        keep("streamed_samples", text)


if __name__ == "__main__":
    main()
