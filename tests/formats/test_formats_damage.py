"""Formats: damaged and hostile files are refused; a file appears whole or not at all."""

import io
import os
import threading
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import revelu
from conftest import PATIENCE_SECONDS
from revelu.errors import FormatError, InputError
from revelu.formats import check_writable, npz, save_arrays, suffixes
from revelu.network import Network, zoo

SUFFIXES = pytest.mark.parametrize("suffix", suffixes())
N_MUTANTS = 300

# Reading what declares terabytes takes no more than this.
FEW_BYTES = 50 * 2**20


def write_archive(path, **named):
    np.savez(path, **named)
    return path


def small(**changed):
    """The arrays of a 2-3-1 network, some replaced; None leaves one out."""
    named = {
        "weights_0": np.ones((3, 2)),
        "biases_0": np.ones(3),
        "weights_1": np.ones((1, 3)),
        "biases_1": np.ones(1),
        "schema": np.array(1),
        **changed,
    }
    return {name: array for name, array in named.items() if array is not None}


# --- damage


def mutants(content, seed):
    """Copies with one to eight bytes changed, or a stretch cut out, doubled or zeroed."""
    rng = np.random.default_rng(seed)
    for i in range(N_MUTANTS):
        data = bytearray(content)
        start, stop = sorted(int(j) for j in rng.integers(0, len(data), 2))
        if i % 6 == 3:
            del data[start:stop]
        elif i % 6 == 4:
            data[start:start] = data[start:stop]
        elif i % 6 == 5:
            data[start:stop] = bytes(stop - start)
        else:
            for j in rng.integers(0, len(data), rng.integers(1, 9)):
                data[j] = rng.integers(0, 256)
        yield bytes(data)


@SUFFIXES
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_damage_gives_input_errors_only(tmp_path, suffix, dtype):
    path = tmp_path / f"network{suffix}"
    zoo.random_network([3, 4, 2], 0).save(path, dtype)
    refused = 0
    for content in mutants(path.read_bytes(), seed=1):
        path.write_bytes(content)
        try:
            revelu.load(path)
        except InputError:
            refused += 1
    assert refused > N_MUTANTS // 3


@SUFFIXES
def test_truncated_files_are_refused(tmp_path, suffix):
    path = tmp_path / f"network{suffix}"
    zoo.random_network([3, 4, 2], 0).save(path)
    content = path.read_bytes()
    for n in range(0, len(content), 7):
        path.write_bytes(content[:n])
        with pytest.raises(FormatError):
            revelu.load(path)


@SUFFIXES
def test_missing_files_and_folders_are_refused(tmp_path, suffix):
    for name in ("missing", "m" * 300, "nul\0"):
        with pytest.raises(FormatError, match=r"no such file|cannot be read"):
            revelu.load(tmp_path / f"{name}{suffix}")
    (tmp_path / f"folder{suffix}").mkdir()
    with pytest.raises(FormatError, match="is a folder"):
        revelu.load(tmp_path / f"folder{suffix}")


@pytest.mark.parametrize("name", ["network.txt", "network", "network.npz.gz"])
def test_unknown_suffixes_name_the_known(tmp_path, name):
    (tmp_path / name).touch()
    for act in (revelu.load, zoo.random_network([2, 1], 0).save):
        with pytest.raises(FormatError, match=r"unknown suffix.*\.npz, \.onnx"):
            act(tmp_path / name)


# --- hostile archives


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"biases_1": None}, "biases_1"),
        ({"weights_0": None}, "weights_0"),
        ({"weights_x": np.ones(1)}, "weights_x"),
        ({"skip_V": np.ones((1, 2))}, "skip_c"),
        ({"answer": np.array(42)}, "answer"),
        ({"schema": np.array(2)}, "schema"),
        ({"schema": np.array(1.0)}, "schema"),
        ({"schema": np.array([1])}, "schema"),
        ({"weights_0": np.ones((3, 2), complex)}, "complex128"),
        ({"weights_0": np.full((3, 2), "1")}, "<U1"),
        ({"biases_0": np.full(3, None)}, "pickle|does not hold"),
    ],
)
def test_archives_of_something_else_are_refused(tmp_path, changed, word):
    path = write_archive(tmp_path / "network.npz", **small(**changed))
    with pytest.raises(FormatError, match=word):
        revelu.load(path)


@pytest.mark.parametrize(
    "changed", [{"weights_1": np.ones((1, 4))}, {"biases_0": np.array([0, 1, np.nan])}]
)
def test_arrays_that_are_no_network_are_refused(tmp_path, changed):
    path = write_archive(tmp_path / "network.npz", **small(**changed))
    with pytest.raises(FormatError, match=r"network\.npz: .*(weights\[1\]|biases\[0\])"):
        revelu.load(path)


