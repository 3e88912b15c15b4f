"""Networks that others have trained: what is found, queries, error and time.

    python benchmarks/strangers.py                      the nine of pybullet, from its package
    python benchmarks/strangers.py --folder DIR         those whose npz files are in a folder
    python benchmarks/strangers.py --row pybullet --networks 1   lines whose name has this
    python benchmarks/strangers.py --results runs.jsonl --networks 0 --write   keep earlier runs

pybullet 3.2.7 (zlib licence) has nine control policies, written out as literals in scripts of
its package, which is fetched by ``pip download`` into --packages.  The literals are read; nothing
of the package runs.  The others are those of Foerster and others, 2024 (the repository
hannafoe/cryptanalytical-extraction, commit 4280cd6), trained on MNIST; they have no licence, so
whoever has them names the folder.  An npz file has weights_0 (neurons, inputs), biases_0, ...
"""

import argparse
import ast
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
from extraction import cells, lines_and_all, one, recorded
from runner import Table, main, shape

from revelu import Network
from revelu.types import FloatArray

# Any wheel has the same scripts; a source distribution would run its setup.
PACKAGE = "pybullet==3.2.7"
WHEEL = ("--only-binary", ":all:", "--python-version", "3.11", "--implementation", "cp")
PLATFORM = ("--platform", "manylinux2014_x86_64")
SCRIPT = "enjoy_TF_{}BulletEnv_"
ARRAYS = ("dense1", "dense2", "final")

POLICIES = {
    "InvertedPendulum": (5, 64, 32, 1),
    "InvertedPendulumSwingup": (5, 64, 32, 1),
    "InvertedDoublePendulum": (9, 64, 32, 1),
    "Hopper": (15, 128, 64, 3),
    "Walker2D": (22, 128, 64, 6),
    "HalfCheetah": (26, 128, 64, 6),
    "Ant": (28, 128, 64, 8),
    "Humanoid": (44, 256, 128, 17),
    "HumanoidFlagrunHarder": (44, 256, 128, 17),
}
# Widths and numbers of hidden layers.
MNIST = ((8, 2), (16, 2), (32, 2), (64, 2), (128, 2), (8, 8), (16, 8))


@dataclass(frozen=True)
class Row:
    """A network, where its file lies, and its shape; a run has a seed of the extraction alone."""

    file: str
    widths: tuple[int, ...]
    source: Path
    networks: int = 1

    @property
    def name(self) -> str:
        """Where it comes from, and its shape."""
        return f"{self.file}, {shape(self.widths)}"

    def truth(self, seed: int) -> Network:  # noqa: ARG002 - there is but one
        """Read it.

        Raises
        ------
        ValueError
            If it has another shape.
        """
        origin, _, policy = self.file.partition("_")
        if self.source.is_dir():
            network = from_npz(self.source / f"{self.file}.npz")
        else:
            network = from_wheel(self.source, policy)
        if network.architecture != self.widths:
            raise ValueError(f"{origin}'s {policy} is {network}, not {self.widths}")
        return network

    def data(self, seed: int) -> FloatArray | None:
        """None is at hand."""


def rows_of(folder: Path | None, packages: Path) -> list[Row]:
    """List the networks that are at hand: those of a folder, or pybullet's."""
    policies = [(f"pybullet_{name}", widths) for name, widths in POLICIES.items()]
    if folder is None:
        wheel = fetched(packages)
        return [Row(file, widths, wheel) for file, widths in policies]
    digits = [(f"foerster24_mnist784_{k}x{n}_1", (784, *[k] * n, 1)) for k, n in MNIST]
    rows = [Row(file, widths, folder) for file, widths in (*policies, *digits)]
    return [row for row in rows if (folder / f"{row.file}.npz").is_file()]


def fetched(packages: Path) -> Path:
    """Return pybullet's wheel, which is downloaded where it is not there yet."""
    name = PACKAGE.replace("==", "-")
    if not list(packages.glob(f"{name}-*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", PACKAGE, "--no-deps"]
        subprocess.run([*command, *WHEEL, *PLATFORM, "-d", str(packages)], check=True)  # noqa: S603
    return next(packages.glob(f"{name}-*.whl"))


def from_npz(path: Path) -> Network:
    """Read weights_0, biases_0, weights_1, ... of a file."""
    with np.load(path) as arrays:
        n = sum(name.startswith("weights_") for name in arrays.files)
        return Network(
            [arrays[f"weights_{i}"] for i in range(n)], [arrays[f"biases_{i}"] for i in range(n)]
        )


def from_wheel(wheel: Path, policy: str) -> Network:
    """Read the literals of a policy's script, whose matrices are (inputs, neurons)."""
    with zipfile.ZipFile(wheel) as archive:
        begins = SCRIPT.format(policy)
        [script] = (n for n in archive.namelist() if PurePosixPath(n).name.startswith(begins))
        arrays = literal_arrays(archive.read(script).decode())
    return Network(
        [arrays[f"weights_{name}_w"].T for name in ARRAYS],
        [arrays[f"weights_{name}_b"] for name in ARRAYS],
    )


def literal_arrays(source: str) -> dict[str, FloatArray]:
    """Read what a program assigns as ``name = np.array([...])``, without running it."""
    found = {}
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(name)], value=ast.Call(ast.Attribute(attr="array"), [literal])
            ):
                found[name] = np.array(ast.literal_eval(literal), dtype=np.float64)
    return found


def options(parser: argparse.ArgumentParser) -> None:
    """Where the networks are."""
    parser.add_argument("--folder", type=Path, help="npz files, in place of pybullet's package")
    parser.add_argument(
        "--packages",
        type=Path,
        default=Path(tempfile.gettempdir()) / "revelu-strangers",
        help="where pybullet's wheel is, or is put",
    )


TABLE = Table(
    "strangers",
    __doc__,
    lambda given: rows_of(given.folder, given.packages),
    one,
    partial(lines_and_all, cells),
    first_seed=31_000_000,
    outcome=recorded,
    limit=600.0,
    options=options,
)

if __name__ == "__main__":
    main(TABLE)
