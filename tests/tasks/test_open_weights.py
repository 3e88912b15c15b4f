"""What a file holds that no method finds, said once, and nothing advised that cannot help."""

import numpy as np
import pytest

import revelu
from revelu import Status
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Pooling, Prelu, Relu
from revelu.tasks.open_weights import beyond_methods, shown_layers


def layers_of(*kinds, shape=(1, 8, 8), seed=0):
    """Layers by the names of what they are, and a dense one on top."""
    rng, layers = np.random.default_rng(seed), []
    for kind in (*kinds, "dense"):
        size = int(np.prod(shape))
        match kind:
            case "conv" | "padded":
                kernels = rng.standard_normal((4, shape[0], 3, 3)) / 3.0
                pads = (1, 1, 1, 1) if kind == "padded" else (0, 0, 0, 0)
                layers.append(Convolution(kernels, rng.standard_normal(4), shape, pads=pads))
                shape = layers[-1].shape_out
            case "relu":
                layers.append(Relu())
            case "leaky":
                layers.append(Prelu(np.full(size, 0.1)))
            case "max" | "average" | "overlapping":
                step = (1, 1) if kind == "overlapping" else (2, 2)
                pool = "average" if kind == "overlapping" else kind
                layers.append(Pooling(pool, shape, (2, 2), step))
                shape = layers[-1].shape_out
            case "dense":
                layers.append(Dense(rng.standard_normal((6, size)) / 6.0, rng.standard_normal(6)))
                shape = (6,)
    return LayeredNetwork(layers)


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        ("conv relu", []),
        ("padded relu average", []),
        ("conv leaky max", []),
        ("conv relu conv relu", []),
        ("conv relu dense relu", []),
        ("conv relu padded relu", ["pads of a second convolution"]),
        ("conv relu conv relu conv relu", ["3 convolutions"]),
        ("conv relu conv relu dense relu", ["a hidden layer above two convolutions"]),
        ("conv leaky dense relu", ["layers above leaky filters"]),
        ("conv relu overlapping", ["windows that overlap"]),
        ("padded relu max", ["the largest of windows of a padded convolution"]),
        ("dense relu", []),
    ],
)
def test_what_no_method_finds_is_named(kinds, said):
    assert beyond_methods(layers_of(*kinds.split()).layers) == said


def test_a_layer_above_filters_takes_digits_and_room():
    layers = layers_of("conv", "relu", "conv", "relu").layers
    assert len(beyond_methods(layers, is_float64=False)) == 1
    assert len(beyond_methods(layers, in_box=True)) == 1
    single = layers_of("conv", "relu", "max").layers
    assert not beyond_methods(single, is_float64=False, in_box=True)


def test_evidence_says_what_the_file_holds_and_advises_nothing_in_vain(tmp_path):
    path = tmp_path / "padded.onnx"
    layers_of("conv", "relu", "padded", "relu").save(path)
    found = revelu.extract(path, budget=2000)
    assert found.status is Status.BUDGET_EXHAUSTED
    assert found.evidence[0].startswith("the target holds 8x8x1, 4 filters of 3x3, ReLU, 4 filters")
    assert "no method here finds pads of a second convolution" in found.evidence[0]
    said = " ".join(found.evidence)
    assert "raise" not in said
    # Float64 answers would not tell pads of a second convolution either.
    assert "float64 may tell more" not in said
    assert found.ledger.n_queries <= 2000


def test_float64_is_advised_where_it_is_what_is_missing(tmp_path):
    path = tmp_path / "two.onnx"
    layers_of("conv", "relu", "conv", "relu").save(path)
    found = revelu.extract(path, budget=2000)
    assert "from answers of fewer digits than float64 has" in found.evidence[0]
    assert "answers in float64 may tell more: export" in found.evidence[-1]


def test_of_what_may_be_found_the_file_says_nothing(tmp_path):
    path = tmp_path / "single.onnx"
    layers_of("conv", "relu").save(path)
    found = revelu.extract(path, budget=400)
    assert found.status is Status.BUDGET_EXHAUSTED
    assert not any("the target holds" in said for said in found.evidence)
    assert "raise the budget" in found.evidence


def test_a_module_shows_its_layers_too():
    torch = pytest.importorskip("torch")

    class Padded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(1, 2, 3)
            self.second = torch.nn.Conv2d(2, 2, 3, padding=1)
            self.top = torch.nn.Linear(72, 4)

        def forward(self, x):
            x = torch.relu(self.second(torch.relu(self.first(x))))
            return self.top(x.flatten(1))

    oracle = revelu.open_oracle(Padded().double(), image="8x8x1", budget=1000)
    found = revelu.extract(oracle)
    assert "no method here finds pads of a second convolution" in found.evidence[0]
    assert found.ledger.n_queries <= 1000


def test_a_module_that_cannot_be_written_shows_nothing():
    torch = pytest.importorskip("torch")

    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(1, 2, 3)

        def forward(self, x):
            return torch.linalg.eigvals(self.first(x)).abs().flatten(1)

    oracle = revelu.open_oracle(Odd().double(), image="8x8x1", budget=300)
    assert shown_layers(oracle) is None


@pytest.mark.parametrize(("kinds", "n"), [("conv relu padded relu", 1), ("conv relu", 0)])
def test_a_diagnosis_says_what_an_extraction_would_ask_for_in_vain(kinds, n):
    found = revelu.diagnose(layers_of(*kinds.split()), budget=1000)
    said = [note for note in found.warnings if note.startswith("extract: no method here finds")]
    assert len(said) == n
    assert found.ledger.n_queries <= 1000
