"""What kind of function a target is: named where its answers tell, and never guessed."""

import numpy as np
import pytest

import revelu
from revelu.adapters import open_oracle
from revelu.network import LayeredNetwork, zoo
from revelu.network.layers import Convolution, Dense, Pooling, Prelu, Relu
from revelu.oracle import Float32, Oracle, Rounded, degrade, measure_noise
from revelu.tasks.diagnose.kind import KindSearch

SEEDS = range(3)

UNITS = {
    "relu": lambda z: np.maximum(z, 0.0),
    "both sides": lambda z: np.where(z > 0, z, 0.2 * z),
    "absolute": np.abs,
    "clipped": lambda z: np.clip(z, 0.0, 2.0),
}


def layers(unit, widths, seed):
    network = zoo.random_network(widths, seed=seed)

    def ask(X):
        H = X
        for W, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
            H = unit(H @ W.T + b)
        return H @ network.weights[-1].T + network.biases[-1]

    return ask


def filters(pool, slopes=None):
    return {
        "number": 3,
        "window": [3, 3],
        "strides": [1, 1],
        "slopes": slopes,
        "pooling": pool or None,
        "pooling_window": [2, 2] if pool else None,
    }


def convolution(seed, pool="", slope=None, above=0):
    rng = np.random.default_rng(seed)
    conv = Convolution(
        rng.standard_normal((3, 1, 3, 3)) / 3.0, 0.3 * rng.standard_normal(3), (1, 10, 10)
    )
    pooled = [Pooling(pool, conv.shape_out, (2, 2), (2, 2))] if pool else []
    n = pooled[0].size_out if pool else conv.size_out
    units = Relu() if slope is None else Prelu(np.full(conv.size_out, slope))
    below = [conv, units, *pooled]
    if above:
        shape = (pooled[0] if pool else conv).shape_out
        upper = rng.standard_normal((above, 3, 3, 3)) / 5.0
        below += [Convolution(upper, 0.3 * rng.standard_normal(above), shape), Relu()]
        n = below[-2].size_out
    top = Dense(rng.standard_normal((5, n)) / n**0.5, rng.standard_normal(5))
    return LayeredNetwork([*below, top])


def kind_of(target, d, seed=0, *, most, image=None):
    oracle = target if isinstance(target, Oracle) else open_oracle(target, dim_in=d, image=image)
    noise = measure_noise(oracle, seed + 7)
    kind = KindSearch(oracle, noise, np.random.default_rng(seed + 5)).run()
    assert kind.n_queries <= most
    assert kind.evidence
    return kind


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("widths", [(10, 16, 1), (40, 20, 5)])
def test_units_of_one_hidden_layer_are_named(unit, widths, seed):
    # What is clipped is constant in places, as steps are: it is looked at more closely.
    most = 1_100 if unit == "clipped" else 900
    kind = kind_of(layers(UNITS[unit], widths, seed), widths[0], seed, most=most)
    assert (kind.function, kind.hidden_layers) == ("piecewise linear", "one")
    assert kind.units == unit


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unit", UNITS)
def test_several_layers_are_told_and_their_units_not_guessed(unit, seed):
    kind = kind_of(layers(UNITS[unit], (10, 10, 10, 1), seed), 10, seed, most=900)
    assert kind.hidden_layers == "several"
    assert kind.units == ("absolute" if unit == "absolute" else "unknown")


@pytest.mark.parametrize("seed", SEEDS)
def test_maxima_of_three_are_not_called_layers(seed):
    rng = np.random.default_rng(seed)
    W, A = rng.standard_normal((3, 8, 10)), rng.standard_normal((10, 2))
    kind = kind_of(lambda X: np.max(X @ W, axis=0) @ A, 8, seed, most=600)
    assert (kind.function, kind.hidden_layers, kind.units) == (
        "piecewise linear",
        "unknown",
        "unknown",
    )
    assert any("largest of three" in said for said in kind.evidence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pool", ["", "max", "average"])
def test_filters_of_an_image_are_named(pool, seed):
    kind = kind_of(convolution(seed, pool), 100, seed, most=2_000, image="10x10x1")
    # Three filters may be too few to count layers by: then none are named.
    if kind.structure == "convolution":
        assert kind.filters == filters(pool)
    assert kind.extract_with == "--image 10x10x1"
    assert kind.hidden_layers != "several"


def test_filters_are_found_of_most_images():
    kinds = [kind_of(convolution(s), 100, s, most=2_000, image="10x10x1") for s in range(5)]
    assert sum(kind.structure == "convolution" for kind in kinds) >= 4


@pytest.mark.parametrize("pool", ["", "average"])
def test_images_are_seen_and_priced_where_the_target_does_not_tell(pool):
    target = convolution(1, pool)
    kind = kind_of(target.__call__, 100, 1, most=1_500)
    assert kind.image == (1, 10, 10)
    assert (kind.hidden_layers, kind.units) == ("one", "relu")
    assert kind.filters == filters(pool)
    spent = revelu.extract(target.__call__, dim_in=100, seed=1, checks=300).ledger.n_recovery
    assert 0.7 * spent <= kind.extract_queries <= 1.4 * spent


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pool", "most", "needed", "seeds"),
    [
        ("", 1_000, 4, range(4)),
        ("average", 1_000, 4, range(4)),
        ("max", 8_000, 4, range(4, 10)),
    ],
)
def test_leaky_filters_show_their_slopes(pool, most, needed, seeds):
    kinds = [kind_of(convolution(s, pool, 0.2).__call__, 100, s, most=most) for s in seeds]
    found = [kind for kind in kinds if kind.structure == "convolution"]
    assert len(found) >= needed
    for kind in found:
        assert (kind.units, kind.hidden_layers) == ("leaky", "one")
        assert np.abs(np.array(kind.filters["slopes"]) - 0.2).max() <= 1e-6
        assert kind.filters == filters(pool, kind.filters["slopes"])