def test_an_archive_without_schema_or_of_whole_numbers_is_read(tmp_path):
    path = write_archive(
        tmp_path / "network.npz", **small(schema=None, weights_0=np.ones((3, 2), int))
    )
    assert revelu.load(path).architecture == (2, 3, 1)


class Bomb:
    """Unpickling it leaves a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_nothing_is_unpickled(tmp_path):
    trace = tmp_path / "trace"
    bomb = np.empty(1, dtype=object)
    bomb[0] = Bomb(trace)
    path = write_archive(tmp_path / "network.npz", **small(biases_1=bomb))
    with pytest.raises(FormatError, match="biases_1"):
        revelu.load(path)
    assert not trace.exists()
    np.load(path, allow_pickle=True)["biases_1"]
    assert trace.exists()


def test_a_shape_over_no_data_is_refused_without_memory(tmp_path):
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (2**20, 2**20)}
    np.lib.format.write_array_header_1_0(header, shape)
    path = write_archive(tmp_path / "network.npz", **small(weights_0=None))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("weights_0.npy", header.getvalue())
    assert_refused_in_little_memory(path, "declares")


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path):
    path = tmp_path / "network.npz"
    np.savez_compressed(path, **small(weights_0=np.zeros((3, 1000))))
    with pytest.raises(FormatError, match="unpacks to"):
        npz.read_archive(path, max_bytes=1000)


def assert_refused_in_little_memory(path, word):
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=word):
            revelu.load(path)
        assert tracemalloc.get_traced_memory()[1] < FEW_BYTES
    finally:
        tracemalloc.stop()


# --- hostile graphs


def test_a_tensor_over_no_data_is_refused_without_memory(tmp_path):
    path = tmp_path / "network.onnx"
    zoo.random_network([3, 4, 2], 0).save(path)
    model = onnx.load(path)
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([2**20, 2**20])
    path.write_bytes(model.SerializeToString())
    assert_refused_in_little_memory(path, "network.onnx")


def test_a_product_much_larger_than_its_file_is_refused_without_memory(tmp_path):
    n = 2**15
    path = tmp_path / "network.onnx"
    values = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["N", n]) for name in ("x", "y")
    ]
    tensors = [
        numpy_helper.from_array(np.ones((n, 1)), "U"),
        numpy_helper.from_array(np.ones((1, n)), "V"),
    ]
    nodes = [helper.make_node("MatMul", *io) for io in ((["x", "U"], ["h"]), (["h", "V"], ["y"]))]
    graph = helper.make_graph(nodes, "narrow", values[:1], values[1:], tensors)
    path.write_bytes(helper.make_model(graph, ir_version=10).SerializeToString())
    assert_refused_in_little_memory(path, r"network\.onnx: two affine maps in a row")


def externalise(tensor, location):
    """Let a tensor say that its data lie in another file."""
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    tensor.external_data.add(key="location", value=str(location))
    tensor.ClearField("raw_data")


@pytest.fixture
def external(tmp_path):
    """Write a network whose first weights lie elsewhere; give a writer of its location."""
    folder = tmp_path / "inside"
    folder.mkdir()
    path = folder / "network.onnx"
    network = zoo.random_network([3, 4, 2], 0)
    network.save(path)
    (tmp_path / "outside.bin").write_bytes(network.weights[0].tobytes())
    (folder / "data.bin").write_bytes(network.weights[0].tobytes())

    def write(location, where="initializer"):
        model = onnx.load(path, load_external_data=False)
        tensor = model.graph.initializer[0]
        externalise(tensor, location)
        if where == "node":
            constant = helper.make_node("Constant", [], [tensor.name], value=tensor)
            model.graph.node.insert(0, constant)
            del model.graph.initializer[0]
        path.write_bytes(model.SerializeToString())
        return path, network

    return write


@pytest.mark.parametrize("where", ["initializer", "node"])
def test_external_data_in_the_folder_are_read(external, where):
    path, network = external("data.bin", where)
    assert revelu.load(path) == network


@pytest.mark.parametrize("where", ["initializer", "node"])
def test_external_data_outside_the_folder_are_refused(external, tmp_path, where):
    link = tmp_path / "inside" / "link.bin"
    link.symlink_to(tmp_path / "outside.bin")
    for location in ("../outside.bin", tmp_path / "outside.bin", "link.bin"):
        path, _ = external(location, where)
        for act in (revelu.load, revelu.open_oracle):
            with pytest.raises(FormatError, match="outside its folder"):
                act(path)


@pytest.mark.parametrize("location", ["none.bin", "", "nul\0", "m" * 300])
def test_external_data_that_are_not_there_are_refused(external, location):
    path, _ = external(location)
    with pytest.raises(FormatError, match=path.name):
        revelu.load(path)


def test_external_data_are_found_however_deep(external):
    path, _ = external("data.bin")
    inner = onnx.load(path, load_external_data=False).graph
    externalise(inner.initializer[0], "../outside.bin")
    model = onnx.load(path, load_external_data=False)
    del model.graph.initializer[0]
    model.graph.node.append(helper.make_node("If", ["c"], ["z"], then_branch=inner))
    path.write_bytes(model.SerializeToString())
    with pytest.raises(FormatError, match="outside its folder"):
        revelu.load(path)


# --- writing


@SUFFIXES
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_alone(tmp_path, monkeypatch, suffix, call):
    path = tmp_path / f"network{suffix}"
    zoo.random_network([3, 4, 2], 0).save(path)
    before = path.read_bytes()

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), refuse)
    with pytest.raises(FormatError, match="No space left"):
        zoo.random_network([3, 4, 2], 1).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@SUFFIXES
def test_writing_replaces_and_leaves_nothing_else(tmp_path, suffix):
    path = tmp_path / f"network{suffix}"
    for seed in range(2):
        zoo.random_network([3, 4, 2], seed).save(path)
    assert revelu.load(path) == zoo.random_network([3, 4, 2], 1)
    assert list(tmp_path.iterdir()) == [path]


@SUFFIXES
def test_threads_write_the_same_file_without_meeting(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"network{suffix}"
    networks = [zoo.random_network([3, 4, 2], seed) for seed in range(2)]
    # Neither moves its file into place before the other has written its own.
    both_written = threading.Barrier(2, timeout=PATIENCE_SECONDS)
    monkeypatch.setattr(os, "fsync", lambda _: both_written.wait())
    with ThreadPoolExecutor(2) as executor:
        list(executor.map(lambda network: network.save(path), networks))
    assert revelu.load(path) in networks
    assert list(tmp_path.iterdir()) == [path]


@SUFFIXES
def test_numbers_too_large_for_float32_are_refused(tmp_path, suffix):
    path = tmp_path / f"network{suffix}"
    network = Network([[[1e300]]], [[0.0]])
    with pytest.raises(FormatError, match="too large for float32"):
        network.save(path, np.float32)
    network.save(path)
    assert revelu.load(path) == network


@pytest.mark.parametrize("dtype", [np.float16, "float16", "foo", 7, "float32, float32"])
def test_only_two_dtypes_are_written(tmp_path, dtype):
    with pytest.raises(FormatError, match=r"n\.npz: cannot write .*; float64 or float32"):
        Network([[[1.0]]], [[0.0]]).save(tmp_path / "n.npz", dtype)
    assert not list(tmp_path.iterdir())


def test_a_graph_without_outputs_is_refused(tmp_path):
    with pytest.raises(FormatError, match="inputs and outputs"):
        save_arrays(tmp_path / "n.onnx", [np.zeros((0, 3))], [np.zeros(0)], None, np.float64)


@SUFFIXES
def test_what_cannot_be_written_is_known_before(tmp_path, suffix):
    (tmp_path / f"folder{suffix}").mkdir()
    for name, word in (
        (f"folder{suffix}", "is a folder"),
        (f"missing/network{suffix}", "does not exist"),
        ("network.txt", "unknown suffix"),
        ("network", "unknown suffix"),
        (f"{'n' * 300}{suffix}", "cannot be written"),
    ):
        with pytest.raises(FormatError, match=word):
            check_writable(tmp_path / name)
        with pytest.raises(FormatError, match=word):
            zoo.random_network([2, 1], 0).save(tmp_path / name)
    check_writable(tmp_path / f"network{suffix}")
    assert [entry.name for entry in tmp_path.iterdir()] == [f"folder{suffix}"]


@pytest.mark.parametrize("protected", ["folder", "file"])
def test_what_is_read_only_is_known_before(tmp_path, monkeypatch, protected):
    path = tmp_path / "network.npz"
    path.touch()
    refused = {"folder": tmp_path, "file": path}[protected]
    # Whoever runs the tests may write everything; so the answer is made up.
    monkeypatch.setattr(os, "access", lambda asked, _: asked != refused)
    with pytest.raises(FormatError, match="may not be written"):
        check_writable(path)
