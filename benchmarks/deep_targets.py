"""Two thousand deep targets: nothing wrong and silent, and no layer wrongly called exact.

    python benchmarks/deep_targets.py --results deep.jsonl --seconds 600   # again for more
    python benchmarks/deep_targets.py --results deep.jsonl --write         # the rest, the table

Target i is drawn from seed i alone: two to five hidden layers, 2 to 60 inputs, 2 to 32 neurons a
layer, 1 to 8 outputs, of the kinds below, inside the class and outside it.  Nothing but the target
is given, and a run has three seconds: many are cut short, which is when claims are most tempting.

Wrong and silent: as for ten thousand targets.  A layer wrong: one that the outcome calls exact is
not the target's, up to the order of its rows and their positive scales.
"""

from functools import partial

import numpy as np
from extraction import n_right
from many_targets import FAULTS, N_FRESH, Function, Target, judged, table_of
from precision import computing_in
from runner import main

import revelu
from revelu import Network
from revelu.network import zoo
from revelu.types import FloatArray

MAX_SECONDS = 3.0
LAYER_WRONG = "a layer wrong"

Rng = np.random.Generator


def draw(seed: int) -> Target:
    """The target of a seed."""
    rng = np.random.default_rng(seed)
    n_hidden = int(rng.choice([2, 2, 3, 3, 4, 5]))
    widths = (
        between(rng, 2, 60),
        *(between(rng, 2, 32) for _ in range(n_hidden)),
        int(rng.choice([1, 1, 2, 8])),
    )
    kind = str(rng.choice([*INSIDE, *OUTSIDE]))
    network = zoo.random_network(widths, seed=int(rng.integers(2**31)))
    function = (INSIDE | OUTSIDE)[kind](network, rng)
    scales = [1.0, 1.0]
    if rng.random() < 0.1:
        scales[int(rng.integers(2))] = 10.0 ** rng.uniform(-9.0, 9.0)
    return Target(kind, widths, function, *scales)


def between(rng: Rng, least: int, most: int) -> int:
    """Draw a width, as often from each doubling."""
    return int(np.rint(np.exp(rng.uniform(np.log(least), np.log(most)))))


def rare(network: Network, rng: Rng, *, last: bool = False) -> Network:
    """Neurons that fire at a small share of the inputs: of one layer, or of the last."""
    i = network.n_hidden - 1 if last else int(rng.integers(network.n_hidden))
    share = 10.0 ** rng.uniform(-3.0, -0.3)
    X = rng.standard_normal((N_FRESH, network.dim_in))
    sums = network.preactivations(X)[i] - network.biases[i]
    biases = list(network.biases)
    biases[i] = -np.quantile(sums, 1.0 - share, axis=0)
    return Network(network.weights, biases)


def sparse(network: Network, rng: Rng) -> Network:
    """Seven in ten weights are 0."""
    weights = [W * (rng.random(W.shape) < 0.3) for W in network.weights]
    return Network(weights, network.biases)


def quantised(network: Network, rng: Rng) -> Network:  # noqa: ARG001 - as the others
    """Weights of four bits, biases too: hyperplanes that are parallel, or the same."""
    steps = [np.abs(W).max() / 7.0 for W in network.weights]
    weights = [np.rint(W / s) * s for W, s in zip(network.weights, steps, strict=True)]
    biases = [np.rint(b / s) * s for b, s in zip(network.biases, steps, strict=True)]
    return Network(weights, biases)


def far(network: Network, rng: Rng) -> Network:
    """Biases so large that many neurons are always on, or dead."""
    size = 10.0 ** rng.uniform(0.3, 1.5)
    return Network(network.weights, [size * b for b in network.biases])


def alike(network: Network, rng: Rng) -> Network:
    """A layer two of whose rows are the same, nearly the same, or opposite."""
    i = int(rng.integers(network.n_hidden))
    W, b = network.weights[i].copy(), network.biases[i].copy()
    sign, gap = float(rng.choice([1.0, -1.0])), 10.0 ** rng.uniform(-12.0, -1.0)
    W[0], b[0] = sign * W[1] * (1.0 + gap * rng.standard_normal()), sign * b[1] + gap
    weights, biases = list(network.weights), list(network.biases)
    weights[i], biases[i] = W, b
    return Network(weights, biases)


