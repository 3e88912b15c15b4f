"""``module:attribute`` targets: imported with trust only, and anew in other processes."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from revelu.adapters import open_oracle
from revelu.errors import InputError, TargetError, UntrustedError

X = np.random.default_rng(1).normal(size=(7, 3))


@pytest.fixture
def in_module(tmp_path, monkeypatch):
    """Write a module to the working folder; give its name."""
    monkeypatch.chdir(tmp_path)
    name = f"module_of_{tmp_path.name}".replace("-", "_").replace("[", "").replace("]", "")

    def write(text):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    yield write
    sys.modules.pop(name, None)


ANSWERS = """
import pathlib
pathlib.Path("imported").touch()

class Model:
    dim_in = 3
    def __call__(self, X):
        return X.sum(axis=1)

class holder:
    model = Model()

class Predictor:
    def predict(self, X):
        return X.sum(axis=1)

nested = lambda X: X.sum(axis=1)
predictor = Predictor()
number = 7
"""


def test_a_module_is_imported_with_trust_only(in_module, tmp_path):
    name = in_module(ANSWERS)
    with pytest.raises(UntrustedError, match="--trust"):
        open_oracle(f"{name}:holder.model")
    assert not (tmp_path / "imported").exists()
    before = list(sys.path)
    oracle = open_oracle(f"{name}:holder.model", trust=True)
    np.testing.assert_array_equal(oracle(X)[:, 0], X.sum(axis=1))
    assert oracle.dim_in == 3
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "attribute", "word"),
    [
        (ANSWERS, "missing", "missing"),
        (ANSWERS, "holder.missing", "missing"),
        (ANSWERS, "number", r"not callable \(int\)$"),
        (
            ANSWERS,
            "predictor",
            r":predictor is not callable \(Predictor\); write .*:predictor\.predict",
        ),
        ("raise RuntimeError('out of order')", "f", "RuntimeError: out of order"),
        ("raise SystemExit(0)", "f", "SystemExit"),
        ("def (", "f", "SyntaxError"),
        ("import sys; sys.path.pop(0); 1 / 0", "f", "ZeroDivisionError"),
    ],
)
def test_a_module_that_does_not_give_it_is_named(in_module, text, attribute, word):
    before = list(sys.path)
    with pytest.raises(InputError, match=word):
        open_oracle(f"{in_module(text)}:{attribute}", 3, trust=True)
    assert sys.path == before


@pytest.mark.parametrize("attribute", ["holder.model", "nested", "predictor.predict"])
def test_a_module_is_imported_anew_in_spawned_processes(
    in_module, tmp_path, monkeypatch, attribute
):
    name = f"{in_module(ANSWERS)}:{attribute}"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        oracle = open_oracle(name, 3, trust=True, executor=executor)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        np.testing.assert_array_equal(oracle(X)[:, 0], X.sum(axis=1))


def test_a_module_that_does_not_exist_is_named(in_module):
    del in_module
    with pytest.raises(InputError, match="no_such_module_here"):
        open_oracle("no_such_module_here:f", 3, trust=True)


FRAMEWORKS = """
import torch
from sklearn.linear_model import LinearRegression

