"""Images that a file clips: asked where it does, unless a place was said."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import revelu
from revelu.adapters import open_oracle
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Pooling, Relu
from revelu.oracle import Domain


def pooled(seed=0):
    """A convolution without pads, pooled by means."""
    rng = np.random.default_rng(seed)
    conv = Convolution(rng.standard_normal((4, 1, 2, 2)), -0.3 * rng.random(4), (1, 9, 9))
    pool = Pooling("average", conv.shape_out, (4, 4), (4, 4))
    A = rng.standard_normal((5, pool.size_out)) / np.sqrt(pool.size_out)
    return LayeredNetwork([conv, Relu(), pool, Dense(A, rng.standard_normal(5))])


def clipped(path, *before, low=0.0, high=1.0, attributes=False):
    """Write that network behind a Clip, and other nodes ``(kind, constant)`` before it."""
    pooled().save(path)
    model = onnx.load(path)
    graph, name = model.graph, model.graph.input[0].name
    first = graph.node[0]
    nodes, value = [], name
    for i, (kind, constant) in enumerate(before):
        tensor = numpy_helper.from_array(np.float32(constant), f"constant{i}")
        graph.initializer.append(tensor)
        nodes.append(helper.make_node(kind, [value, tensor.name], [f"step{i}"]))
        value = f"step{i}"
    if attributes:
        nodes.append(helper.make_node("Clip", [value], ["inside"], min=low, max=high))
        model.opset_import[0].version = 10
    else:
        graph.initializer.append(numpy_helper.from_array(np.float32(low), "low"))
        graph.initializer.append(numpy_helper.from_array(np.float32(high), "high"))
        nodes.append(helper.make_node("Clip", [value, "low", "high"], ["inside"]))
    first.input[0] = "inside"
    for node in reversed(nodes):
        graph.node.insert(0, node)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize(
    ("before", "ends", "attributes"),
    [
        ((), (0.0, 1.0), False),
        ((), (0.0, 1.0), True),
        ((("Div", 255.0),), (0.0, 255.0), False),
        ((("Sub", 0.5), ("Mul", -2.0)), (0.0, 0.5), False),
    ],
)
def test_the_ends_are_read_in_units_of_the_input(tmp_path, before, ends, attributes):
    path = clipped(tmp_path / "clip.onnx", *before, attributes=attributes)
    found = open_oracle(path).target.clips_to
    np.testing.assert_allclose(found, ends, rtol=1e-12)
    # Beyond them no answer moves.
    ask, (low, high) = open_oracle(path), found
    X = np.random.default_rng(0).uniform(low, high, (20, 81))
    over = X + (high - low) * np.where(X - low > high - X, 1.0, -1.0)
    np.testing.assert_array_equal(ask(over), ask(np.clip(over, low, high)))


def test_what_columns_of_their_own_scales_are_clipped_to_is_no_box(tmp_path):
    path = clipped(tmp_path / "clip.onnx", ("Mul", np.linspace(1.0, 2.0, 9)))
    assert open_oracle(path).target.clips_to is None
    pooled().save(tmp_path / "open.onnx")
    assert open_oracle(tmp_path / "open.onnx").target.clips_to is None


def test_ends_may_be_arrays_of_one_number_and_those_of_all_numbers_are_none(tmp_path):
    path = clipped(tmp_path / "clip.onnx", low=np.zeros(1), high=np.ones(1))
    assert open_oracle(path).target.clips_to == (0.0, 1.0)
    far = float(np.finfo(np.float32).max)
    path = clipped(tmp_path / "far.onnx", low=-0.99 * far, high=far)
    assert open_oracle(path).target.clips_to is None


def test_a_scaling_before_a_clip_does_not_say_where_images_are(tmp_path):
    path = clipped(tmp_path / "clip.onnx", ("Div", 255.0))
    assert open_oracle(path).target.suggested_domain is None
    found = revelu.extract(path, seed=1)
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert "[0, 255]" in found.evidence[0]


def test_images_that_a_file_clips_are_asked_inside(tmp_path):
    path = clipped(tmp_path / "clip.onnx")
    found = revelu.extract(path, seed=1)
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert found.domain == "uniform in [0, 1]^81"
    assert found.evidence[0].startswith(
        "the file clips its inputs to [0, 1]: asked and checked there"
    )
    assert isinstance(found.network, LayeredNetwork)
    assert found.ledger.n_recovery <= 15_000
    X = np.random.default_rng(2).random((1000, 81))
    assert np.abs(found.network(X) - pooled()(X)).max() < 1e-5


def test_a_place_that_was_said_is_asked_instead(tmp_path):
    path = clipped(tmp_path / "clip.onnx")
    for place in ({"box": (0.25, 0.75)}, {"domain": Domain.gaussian(0.5, 0.1)}):
        found = revelu.extract(path, budget=300, **place)
        assert "[0, 1]" not in found.domain
        assert not any("the file clips" in said for said in found.evidence)


def test_a_network_is_verified_where_its_target_clips(tmp_path):
    path = clipped(tmp_path / "clip.onnx")
    found = revelu.verify(pooled(), str(path))
    assert found.status is revelu.Status.RECOVERED, found.evidence
    assert any("clips its inputs to [0, 1]" in said for said in found.evidence)


def test_inputs_beyond_a_clip_are_refused_by_its_name(tmp_path):
    path = clipped(tmp_path / "clip.onnx")
    with pytest.raises(revelu.InputError, match="to which the file clips its inputs"):
        revelu.extract(str(path), inputs=np.full((2, 81), 2.0))
