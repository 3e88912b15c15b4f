"""Hostile files: mutations of every format, none of which may do more than be refused.

    python benchmarks/hostile_files.py            100,000 mutations (some ten minutes)
    python benchmarks/hostile_files.py --quick    a thousand of each format
    python benchmarks/hostile_files.py --write    and keep the table on its page

Each mutant is read as a network and opened as a target that is asked three rows, in a
process of its own kind that may die.  Counted are: deaths of the process, exceptions that
are no ReveluError, seconds and memory beyond their limits, and code run: unpickling,
processes started, files written.
"""

import io
import multiprocessing
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lost_files import SUFFIXES as READ
from lost_files import small_files
from runner import Line, Named, Table, by_row, main

import revelu

FIRST_SEED = 15_000_000
N_MUTANTS, A_RUN = 100_000, 1_000
SUFFIXES = (".onnx", ".npz", ".safetensors", ".pt", *READ)

# One mutant, and all that the process ever has.
MAX_SECONDS = 20.0
MAX_BYTES = 2**30

# What a file must not make the process do; opening to write is looked at more closely.
FORBIDDEN = (
    "pickle.find_class",
    "os.system",
    "os.exec",
    "os.fork",
    "os.remove",
    "subprocess.Popen",
)

# Numbers that sizes, offsets and lengths become.
EXTREMES = [
    n.to_bytes(size, "little")
    for size in (1, 2, 4, 8)
    for n in (0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size - 1))
]


@dataclass
class Outcome:
    """What the mutants of one format did."""

    n: int = 0
    refused: int = 0
    opened: int = 0
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0


def seeds_of(suffix: str, folder: Path) -> list[bytes]:
    """Well-formed files that mutants are made of."""
    if suffix in READ:
        return small_files(suffix)
    networks = [
        revelu.zoo.random_network([3, 4, 2], seed=0),
        revelu.zoo.random_network([2, 3, 3, 1], seed=1),
        revelu.Network([[[1.0, -2.0]], [[3.0]]], [[0.5], [0.1]], ([[2.0, 1.0]], [0.7])),
    ]
    contents = []
    for network in networks:
        for dtype in ("float64", "float32"):
            path = folder / f"seed{suffix}"
            network.save(path, dtype)
            contents.append(path.read_bytes())
    return contents