def heavy(network: Network, rng: Rng) -> Network:
    """Weights with heavy tails, as training leaves them."""
    weights = [W * np.exp(rng.standard_normal(W.shape)) for W in network.weights]
    return Network(weights, network.biases)


def in_float32(network: Network, rng: Rng) -> Function:  # noqa: ARG001 - as the others
    """Computed in float32 throughout."""
    return computing_in(network, given=np.float64)


def pairs(network: Network) -> list[tuple[FloatArray, FloatArray]]:
    """Weights and bias of every layer."""
    return list(zip(network.weights, network.biases, strict=True))


def other_activation(network: Network, rng: Rng) -> Function:
    """One layer is not of ReLUs: leaky, absolute, capped, smooth, or the largest of pairs."""
    i = int(rng.integers(network.n_hidden))
    what = str(rng.choice(["leaky", "absolute", "capped", "smooth", "largest"]))
    slope = 10.0 ** rng.uniform(-3.0, -0.3)

    def answer(X: FloatArray) -> FloatArray:
        H = X
        for n, (W, b) in enumerate(pairs(network)[:-1]):
            Z = H @ W.T + b
            H = _activation(what, slope, Z) if n == i else np.maximum(Z, 0.0)
        W, b = pairs(network)[-1]
        return np.asarray(H @ W.T + b)

    return answer


def _activation(what: str, slope: float, Z: FloatArray) -> FloatArray:
    if what == "leaky":
        return np.maximum(Z, slope * Z)
    if what == "absolute":
        return np.abs(Z)
    if what == "capped":
        return np.clip(Z, 0.0, 1.0)
    if what == "smooth":
        return np.logaddexp(0.0, Z / slope) * slope
    return np.maximum(Z, Z[:, ::-1])


def residual(network: Network, rng: Rng) -> Function:
    """What a layer makes is added to what it was made of, or to the inputs."""
    widths = network.architecture
    i = int(rng.integers(1, network.n_hidden))
    M = rng.standard_normal((widths[i + 1], widths[0])) / np.sqrt(widths[0])

    def answer(X: FloatArray) -> FloatArray:
        H = X
        for n, (W, b) in enumerate(pairs(network)[:-1]):
            H = np.maximum(H @ W.T + b, 0.0)
            if n == i:
                H = H + X @ M.T
        W, b = pairs(network)[-1]
        return np.asarray(H @ W.T + b)

    return answer


INSIDE = {
    "random": lambda network, rng: network,  # noqa: ARG005 - as the others
    "heavy tails": heavy,
    "rare layer": rare,
    "rare last layer": partial(rare, last=True),
    "sparse": sparse,
    "four bits": quantised,
    "large biases": far,
    "alike rows": alike,
}
OUTSIDE = {"float32": in_float32, "another activation": other_activation, "residual": residual}
# Kinds of which a layer that is right may have other rows: fewer, or others that do the same.
AMBIGUOUS = {"four bits", "sparse", "large biases", "alike rows"}


def one(seed: int) -> dict[str, object]:
    """Extract one target, and judge it and its layers."""
    target = draw(seed)

    def layers_wrong(recovery: revelu.Recovery) -> str:
        truth = target.function
        if target.kind in AMBIGUOUS or not isinstance(truth, Network):
            return ""
        first = () if recovery.first_layer is None else (recovery.first_layer,)
        layers = recovery.details.get("layers") or first
        X = np.random.default_rng([seed, 2]).standard_normal((N_FRESH, truth.dim_in))
        truth = zoo.scaled(truth, target.input_scale, target.output_scale)
        right = n_right(truth, layers, X)
        return LAYER_WRONG if right < len(layers) else ""

    return judged(target, seed, layers_wrong, max_seconds=MAX_SECONDS)


TABLE = table_of("deep_targets", __doc__, 2_000, one, 41_000_000, (*FAULTS, LAYER_WRONG))

if __name__ == "__main__":
    main(TABLE)
