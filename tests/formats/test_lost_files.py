"""Files of Keras, TensorFlow Lite and others are read: what they answered, names, refusals."""

import io
import json
import zipfile
import zlib
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from hostile_files import opened_in_a_process
from lost_files import cell, hostile, mat, nnet, policy
from typer.testing import CliRunner

import revelu
from revelu import zoo
from revelu.adapters.open_models import open_read
from revelu.adapters.ports import Ports
from revelu.cli.app import app
from revelu.errors import FormatError, InputError

KEPT = Path(__file__).parents[1] / "lost"
NETWORK = zoo.random_network([4, 6, 5, 2], seed=0)
X = np.random.default_rng(16_140_000).normal(size=(20, 4))


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(
        app, [str(a) for a in arguments]
    )


def kept(name):
    """Inputs of a file, as rows channel by channel, and what its own runtime answered."""
    if name.endswith((".h5", ".keras")):
        pytest.importorskip("pyfive")
    path = KEPT / name
    held = np.load(path.with_suffix(".npz"))
    X = held["X"].astype(np.float64)
    X = X.transpose(0, 3, 1, 2) if X.ndim == 4 else X
    return path, X, held["Y"]


def written(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "name",
    [
        *("table.keras", "table.h5", "image.keras", "image.h5", "keras2.keras", "keras2.h5"),
        *("activations.keras", "activations.h5", "packed.h5"),
        *("classifier-float32.tflite", "classifier-float16.tflite"),
        *("filters-float32.tflite", "filters-float16.tflite"),
    ],
)
def test_a_file_answers_as_its_own_runtime(name):
    path, X, Y = kept(name)
    found = open_read(path)(X.reshape(len(X), -1))
    np.testing.assert_allclose(found, Y, atol=1e-6)


@pytest.mark.parametrize("name", ["classifier-int8.tflite", "filters-int8.tflite"])
def test_whole_numbers_are_read_by_their_scales(name):
    """The runtime rounds what layers give to 8 bits, too; the network does not, and says so."""
    path, X, Y = kept(name)
    target = open_read(path)
    np.testing.assert_allclose(target(X.reshape(len(X), -1)), Y, atol=0.02)
    assert any("rounds what its layers give to 8 bits" in note for note in target.notes)


def test_a_classifier_keeps_its_names(tmp_path):
    path, X, Y = kept("classifier-float32.tflite")
    assert invoke("extract", path, "-o", tmp_path / "new.onnx").exit_code == 0
    session = onnxruntime.InferenceSession(tmp_path / "new.onnx")
    (given,), (answer, *_) = session.get_inputs(), session.get_outputs()
    assert given.name.startswith("serving_default_")
    assert answer.name.startswith("StatefulPartitionedCall")
    (found,) = session.run([answer.name], {given.name: X.astype(np.float32)})
    np.testing.assert_allclose(found, Y, atol=1e-6)
    assert revelu.load(tmp_path / "new.onnx").architecture == (42, 20, 10, 3)


@pytest.mark.parametrize("name", ["image.h5", "filters-float32.tflite"])
def test_images_are_written_with_their_layers(tmp_path, name):
    path, X, Y = kept(name)
    done = invoke("extract", path, "-o", tmp_path / "new.onnx", "--head")
    assert done.exit_code == 0
    assert "channel by channel" in done.stdout
    session = onnxruntime.InferenceSession(tmp_path / "new.onnx")
    (given,) = session.get_inputs()
    assert given.shape[1:] == [2, 12, 10]
    found = session.run(None, {given.name: X.astype(np.float32)})[0]
    np.testing.assert_allclose(found, Y, atol=2e-6)
    assert revelu.load(tmp_path / "new.onnx").dim_in == 240


def test_a_policy_is_read(tmp_path):
    path = written(tmp_path / "ppo.zip", policy(NETWORK, actions=True))
    target = open_read(path)
    Z = np.exp(NETWORK(X))
    np.testing.assert_allclose(target(X), Z / Z.sum(axis=1, keepdims=True), atol=1e-12)
    assert target.model.classes == (0, 1)
    found = revelu.extract(written(tmp_path / "dqn.zip", policy(NETWORK, actions=False)))
    np.testing.assert_allclose(found.network(X), NETWORK(X), atol=1e-12)
    assert (found.method, found.ledger.n_queries) == ("read", 0)


@pytest.mark.parametrize("between", ["Tanh", None])
def test_a_policy_of_other_units_is_refused(tmp_path, between):
    """Where nothing is said, a policy has tanh."""
    path = written(tmp_path / "ppo.zip", policy(NETWORK, actions=True, between=between))
    with pytest.raises(FormatError, match="Tanh is between its layers"):
        revelu.load(path)


@pytest.mark.parametrize(
    ("before", "actions"),
    [("lstm_actor.weight_ih_l0", True), ("q_net.features_extractor.cnn.0.weight", False)],
)
def test_a_policy_that_remembers_or_sees_is_refused(tmp_path, before, actions):
    """Its layers read what others give, and not the observation."""
    path = tmp_path / "ppo.zip"
    with zipfile.ZipFile(written(tmp_path / "plain.zip", policy(NETWORK, actions=actions))) as old:
        state = torch.load(io.BytesIO(old.read("policy.pth")))
        tensors = io.BytesIO()
        torch.save({before: torch.zeros(4, 4), **state}, tensors)
        with zipfile.ZipFile(path, "w") as new:
            new.writestr("data", old.read("data"))
            new.writestr("policy.pth", tensors.getvalue())
    with pytest.raises(FormatError, match="no policy of linear layers"):
        revelu.load(path)