def mutant(content: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file; what is inside an archive often with sums that fit."""
    if zipfile.is_zipfile(io.BytesIO(content)) and rng.random() < 0.7:
        return _rezipped(content, rng)
    return _damaged(content, rng)


def _damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Change, cut, double, zero or swap for an extreme number, one to four times."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        if not data:
            break
        start, stop = sorted(int(i) for i in rng.integers(0, len(data) + 1, 2))
        kind = int(rng.integers(0, 7))
        if kind == 0:
            del data[start : min(stop, start + 64)]
        elif kind == 1:
            data[start:start] = data[start : min(stop, start + 256)]
        elif kind == 2:
            data[start:stop] = bytes(stop - start)
        elif kind == 3:
            extreme = EXTREMES[int(rng.integers(len(EXTREMES)))]
            data[start : start + len(extreme)] = extreme
        elif kind == 4:
            digits = [i for i, byte in enumerate(data) if 48 <= byte <= 57]
            at = digits[int(rng.integers(len(digits)))] if digits else 0
            data[at : at + 1] = str(
                int(rng.integers(0, 2**62)) >> int(rng.integers(0, 62))
            ).encode()
        else:
            data[min(start, len(data) - 1)] = int(rng.integers(0, 256))
    return bytes(data)


def _rezipped(content: bytes, rng: np.random.Generator) -> bytes:
    """An archive with one member damaged, left out, doubled or renamed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = names[int(rng.integers(len(names)))]
        kind = int(rng.integers(0, 8))
        compression = zipfile.ZIP_DEFLATED if kind == 3 else zipfile.ZIP_STORED
        for name in names:
            data = old.read(name)
            if name == chosen and kind == 0:
                continue
            written = name
            if name == chosen and kind == 1:
                written = _damaged(name.encode(), rng).decode("latin-1").replace("\0", "0")
            elif name == chosen:
                data = _damaged(data, rng)
            new.writestr(written or "x", data, compression)
            if name == chosen and kind == 2:
                new.writestr(f"{name}x", data)
    return out.getvalue()


def attack(path: Path, content: bytes) -> str:
    """Read and ask one mutant; how it ended."""
    path.write_bytes(content)
    ended = "refused"
    for act in (_read, _ask):
        try:
            act(path)
            ended = "opened"
        except revelu.ReveluError:
            pass
        except Exception as error:  # noqa: BLE001 - the fault that is looked for
            return f"{type(error).__name__}: {error}"[:200]
    return ended


def _read(path: Path) -> None:
    revelu.load(path)


def _ask(path: Path) -> None:
    oracle = revelu.open_oracle(path, activation="relu" if path.suffix == ".mat" else None)
    if oracle.dim_in < 10_000:
        oracle(np.zeros((3, oracle.dim_in)))


def watch(faults: list[str], folder: Path) -> None:
    """Note whatever the process does that no file may make it do."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in FORBIDDEN:
            faults.append(f"{event} {arguments!r}"[:200])
        elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
            with suppress(TypeError):
                if folder not in Path(arguments[0]).parents:
                    faults.append(f"writes {arguments[0]}")

    sys.addaudithook(hook)


def work(suffix: str, start: int, stop: int, place: Any, queue: Any) -> None:
    """Attack with the mutants of a range; in a process that may die."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seeds, faults, counts = seeds_of(suffix, folder), list[str](), Counter[str]()
        path, slowest = folder / f"mutant{suffix}", 0.0
        attack(path, seeds[0])  # whatever is imported is imported now
        watch(faults, folder)
        for i in range(start, stop):
            place.value = i
            rng = np.random.default_rng([FIRST_SEED, SUFFIXES.index(suffix), i])
            content = mutant(seeds[int(rng.integers(len(seeds)))], rng)
            began = time.monotonic()
            ended = attack(path, content)
            slowest = max(slowest, time.monotonic() - began)
            counts[ended if ended in {"refused", "opened"} else "fault"] += 1
            if ended not in {"refused", "opened"}:
                faults.append(f"{i}: {ended}")
        peak = peak_memory()
        if peak > MAX_BYTES:
            faults.append(f"{start} to {stop}: {peak:,} bytes")
        queue.put((dict(counts), list(faults), slowest))


def peak_memory() -> int:
    """The most bytes that this process has held, on Linux.

    Those of ``getrusage`` count what its parent held when it was started.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(kilobytes) * 1024


def opened_in_a_process(folder: Path, call: str) -> str:
    """Open each file of a folder in a process of its own; say which were opened, and what failed.

    Parameters
    ----------
    call : str
        Opens ``path``; an error of a file that is refused is one line.

    Returns
    -------
    str
        ``"True"`` where every file is refused, and less than a gibibyte was held.
    """
    code = (
        "import sys, revelu\n"
        "from pathlib import Path\n"
        f"sys.path.append({str(Path(__file__).parent)!r})\n"
        "from hostile_files import peak_memory\n"
        "for path in sorted(Path('.').iterdir()):\n"
        "    try:\n"
        f"        {call}\n"
        "    except revelu.ReveluError as error:\n"
        "        assert len(str(error).splitlines()) == 1, path\n"
        "    else:\n"
        "        print(path, 'is opened')\n"
        "print(peak_memory() < 2**30 if sys.platform == 'linux' else True)"
    )
    done = subprocess.run(  # noqa: S603 - the code is ours
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    return (done.stdout + done.stderr).strip()


def run(suffix: str, start: int, stop: int) -> Outcome:
    """Attack with the mutants of a range of one format, in a process that may die of it."""
    outcome = Outcome(n=stop - start)
    context = multiprocessing.get_context("spawn")
    while start < stop:
        place, queue = context.Value("q", start), context.Queue()
        process = context.Process(target=work, args=(suffix, start, stop, place, queue))
        process.start()
        found = _result(process, place, queue)
        if isinstance(found, str):  # it died or hung at one: go on behind it
            outcome.faults.append(f"{place.value}: {found}")
            start = int(place.value) + 1
            continue
        counts, faults, slowest = found
        outcome.refused += counts.get("refused", 0)
        outcome.opened += counts.get("opened", 0)
        outcome.faults += faults
        outcome.slowest = max(outcome.slowest, slowest)
        start = stop
    return outcome


def _result(process: Any, place: Any, queue: Any) -> Any:
    """What a process found; in words, where it died or stood still."""
    seen, since = place.value, time.monotonic()
    while True:
        with suppress(Exception):
            return queue.get(timeout=1.0)
        if not process.is_alive():
            with suppress(Exception):
                return queue.get(timeout=1.0)
            return f"the process died with {process.exitcode}"
        if place.value != seen:
            seen, since = place.value, time.monotonic()
        elif time.monotonic() - since > 3 * MAX_SECONDS:
            process.kill()
            process.join()
            return "the process stood still"


def one(row: Named, seed: int, _limit: float | None) -> Outcome:
    """Attack with a thousand mutants of one format."""
    start = (seed - FIRST_SEED) * A_RUN
    return run(row.name, start, start + A_RUN)


def line(row: Named, runs: list[Outcome]) -> Line:
    """One line of the table."""
    return {
        "format": f"`{row.name}`",
        "mutants": f"{sum(run.n for run in runs):,}",
        "refused": f"{sum(run.refused for run in runs):,}",
        "opened": f"{sum(run.opened for run in runs):,}",
        "faults": f"{sum(len(run.faults) for run in runs)}",
        "slowest, s": f"{max(run.slowest for run in runs):.2f}",
    }


TABLE = Table(
    "hostile_files",
    __doc__,
    [Named(suffix, -(-N_MUTANTS // (A_RUN * len(SUFFIXES)))) for suffix in SUFFIXES],
    one,
    by_row(line),
    first_seed=FIRST_SEED,
    outcome=Outcome,
)

if __name__ == "__main__":
    main(TABLE)
