"""Image-shaped targets, and targets of few inputs: each ends in a status, and none is silent.

    python benchmarks/shapes.py --results shapes.jsonl --seconds 600   # again for more
    python benchmarks/shapes.py --results shapes.jsonl --write         # the rest, the table

Target i is drawn from seed i alone.  Every other one has images for inputs: one to three channels,
4 to 14 pixels a side or a series, filters of 1x1 to 5x5, strides, pads, dilations, the largest or
the mean of windows, another convolution or a dense layer above, units that are leaky, filters that
are the same, opposite, dead, zero or always on, dense weights of zero; some say so, some do not.
The others have one to four inputs, up to three hidden layers of up to 40 neurons, some dead,
always on, the same or zero; constants, zeros, sizes of up to 1e12 and down to 1e-12.  A third
computes in float32.  A run has 12,000 queries and four seconds.

Wrong and silent, hung, crashed: as for ten thousand targets.
"""

from dataclasses import dataclass

import numpy as np
from many_targets import Function, Target, judged, table_of
from runner import main

import revelu
from revelu import Network
from revelu.network import LayeredNetwork, zoo
from revelu.network.layers import Convolution, Dense, Layer, Pooling, Prelu, Relu
from revelu.types import FloatArray

MAX_SECONDS = 4.0
BUDGET = 12_000

Rng = np.random.Generator


@dataclass(frozen=True)
class Shaped:
    """A target whose inputs may be images, and which says so or not."""

    target: Target
    image: tuple[int, int, int] | None = None


def draw(seed: int) -> Shaped:
    """The target of a seed."""
    rng = np.random.default_rng(seed)
    return images(rng) if seed % 2 else few_inputs(rng)


def images(rng: Rng) -> Shaped:
    """A network of convolutions."""
    layers: list[Layer] = []
    while not layers:
        layers, n = convolutions(rng)
    k = int(rng.choice([1, 2, 4, 10]))
    kind = "images"
    if rng.random() < 0.2:
        m = int(rng.integers(1, 8))
        layers += [Dense(rng.standard_normal((m, n)) / np.sqrt(n), rng.standard_normal(m)), Relu()]
        n, kind = m, "images, dense layer"
    A = rng.standard_normal((k, n)) / np.sqrt(n) * (rng.random((k, n)) < rng.choice([1.0, 0.3]))
    layers.append(Dense(A * (rng.random() > 0.05), rng.standard_normal(k)))
    network = LayeredNetwork(layers)
    first = layers[0]
    assert isinstance(first, Convolution)  # noqa: S101
    function = rounded(network) if rng.random() < 1 / 3 else network.__call__
    said = first.shape if rng.random() < 0.5 else None
    return Shaped(Target(kind, (network.dim_in,), function), said)


def convolutions(rng: Rng) -> tuple[list[Layer], int]:
    """One or two, with what pools them, and how many features; none where they do not fit."""
    side = int(rng.integers(4, 15))
    rows = 1 if rng.random() < 0.15 else side
    columns = int(rng.integers(10, 40)) if rows == 1 else int(rng.integers(4, 15))
    shape = (int(rng.choice([1, 1, 2, 3])), rows, columns)
    layers: list[Layer] = []
    for _ in range(1 if rng.random() < 0.75 else 2):
        size = int(rng.choice([1, 2, 3, 3, 5]))
        size_down = 1 if rows == 1 else size
        n = int(rng.integers(1, 6))
        kernels = rng.standard_normal((n, shape[0], size_down, size)) / np.sqrt(shape[0] * size**2)
        biases = 0.3 * rng.standard_normal(n)
        odd_filters(kernels, biases, rng)
        stride, dilation = int(rng.choice([1, 1, 1, 2, 3])), int(rng.choice([1, 1, 1, 2]))
        pad = int(rng.choice([0, 0, 1, 2]))
        down = rows > 1
        try:
            conv = Convolution(
                kernels,
                biases,
                shape,
                (stride if down else 1, stride),
                (pad * down, pad, pad * down, pad),
                (dilation if down else 1, dilation),
            )
        except revelu.InputError:
            return [], 0
        leaky = Prelu(np.full(conv.size_out, rng.uniform(-1.0, 1.0)))
        layers += [conv, leaky if rng.random() < 0.15 else Relu()]
        shape = conv.shape_out
        if min(shape) < 1:
            return [], 0
        if rng.random() < 0.5:
            window = (min(2, shape[1]), min(int(rng.choice([2, 2, 3])), shape[2]))
            pool = Pooling(str(rng.choice(["max", "average"])), shape, window, window)
            layers, shape = [*layers, pool], pool.shape_out
    return layers, int(np.prod(shape))


def odd_filters(kernels: FloatArray, biases: FloatArray, rng: Rng) -> None:
    """Make some of them odd, in place."""
    what = rng.random()
    f = int(rng.integers(len(biases)))
    if what < 0.08:
        biases[f] = -50.0
    elif what < 0.16:
        biases[:] = -50.0
    elif what < 0.24:
        kernels[f] = 0.0
    elif what < 0.32:
        kernels[f], biases[f] = kernels[0], biases[0]
    elif what < 0.40:
        kernels[f], biases[f] = -kernels[0], -biases[0]
    elif what < 0.48:
        biases[f] = 50.0
    elif what < 0.56:
        kernels[:, :, 0, 0] *= 1e-3


def few_inputs(rng: Rng) -> Shaped:
    """A network of one to four inputs."""
    widths = [int(rng.integers(1, 5))]
    widths += [int(np.rint(np.exp(rng.uniform(0.0, np.log(40.0))))) for _ in range(rng.integers(4))]
    widths.append(int(rng.choice([1, 1, 2, 5])))
    drawn = zoo.random_network(widths, seed=int(rng.integers(2**31)))
    weights, biases = [W.copy() for W in drawn.weights], [b.copy() for b in drawn.biases]
    for W, b in zip(weights[:-1], biases[:-1], strict=True):
        j = int(rng.integers(len(b)))
        what = rng.random()
        if what < 0.1:
            b[j] = -50.0
        elif what < 0.2:
            b[j] = 50.0
        elif what < 0.3:
            W[j], b[j] = W[0], b[0]
        elif what < 0.35:
            W[j] = 0.0
        elif what < 0.4:
            b[:] = -50.0
    if rng.random() < 0.05:
        weights[-1][:] = 0.0
    if rng.random() < 0.05:
        weights[-1][0], biases[-1][0] = 0.0, 0.0
    network = Network(weights, biases)
    function = rounded(network) if rng.random() < 1 / 3 else network
    scales = [1.0, 1.0]
    if rng.random() < 0.3:
        scales[int(rng.integers(2))] = 10.0 ** rng.uniform(-12.0, 12.0)
    return Shaped(Target(f"few inputs, {len(widths) - 2} hidden", tuple(widths), function, *scales))


def rounded(network: Network | LayeredNetwork) -> Function:
    """Answers of float32."""

    def answer(X: FloatArray) -> FloatArray:
        exact = network(X.astype(np.float32).astype(np.float64))
        return exact.astype(np.float32)

    return answer


def one(seed: int) -> dict[str, object]:
    """Extract one target, and judge what came back."""
    shaped = draw(seed)
    said = None if shaped.image is None else (*shaped.image[1:], shaped.image[0])
    return judged(shaped.target, seed, budget=BUDGET, max_seconds=MAX_SECONDS, image=said)


TABLE = table_of("shapes", __doc__, 600, one, 47_000_000)

if __name__ == "__main__":
    main(TABLE)