@pytest.mark.parametrize("pool", ["", "max"])
def test_filters_below_other_neurons_are_named(pool):
    for s in range(3):
        kind = kind_of(convolution(s, pool, above=2), 100, s, most=4_000, image="10x10x1")
        assert kind.filters == filters(pool)
        assert kind.hidden_layers != "one"
        assert kind.units == "unknown"
        assert kind.extract_queries is None


def test_filters_are_not_told_from_what_lies_above_in_float32():
    target = Oracle(degrade(convolution(2, above=2), Float32()), 100, image=(1, 10, 10))
    kind = kind_of(target, 100, 2, most=600)
    assert (kind.structure, kind.filters) == ("unknown", None)
    assert kind.extract_with == "--image 10x10x1"


@pytest.mark.parametrize(("widths", "structure"), [((36, 20, 3), "dense"), ((36, 20, 9, 3), None)])
def test_dense_layers_over_an_image(widths, structure):
    kind = kind_of(zoo.random_network(widths, seed=1), 36, most=900, image="6x6x1")
    assert kind.structure == (structure or "unknown")
    assert kind.extract_with == ""


@pytest.mark.parametrize(
    ("kind", "function", "advice"),
    [("tanh", "smooth", None), ("square", "smooth", None), ("step", "steps", None)],
)
def test_what_no_method_recovers_is_said(kind, function, advice):
    found = kind_of(zoo.OUTSIDE[kind]([6, 8, 2], seed=1), 6, most=600)
    assert (found.function, found.extract_with) == (function, advice)
    assert (found.hidden_layers, found.units, found.structure) == ("unknown",) * 3


def test_affine_functions_and_coarse_answers():
    assert kind_of(zoo.affine(6, 2, seed=1), 6, most=300).function == "affine"
    network = zoo.random_network([10, 16, 1], seed=1)
    rough = kind_of(Oracle(degrade(network, Float32()), 10), 10, most=300)
    assert (rough.function, rough.hidden_layers) == ("piecewise linear", "unknown")
    # So few of them tell that its steps are those of rounding, and no forest's.
    assert kind_of(Oracle(degrade(network, Rounded(3)), 10), 10, most=240).function == "unknown"


def test_too_many_neurons_to_follow_any_are_no_error():
    for seed in range(3):
        kind = kind_of(zoo.random_network([8, 3000, 2], seed=seed), 8, seed, most=2_500)
        assert kind.hidden_layers == "unknown"
        assert kind.units == "unknown"


def test_budget_keeps_what_was_told():
    network = zoo.random_network([10, 16, 1], seed=1)
    found = revelu.diagnose(network, budget=64 + 160)
    assert found.ledger.n_queries <= 224
    assert found.kind.units == "unknown"
    assert found.kind.evidence


def test_diagnosis_tells_the_kind():
    found = revelu.diagnose(zoo.random_network([6, 8, 1], seed=2))
    assert found.to_dict()["kind"]["hidden_layers"] == "one"
    assert "one hidden layer" in repr(found)
    again = revelu.diagnose(zoo.random_network([6, 8, 1], seed=2))
    assert again.kind == found.kind


def test_units_of_an_image_are_said_of_those_that_were_looked_at():
    # One unit, in the middle, passes both sides, and no pixel at a corner moves it.
    rng = np.random.default_rng(0)
    conv = Convolution(rng.standard_normal((2, 1, 3, 3)), 0.3 * rng.standard_normal(2), (1, 8, 8))
    slopes = np.zeros(conv.size_out)
    slopes[6 * 2 + 3] = 0.2
    top = Dense(rng.standard_normal((1, conv.size_out)), np.zeros(1))
    kind = kind_of(LayeredNetwork([conv, Prelu(slopes), top]), 64, most=2_500, image="8x8x1")
    assert kind.units == "relu"
    assert any("that a pixel at a corner moves" in said for said in kind.evidence)
    # Of inputs that are no image the line meets all neurons.
    dense = kind_of(zoo.random_network([5, 4, 1], seed=1), 5, most=400)
    assert not any("corner" in said for said in dense.evidence)
