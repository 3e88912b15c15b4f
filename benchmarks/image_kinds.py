"""Image models as people export them, and what is none: what comes back, and at what cost.

Targets with pixels in [0, 1] are asked there.  Trained ones are trained by torch on scikit-learn's
digits, enlarged to 28x28; others have random weights.  Exact: certified, the truth's layers (of
those in a box the filters that bend there), and an NRMSE of at most 1e-9 over 2,000 points of the
domain, in float32 1e-6.  What is no image model is to be given up, for the queries of the bar.
Classes: those that are equal at 10,000 digits, shifted and rescaled.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from runner import Line, Table, bar, by_row

import revelu
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, ImageShape, Layer, Pooling, Relu

PASSES = 10

Ask = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class KindRow:
    """Targets of one kind.

    Attributes
    ----------
    kind : str
        Of :data:`KINDS`.
    shape : (int, int, int)
    needed : str
        How many have to come back, or to be given up, of how many.
    queries : int
        Bar; three times as many are the budget where there is a network to be found.
    float32, box : bool
    none : bool
        Whether it is no image model.
    """

    name: str
    kind: str
    shape: ImageShape
    needed: str
    queries: int
    float32: bool = False
    box: bool = False
    none: bool = False
    seconds: float | None = None

    @property
    def networks(self) -> int:
        """How many there are to be."""
        return int(self.needed.split(" of ")[1])


@dataclass(frozen=True)
class KindRun:
    """One target's outcome."""

    seed: int
    status: str
    nrmse: float
    same_layers: bool
    classes: float
    queries: int
    cpu: float

    def is_right(self, row: KindRow) -> bool:
        """Whether it came back, or was given up."""
        if row.none:
            return not np.isfinite(self.nrmse) and self.queries <= row.queries
        error = 1e-6 if row.float32 else 1e-9
        return self.status == "recovered" and self.same_layers and self.nrmse <= error


@cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Digits of 28x28 in [0, 1], and what they show."""
    from sklearn.datasets import load_digits  # noqa: PLC0415

    X, y = load_digits(return_X_y=True)
    images = np.kron(X.reshape(-1, 8, 8) / 16.0, np.ones((3, 3)))
    return np.pad(images, ((0, 0), (2, 2), (2, 2))).reshape(len(X), -1), y


def digits_like(n: int, rng: np.random.Generator) -> np.ndarray:
    """Digits at other places and of other brightness, (n, 784)."""
    images = digits()[0][rng.integers(0, len(digits()[0]), n)].reshape(n, 28, 28)
    moved = [np.roll(x, rng.integers(-3, 4, 2), (0, 1)) for x in images]
    return np.asarray(np.array(moved) * rng.uniform(0.5, 1.0, (n, 1, 1))).reshape(n, -1)


def trained(layers: list[Layer], seed: int) -> list[Layer]:
    """Layers with the weights that torch finds for digits, by Adam in float32."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    modules: list[torch.nn.Module] = [torch.nn.Unflatten(1, (1, 28, 28))]
    for layer in layers:
        if isinstance(layer, Convolution):
            size = layer.kernels.shape
            modules.append(torch.nn.Conv2d(size[1], size[0], size[2:]))
        elif isinstance(layer, Pooling):
            pool = torch.nn.MaxPool2d if layer.kind == "max" else torch.nn.AvgPool2d
            modules.append(pool(layer.size))
        elif isinstance(layer, Dense):
            if not any(isinstance(m, torch.nn.Flatten) for m in modules):
                modules.append(torch.nn.Flatten())
            modules.append(torch.nn.Linear(layer.size_in, layer.size_out))
        else:
            modules.append(torch.nn.ReLU())
    module = torch.nn.Sequential(*modules)
    rows, labels = torch.tensor(digits()[0], dtype=torch.float32), torch.tensor(digits()[1])
    optimiser = torch.optim.Adam(module.parameters(), lr=3e-3)
    for _ in range(PASSES):
        for batch in torch.randperm(len(rows)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(module(rows[batch]), labels[batch]).backward()
            optimiser.step()
    weights = iter(p.detach().double().numpy() for p in module.parameters())
    found: list[Layer] = []
    for layer in layers:
        if isinstance(layer, Convolution):
            found.append(layer.with_filters(next(weights), next(weights)))
        elif isinstance(layer, Dense):
            found.append(Dense(next(weights), next(weights)))
        else:
            found.append(layer)
    return found


def convolution(n: int, size: int, shape: ImageShape, rng: np.random.Generator) -> Convolution:
    """One of random filters."""
    kernels = rng.standard_normal((n, shape[0], size, size)) / (size * np.sqrt(shape[0]))
    return Convolution(kernels, 0.3 * rng.standard_normal(n), shape)


def dense(n_in: int, n_out: int, rng: np.random.Generator) -> Dense:
    """One of random weights."""
    W = rng.standard_normal((n_out, n_in)) / np.sqrt(n_in)
    return Dense(W, 0.3 * rng.standard_normal(n_out))


def contest(kind: str) -> Callable[[KindRow, int], LayeredNetwork]:
    """32 filters of 2x2, pooled 4x4, as in a contest of verifiers."""

    def made(row: KindRow, seed: int) -> LayeredNetwork:
        rng = np.random.default_rng(seed)
        conv = convolution(32, 2, row.shape, rng)
        pool = Pooling(kind, conv.shape_out, (4, 4), (4, 4))
        return LayeredNetwork(trained([conv, Relu(), pool, dense(pool.size_out, 10, rng)], seed))

    return made


def small(kind: str) -> Callable[[KindRow, int], LayeredNetwork]:
    """Three filters of 3x3, perhaps pooled 2x2."""

    def made(row: KindRow, seed: int) -> LayeredNetwork:
        rng = np.random.default_rng(seed)
        conv = convolution(3, 3, row.shape, rng)
        pools = [Pooling(kind, conv.shape_out, (2, 2), (2, 2))] if kind else []
        n = (pools[0] if pools else conv).size_out
        return LayeredNetwork([conv, Relu(), *pools, dense(n, 4, rng)])

    return made


def global_average(row: KindRow, seed: int) -> LayeredNetwork:
    """16 filters of 3x3, with a batch normalisation folded into them, and the mean of each."""
    rng = np.random.default_rng(seed)
    conv = convolution(16, 3, row.shape, rng)
    scale, shift = rng.uniform(0.5, 1.5, 16), 0.2 * rng.standard_normal(16)
    conv = conv.with_filters(conv.kernels * scale[:, None, None, None], conv.biases * scale + shift)
    pool = Pooling("average", conv.shape_out, conv.places, conv.places)
    return LayeredNetwork([conv, Relu(), pool, dense(16, 10, rng)])


def lenet(row: KindRow, seed: int) -> LayeredNetwork:
    """LeNet-5: two convolutions of 5x5, pooled, and three dense layers."""
    rng = np.random.default_rng(seed)
    layers: list[Layer] = []
    shape = row.shape
    for n in (6, 16):
        conv = convolution(n, 5, shape, rng)
        pool = Pooling("average", conv.shape_out, (2, 2), (2, 2))
        layers += [conv, Relu(), pool]
        shape = pool.shape_out
    n = int(np.prod(shape))
    for k in (120, 84):
        layers, n = [*layers, dense(n, k, rng), Relu()], k
    return LayeredNetwork(trained([*layers, dense(n, 10, rng)], seed))


def residual(row: KindRow, seed: int) -> Ask:
    """Two convolutions of 3x3 and pads, the second added to the first, and a dense layer."""
    rng = np.random.default_rng(seed)
    pads = (1, 1, 1, 1)
    first = convolution(8, 3, row.shape, rng)
    first = Convolution(first.kernels, first.biases, row.shape, pads=pads)
    second = convolution(8, 3, first.shape_out, rng)
    second = Convolution(second.kernels, second.biases, first.shape_out, pads=pads)
    above = dense(second.size_out, 10, rng)

    def ask(X: np.ndarray) -> np.ndarray:
        H = np.maximum(first(X), 0.0)
        return above(H + np.maximum(second(H), 0.0))

    return ask


def dense_only(row: KindRow, seed: int) -> Ask:
    """A dense network with one hidden layer."""
    rng = np.random.default_rng(seed)
    d = int(np.prod(row.shape))
    return LayeredNetwork([dense(d, 64, rng), Relu(), dense(64, 10, rng)]).__call__


def forest(row: KindRow, seed: int) -> Ask:
    """Trees on pixels, fitted to digits."""
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415

    del row
    X, y = digits()
    fitted = RandomForestRegressor(10, random_state=seed).fit(X, np.eye(10)[y])
    return lambda Z: np.asarray(fitted.predict(Z))


KINDS: dict[str, Callable[[KindRow, int], LayeredNetwork | Ask]] = {
    "contest, average": contest("average"),
    "contest, max": contest("max"),
    "small": small(""),
    "small, max": small("max"),
    "small, average": small("average"),
    "global average": global_average,
    "lenet": lenet,
    "residual": residual,
    "dense": dense_only,
    "forest": forest,
}

MNIST, MIDDLE, COLOURS = (1, 28, 28), (1, 12, 12), (3, 32, 32)
IN_BOX = {"float32": True, "box": True}
NONE = {"shape": MNIST, "needed": "1 of 1", "queries": 5_000, "none": True}

ROWS = (
    KindRow(
        "28x28, 32 of 2x2, average 4x4, digits, in a box, float32",
        "contest, average",
        MNIST,
        "2 of 2",
        20_000,
        seconds=120,
        **IN_BOX,
    ),
    KindRow(
        "28x28, 32 of 2x2, max 4x4, digits, in a box, float32",
        "contest, max",
        MNIST,
        "1 of 1",
        20_000,
        seconds=120,
        **IN_BOX,
    ),
    *(
        KindRow(
            f"12x12, 3 of 3x3{', ' * bool(pool)}{pool}{', in a box, float32' * inside}",
            f"small{', ' * bool(pool)}{pool}",
            MIDDLE,
            "19 of 20",
            12_000,
            inside,
            inside,
        )
        for inside in (False, True)
        for pool in ("", "max", "average")
    ),
    KindRow(
        "32x32x3, 16 of 3x3, batch normalisation, global average, float32",
        "global average",
        COLOURS,
        "1 of 1",
        60_000,
        float32=True,
    ),
    KindRow(
        "32x32x3, 16 of 3x3, batch normalisation, global average, in a box, float32",
        "global average",
        COLOURS,
        "1 of 1",
        60_000,
        **IN_BOX,
    ),
    KindRow("LeNet-5, digits", "lenet", MNIST, "1 of 1", 60_000),
    KindRow("LeNet-5, digits, in a box, float32", "lenet", MNIST, "1 of 1", 60_000, **IN_BOX),
    KindRow("16x16x3, two convolutions, residual", "residual", (3, 16, 16), "1 of 1", 60_000),
    KindRow("no image model: dense 784-64-10", "dense", **NONE),
    KindRow("no image model: dense 784-64-10, in a box, float32", "dense", **NONE, **IN_BOX),
    KindRow("no image model: trees on pixels", "forest", **NONE),
    KindRow("no image model: trees on pixels, in a box, float32", "forest", **NONE, **IN_BOX),
)


def one_kind(row: KindRow, seed: int, limit: float | None) -> KindRun:
    """Extract one target by the method of images."""
    truth = KINDS[row.kind](row, seed)
    rng, d = np.random.default_rng([seed, 1]), int(np.prod(row.shape))
    channels, height, width = row.shape
    with tempfile.TemporaryDirectory() as folder:
        target: Ask | str = truth if not row.float32 else (lambda X: truth(X).astype(np.float32))
        if row.float32 and isinstance(truth, LayeredNetwork):
            target = str(Path(folder) / "target.onnx")
            truth.save(target)
        cpu = time.process_time()
        found = revelu.extract(
            target,
            "shared_weights",
            seed=seed,
            max_seconds=limit,
            budget=None if row.none else 3 * row.queries,
            dim_in=None if isinstance(target, str) else d,
            image=f"{height}x{width}x{channels}",
            domain=revelu.Domain.box(0.0, 1.0) if row.box else None,
        )
        cpu = time.process_time() - cpu
    X = rng.random((2000, d)) if row.box else rng.standard_normal((2000, d))
    nrmse, classes, network = np.inf, 0.0, found.network
    if network is not None:
        Y = truth(X)
        nrmse = float(np.sqrt(((network(X) - Y) ** 2).mean() / Y.var(axis=0).mean()))
        if d == 784:
            Z = digits_like(10_000, rng)
            classes = float((network(Z).argmax(axis=1) == truth(Z).argmax(axis=1)).mean())
    return KindRun(
        seed=seed,
        status=str(found.status),
        nrmse=nrmse,
        same_layers=isinstance(network, LayeredNetwork)
        and isinstance(truth, LayeredNetwork)
        and _outline(network, box=row.box) == _outline(truth, box=row.box),
        classes=classes,
        queries=found.ledger.n_recovery,
        cpu=cpu,
    )


def _outline(network: LayeredNetwork, *, box: bool) -> list[object]:
    """Kinds and sizes of the layers; in a box not how many filters there are."""
    found: list[object] = []
    for layer in network.layers:
        if isinstance(layer, Convolution):
            found.append((layer.kernels.shape[box:], layer.strides, layer.places))
        elif isinstance(layer, Pooling):
            found.append((layer.kind, layer.size, layer.strides))
        else:
            found.append(type(layer).__name__)
    return found


def kind_line(row: KindRow, runs: list[KindRun]) -> Line:
    """One line of the table."""
    nrmse = np.array([run.nrmse for run in runs])
    certified = np.array([run.status == "recovered" for run in runs])
    right = np.array([run.is_right(row) for run in runs])
    queries, cpu = ([getattr(run, name) for run in runs] for name in ("queries", "cpu"))
    classes = [run.classes for run in runs if run.classes]
    return {
        "target": row.name,
        "targets": f"{len(runs)}",
        "exact, or given up (bar)": f"{right.sum()} ({row.needed})",
        "certified": f"{certified.sum()}",
        "certified, not exact": f"{(certified & ~right).sum()}",
        "NRMSE, worst": "" if row.none else f"{nrmse.max():.1e}",
        "classes equal": f"{min(classes):.2%}" if classes else "",
        "queries, median (bar)": f"{np.median(queries):,.0f}{bar(row.queries, ',')}",
        "queries, most": f"{max(queries):,}",
        "CPU s, median (bar)": f"{np.median(cpu):.1f}{bar(row.seconds, ',')}",
        "seeds from": f"{min(run.seed for run in runs):,}",
    }


KINDS_TABLE = Table(
    "structure_kinds",
    __doc__,
    ROWS,
    one_kind,
    by_row(kind_line),
    first_seed=69_200_000,
    outcome=KindRun,
    limit=600.0,
    apart=100,
    quick=lambda row: row.shape[1] <= 12,
)