def test_another_archive_is_no_policy(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data", json.dumps({}))
    with pytest.raises(FormatError, match=r"no policy\.pth and data"):
        revelu.open_oracle(tmp_path / "a.zip")


def test_a_network_of_verifiers_is_read_in_units_of_its_inputs(tmp_path):
    path = written(tmp_path / "acas.nnet", nnet(NETWORK))
    inputs = X * 0.3 + 1.0
    scaled = (inputs - [1, 2, 3, 4]) / [2, 3, 4, 5]
    found = revelu.extract(path)
    np.testing.assert_allclose(found.network(inputs), 4.0 * NETWORK(scaled) + 0.5, atol=1e-12)
    assert "moves inputs outside of -5 to 5" in found.warnings[0]
    with pytest.raises(FormatError, match="cut short"):
        revelu.load(written(tmp_path / "b.nnet", nnet(NETWORK)[:-200].rpartition(b"\n")[0]))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", ["cells", "numbered", "columns"])
def test_matlabs_weights_are_read(tmp_path, packed, form):
    pairs = list(zip(NETWORK.weights, NETWORK.biases, strict=True))
    named = {
        "cells": {"W": cell([W for W, _ in pairs]), "b": cell([b[:, None] for _, b in pairs])},
        "numbered": {
            f"{n}{i + 1}": a for i, p in enumerate(pairs) for n, a in zip("Wb", p, strict=True)
        },
        "columns": {
            f"{n}_{i}": a.T
            for i, p in enumerate(pairs)
            for n, a in zip(("weights", "biases"), p, strict=True)
        },
    }[form]
    path = written(tmp_path / "m.mat", mat(NETWORK, packed=packed, named=named))
    with pytest.raises(FormatError, match="say --activation relu"):
        open_read(path)
    np.testing.assert_allclose(open_read(path, None, Ports(activation="relu"))(X), NETWORK(X))
    done = invoke("extract", path, "--activation", "relu", "-o", tmp_path / "new.npz")
    assert done.exit_code == 0, done.output
    assert revelu.load(tmp_path / "new.npz").architecture == (4, 6, 5, 2)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.tflite", b"", "no TensorFlow Lite model; to ask it .*get_signature_runner"),
        ("m.tflite", b"\x14\0\0\0TFL3" + bytes(60), "0 graphs, of which one is read"),
        ("m.nnet", b"// nothing\n", "not a readable .nnet file"),
        ("m.mat", b"MATLAB 7.3 MAT-file" + bytes(200), "save it with -v7"),
        ("m.zip", b"PK", "not a readable archive"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, words):
    path = written(tmp_path / name, content)
    with pytest.raises(InputError, match=words):
        revelu.open_oracle(path)
    done = invoke("extract", path)
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


@pytest.mark.slow
def test_hostile_files_in_a_process_of_their_own(tmp_path):
    """Each is refused in a line, nothing is run, and memory stays under a gibibyte."""
    pytest.importorskip("pyfive")
    names = []
    for name, content in hostile():
        (tmp_path / name).write_bytes(content)
        names.append(name)
    call = 'revelu.open_oracle(path, activation="relu" if path.suffix == ".mat" else None)'
    assert opened_in_a_process(tmp_path, call) == "True"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_damaged_keras_model_says_how_it_is_asked(tmp_path):
    pytest.importorskip("pyfive")
    path = written(tmp_path / "m.h5", b"")
    with pytest.raises(InputError, match=r"not a readable Keras model.*keras.models.load_model"):
        revelu.open_oracle(path)


def chunks_of(path):
    """Where the largest chunk of a file stands, its bytes, and those of all that it holds."""
    import pyfive

    found = []
    with pyfive.File(path) as file:
        waiting = [file]
        while waiting:
            part = waiting.pop()
            if hasattr(part, "keys"):
                waiting += [part[name] for name in part]
            elif part.chunks is not None:
                for i in range(part.id.get_num_chunks()):
                    info = part.id.get_chunk_info(i)
                    n = int(np.prod(part.chunks)) * part.dtype.itemsize
                    found.append((info.size, info.byte_offset, n))
    return max(found)


def test_a_chunk_unpacks_to_no_more_than_it_holds(tmp_path):
    """Zeros in the place of a chunk's numbers, ten times as many and more, packed as well."""
    pytest.importorskip("pyfive")
    size, offset, n = chunks_of(KEPT / "packed.h5")
    zeros = 100 * n
    while len(bomb := zlib.compress(bytes(zeros), 9)) > size:
        zeros //= 2
    assert zeros > 10 * n
    content = bytearray((KEPT / "packed.h5").read_bytes())
    content[offset : offset + len(bomb)] = bomb
    with pytest.raises(FormatError, match="unpacks to over"):
        open_read(written(tmp_path / "m.h5", bytes(content)))


def test_a_policy_says_that_normalisation_is_in_another_file(tmp_path):
    target = open_read(written(tmp_path / "p.zip", policy(NETWORK, actions=True)))
    assert any("VecNormalize" in note for note in target.notes)