torch.manual_seed(3)
module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
unflattened = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 3, 4)), torch.nn.Conv2d(1, 2, 2))
images = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.ReLU(), torch.nn.Flatten())
fitted = LinearRegression().fit([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [1.0, 2.0])
double = torch.nn.Sequential(torch.nn.Linear(3, 2)).double()
exported = lambda pixels: images(torch.tensor(pixels, dtype=torch.float32)).detach().numpy()
of_tensors = lambda pixels: images(pixels)
of_flat_tensors = lambda pixels: pixels.unsqueeze(1)
"""


@pytest.mark.parametrize("attribute", ["module", "fitted"])
def test_an_object_of_a_framework_is_asked_as_it_would_be_if_given(in_module, attribute):
    oracle = open_oracle(f"{in_module(FRAMEWORKS)}:{attribute}", trust=True)
    found = oracle.target.found
    assert oracle.dim_in == 3
    np.testing.assert_allclose(oracle(X), np.reshape(found(X), (7, -1)))


def test_an_image_tells_the_inputs_of_a_module_that_begins_with_a_convolution(in_module):
    name = f"{in_module(FRAMEWORKS)}:images"
    with pytest.raises(InputError, match="Conv2d: give its rows a shape by image HEIGHTxWIDTHx1"):
        open_oracle(name, trust=True)
    by_image = open_oracle(name, trust=True, image="3x4x1")
    assert by_image.dim_in == 12
    by_shape = open_oracle(name, trust=True, input_shape="1x3x4")
    rows = np.random.default_rng(2).normal(size=(5, 12))
    np.testing.assert_array_equal(by_image(rows), by_shape(rows))


def test_a_module_that_gives_rows_a_shape_itself_is_asked_for_rows(in_module):
    name = f"{in_module(FRAMEWORKS)}:unflattened"
    oracle = open_oracle(name, trust=True)
    assert oracle.dim_in == 12
    assert oracle.image == (1, 3, 4)
    assert oracle(np.zeros((2, 12))).shape == (2, 12)
    with pytest.raises(InputError, match="Unflatten to 1x3x4"):
        open_oracle(name, trust=True, dim_in=25)


def test_an_image_tells_the_inputs_of_a_callable():
    assert open_oracle(lambda rows: rows.sum(axis=1), image="3x4x2").dim_in == 24
    with pytest.raises(InputError, match=r"image must be height x width x channels.*6\.5"):
        open_oracle(lambda rows: rows.sum(axis=1), image=(6.5, 6))


@pytest.mark.parametrize("said", [{"input_shape": "1x3x4"}, {"image": "3x4x1"}])
@pytest.mark.parametrize("kind", ["images", "images.forward"])
def test_an_image_and_a_number_of_inputs_that_contradict_each_other_are_both_said(
    in_module, kind, said
):
    name = f"{in_module(FRAMEWORKS)}:{kind}"
    assert open_oracle(name, 12, trust=True, **said).dim_in == 12
    with pytest.raises(InputError, match=r"(3x4x1|1x3x4).*\b1[12]\b.*\b1[12]\b"):
        open_oracle(name, 11, trust=True, **said)


def test_a_callable_is_given_rows_of_the_shape_that_is_said(in_module):
    name = in_module(FRAMEWORKS)
    oracle = open_oracle(f"{name}:exported", trust=True, input_shape="1x3x4")
    assert (oracle.dim_in, oracle.image) == (12, (1, 3, 4))
    rows = np.random.default_rng(2).normal(size=(5, 12))
    of_module = open_oracle(f"{name}:images", trust=True, input_shape="1x3x4")
    np.testing.assert_array_equal(oracle(rows), of_module(rows))
    with pytest.raises(InputError, match="input_shape 1x3x4 has 12 inputs, not 11"):
        open_oracle(f"{name}:exported", 11, trust=True, input_shape="1x3x4")


def test_the_forward_of_a_module_is_the_module(in_module):
    name = in_module(FRAMEWORKS)
    oracle = open_oracle(f"{name}:module.forward", trust=True)
    np.testing.assert_array_equal(oracle(X), open_oracle(f"{name}:module", trust=True)(X))


@pytest.mark.parametrize("attribute", ["of_tensors", "of_flat_tensors"])
def test_a_function_of_tensors_is_told_that_rows_are_arrays(in_module, attribute):
    oracle = open_oracle(f"{in_module(FRAMEWORKS)}:{attribute}", 12, trust=True)
    with pytest.raises(TargetError, match="rows are a NumPy array: name a torch module itself"):
        oracle(np.zeros((1, 12)))


def test_a_class_is_no_target(in_module):
    with pytest.raises(InputError, match="Model is a class: name an object"):
        open_oracle(f"{in_module(ANSWERS)}:Model", 3, trust=True)


def test_a_module_of_few_digits_says_what_has_more(in_module):
    name = in_module(FRAMEWORKS)
    said = open_oracle(f"{name}:module", trust=True).target.in_float64
    assert "computes in float32" in said
    assert ".double()" in said
    assert not open_oracle(f"{name}:double", trust=True).target.in_float64


def test_a_framework_s_module_is_imported_anew_in_spawned_processes(in_module):
    name = f"{in_module(FRAMEWORKS)}:module"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        there = open_oracle(name, trust=True, executor=executor)(X)
    np.testing.assert_array_equal(there, open_oracle(name, trust=True)(X))


def test_a_module_whose_tensors_were_computed_is_asked_as_it_is(in_module):
    text = FRAMEWORKS + "module.extra = module[0].weight * 2.0\n"
    oracle = open_oracle(f"{in_module(text)}:module", trust=True)
    assert oracle(X).shape == (7, 1)


def test_an_object_that_fails_while_it_is_wrapped_is_named(in_module):
    text = "class Odd:\n    def __call__(self, X): return X.sum(axis=1)\n"
    text += "    @property\n    def dim_in(self): raise AttributeError('gone')\n\nodd = Odd()\n"
    with pytest.raises(InputError, match="how many inputs"):
        open_oracle(f"{in_module(text)}:odd", trust=True)
