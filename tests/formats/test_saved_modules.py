"""torch as it is saved: modules of images, dictionaries of outputs, state dicts, programs."""

import os
import subprocess
import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import revelu
from revelu import Network, Status
from revelu.errors import FormatError, InputError, TargetError, UntrustedError
from revelu.formats.state_chain import read_chain

ROW = (1, 3, 4)


def rows(d=12, n=30, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


class Heads(nn.Module):
    """Answers by name, as models of the hub do."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(12, 5), nn.Linear(5, 2)

    def forward(self, x):
        h = torch.relu(self.body(x.flatten(1)))
        return {"features": h, "logits": self.head(h), "label": self.head(h).argmax(dim=1)}


def made(kind, seed=0):
    torch.manual_seed(seed)
    return kind().double().eval()


def convolution():
    return nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(12, 2))


def answers(module, X, row=ROW):
    with torch.no_grad():
        return module(torch.tensor(X.reshape(len(X), *row))).numpy()


# --- modules


def test_images_are_asked_for_by_their_shape():
    module = made(convolution)
    with pytest.raises(InputError, match=r"first layer of Sequential is a Conv2d.*1xHEIGHTxWIDTH"):
        revelu.open_oracle(module)
    oracle = revelu.open_oracle(module, input_shape="1x3x4")
    assert oracle.dim_in == 12
    np.testing.assert_array_equal(oracle(rows()), answers(module, rows()))
    with pytest.raises(InputError, match="has 12 inputs, not 13"):
        revelu.open_oracle(module, 13, input_shape=ROW)


def test_a_convolution_is_recovered_as_the_dense_network_that_it_is():
    recovery = revelu.extract(
        revelu.open_oracle(made(convolution), input_shape=ROW, budget=2000), checks=300
    )
    assert recovery.status is Status.RECOVERED
    np.testing.assert_allclose(
        recovery.network(rows()), answers(made(convolution), rows()), atol=1e-8
    )


@pytest.mark.parametrize("name", [None, "logits", "features"])
def test_of_a_dictionary_logits_are_read(name):
    module = made(Heads)
    with torch.no_grad():
        truth = module(torch.tensor(rows()))[name or "logits"].numpy()
    np.testing.assert_array_equal(revelu.open_oracle(module, output_name=name)(rows()), truth)


def test_outputs_that_are_not_there_are_named():
    with pytest.raises(InputError, match="outputs features, logits, label, not the output_name x"):
        revelu.open_oracle(made(Heads), output_name="x")(rows())
    with pytest.raises(InputError, match="has one output"):
        revelu.open_oracle(nn.Linear(12, 2).double(), output_name="x")(rows())


class Pair(nn.Module):
    def forward(self, x):
        return x.sum(dim=1), x.mean(dim=1)


def test_outputs_without_names_have_numbers():
    with pytest.raises(InputError, match="outputs 0, 1: give output_name"):
        revelu.open_oracle(Pair(), 12)(rows())
    found = revelu.open_oracle(Pair(), 12, output_name="1")(rows())
    np.testing.assert_allclose(found[:, 0], rows().mean(axis=1))


# --- programs


def test_a_program_of_torchscript_is_opened_with_trust(tmp_path):
    module, path = made(convolution), tmp_path / "script.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather export
        torch.jit.save(torch.jit.trace(module, torch.zeros(2, *ROW).double()), path)
    with pytest.raises(UntrustedError, match=r"TorchScript program.*--trust"):
        revelu.open_oracle(path)
    with pytest.raises(InputError, match=r"first layer of Sequential is a Conv2d"):
        revelu.open_oracle(path, trust=True)
    oracle = revelu.open_oracle(path, trust=True, input_shape=ROW)
    np.testing.assert_allclose(oracle(rows()), answers(module, rows()), atol=1e-14)
    assert set(oracle.target.facts) == {"module", "ports"}


@pytest.mark.parametrize("rows_at_once", [None, 7])
def test_a_program_of_torch_export_is_opened_with_trust(tmp_path, rows_at_once):
    module, path = made(convolution), tmp_path / "program.pt2"
    example = (torch.zeros(rows_at_once or 2, *ROW).double(),)
    free = None if rows_at_once else ({0: torch.export.Dim("n")},)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module, example, dynamic_shapes=free), path)
    with pytest.raises(UntrustedError, match=r"torch\.export; --trust"):
        revelu.open_oracle(path)
    oracle = revelu.open_oracle(path, trust=True)  # it says the shape of its rows
    np.testing.assert_allclose(oracle(rows()), answers(module, rows()), atol=1e-14)
    with pytest.raises(InputError, match="1 x 3 x 4, not 3x2x2"):
        revelu.open_oracle(path, trust=True, input_shape="3x2x2")


# --- state dicts


def saved(path, state):
    """Write a state dict by torch, or as safetensors."""
    if path.suffix == ".safetensors":
        arrays = {name: value.numpy() for name, value in state.items()}
        path.write_bytes(safetensors.numpy.save(arrays))
    else:
        torch.save(state, path)
    return path


def dense(*, behind=False, dtype=torch.float64):
    """Layers with batch normalisation before or behind the ReLU, which has seen numbers."""
    torch.manual_seed(1)
    parts = [nn.BatchNorm1d(5), nn.ReLU()]
    module = nn.Sequential(nn.Linear(12, 5), *(parts[::-1] if behind else parts), nn.Linear(5, 2))
    module.to(dtype)(5.0 * torch.randn(200, 12, dtype=dtype) + 1.0)
    return module.eval()


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".safetensors"])
@pytest.mark.parametrize("behind", [False, True])
def test_a_state_dict_is_read_as_the_chain_that_it_makes(tmp_path, suffix, behind):
    module = dense(behind=behind)
    path = saved(tmp_path / f"m{suffix}", module.state_dict())
    with pytest.raises(FormatError, match=r"--activation relu; read as the chain 0 .12 to 5."):
        revelu.open_oracle(path)
    oracle = revelu.open_oracle(path, activation="relu")
    np.testing.assert_allclose(oracle(rows()), answers(module, rows(), (12,)), atol=1e-12)
    assert "batch norm of 5" in oracle.target.notes[0]
    with pytest.raises(InputError, match="unknown activation 'tanh'; known: relu"):
        revelu.open_oracle(path, activation="tanh")


def test_the_state_of_a_checkpoint_is_found_among_the_rest(tmp_path):
    module = dense()
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    module(torch.randn(4, 12).double()).sum().backward()
    optimiser.step()
    parts = {"epoch": 3, "best": 0.5, "names": ["a", None], "optimiser": optimiser.state_dict()}
    torch.save({**parts, "state_dict": module.state_dict()}, tmp_path / "c.pt")
    oracle = revelu.open_oracle(tmp_path / "c.pt", activation="relu")
    np.testing.assert_allclose(oracle(rows()), answers(module, rows(), (12,)), atol=1e-12)


def test_a_state_dict_of_half_precision_is_read(tmp_path):
    module = nn.Sequential(nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 2))
    torch.save(module.half().state_dict(), tmp_path / "h.pt")
    oracle = revelu.open_oracle(tmp_path / "h.pt", activation="relu")
    np.testing.assert_allclose(oracle(rows()), answers(module.double(), rows(), (12,)), atol=1e-12)


def named(**shapes):
    rng = np.random.default_rng(0)
    found = {}
    for name, shape in shapes.items():
        found[f"{name.replace('_', '.')}.weight"] = rng.standard_normal(shape)
        found[f"{name.replace('_', '.')}.bias"] = rng.standard_normal(shape[0])
    return found


NOT_CHAINS = {
    "a convolution": (named(conv=(8, 1, 3, 3), fc=(2, 8)), r"conv.weight \[8, 1, 3, 3\].*nothing"),
    "a convolution behind": (named(fc=(4, 3), conv=(8, 1, 3, 3)), r"before it: fc \(3 to 4\)"),
    "shapes that do not fit": (named(a=(4, 3), b=(2, 5)), "make none: a .3 to 4., b .5 to 2."),
    "two branches": (named(a=(4, 3), b=(4, 3), out=(2, 4)), "shapes make none"),
    "layers at once, and not": (
        named(net_0=(4, 3), net_1=(4, 4), net_3=(2, 4)),
        "follow each other",
    ),
    "a layer norm": (
        {**named(fc=(4, 3)), "ln.weight": np.ones(4), "ln.bias": np.ones(4)},
        "ln.weight",
    ),
    "an embedding of words alone": ({"names": np.ones(3)}, "none"),
    "nothing": ({}, "it has none"),
}


@pytest.mark.parametrize("kind", NOT_CHAINS)
def test_what_is_no_chain_is_shown_as_far_as_it_was_read(tmp_path, kind):
    state, words = NOT_CHAINS[kind]
    path = saved(tmp_path / "m.pt", {name: torch.tensor(a) for name, a in state.items()})
    with pytest.raises(FormatError, match=words) as caught:
        revelu.open_oracle(path, activation="relu")
    assert "\n" not in str(caught.value)
    with pytest.raises(FormatError):
        revelu.open_oracle(path)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_state_dict_of_what_is_no_number_is_named_with_its_tensor(tmp_path, wrong):
    state = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1)).state_dict()
    state["2.weight"][0, 1] = wrong
    torch.save(state, tmp_path / "state.pt")
    with pytest.raises(FormatError, match=rf"state.pt: 2.weight holds {wrong}"):
        revelu.open_oracle(tmp_path / "state.pt", activation="relu")


def test_an_order_that_no_name_says_is_not_guessed(tmp_path):
    # Sorted by name, as safetensors does, square layers fit in any order.
    state = named(last=(4, 4), begin=(4, 4), middle=(4, 4))
    with pytest.raises(FormatError, match="several orders"):
        read_chain(tmp_path, dict(sorted(state.items())), in_order=False)
    unequal = named(last=(2, 5), begin=(4, 3), middle=(5, 4))
    chain = read_chain(tmp_path, dict(sorted(unequal.items())), in_order=False)
    assert [W.shape for W in chain.arrays.weights] == [(4, 3), (5, 4), (2, 5)]


@settings(max_examples=60)
@given(
    widths=st.lists(st.integers(1, 6), min_size=3, max_size=13),
    stem=st.sampled_from(["fc", "layers.", "net.body."]),
    step=st.integers(1, 3),
)
def test_numbered_layers_come_in_the_order_of_their_numbers(tmp_path_factory, widths, stem, step):
    rng = np.random.default_rng(0)
    pairs = list(zip(widths[1:], widths[:-1], strict=True))
    weights = [rng.standard_normal(shape) for shape in pairs]
    state = {f"{stem}{step * i}.weight": W for i, W in enumerate(weights)}
    chain = read_chain(tmp_path_factory.getbasetemp(), dict(sorted(state.items())), in_order=False)
    for read, W in zip(chain.arrays.weights, weights, strict=True):
        np.testing.assert_array_equal(read, W)


def test_lists_of_layers_and_of_normalisations_are_told_apart_by_number_or_refused(tmp_path):
    class Lists(nn.Module):
        def __init__(self, *widths):
            super().__init__()
            pairs = pairwise(widths)
            self.layers = nn.ModuleList(nn.Linear(d, k) for d, k in pairs)
            self.norms = nn.ModuleList(nn.BatchNorm1d(k) for k in widths[1:-1])

        def forward(self, x):
            for layer, norm in zip(self.layers, self.norms, strict=False):
                x = torch.relu(norm(layer(x)))
            return self.layers[-1](x)

    module = Lists(12, 5, 4, 2).double()
    module(3.0 * torch.randn(99, 12).double())
    torch.save(module.eval().state_dict(), tmp_path / "m.pt")
    oracle = revelu.open_oracle(tmp_path / "m.pt", activation="relu")
    np.testing.assert_allclose(oracle(rows()), answers(module, rows(), (12,)), atol=1e-12)
    # As they stand, the one normalisation fits the last layer as well.
    torch.save(Lists(4, 3, 3).state_dict(), tmp_path / "m.pt")
    with pytest.raises(FormatError, match="allow several orders"):
        revelu.open_oracle(tmp_path / "m.pt", activation="relu")


def test_a_chain_is_recovered_from_its_state_dict(tmp_path):
    module = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    torch.save(module.state_dict(), tmp_path / "m.pt")
    oracle = revelu.open_oracle(tmp_path / "m.pt", activation="relu", budget=600)
    recovery = revelu.extract(oracle, checks=200)
    layers = [module[0], module[2]]
    truth = Network(*([getattr(m, k).detach().numpy() for m in layers] for k in ("weight", "bias")))
    assert recovery.status is Status.RECOVERED
    assert revelu.align(recovery.network, truth).max_parameter_error < 1e-7


def test_journals_tell_state_dicts_apart(tmp_path):
    for seed in (0, 1):
        torch.manual_seed(seed)
        module = nn.Sequential(nn.Linear(12, 3), nn.ReLU(), nn.Linear(3, 1))
        torch.save(module.state_dict(), tmp_path / "m.pt")
        options = {"activation": "relu", "journal": tmp_path / "j.db"}
        if seed:
            with pytest.raises(InputError):
                revelu.open_oracle(tmp_path / "m.pt", **options)
        else:
            with revelu.open_oracle(tmp_path / "m.pt", **options) as oracle:
                oracle(rows())


def test_rows_that_a_module_does_not_take_are_named_by_their_shape():
    with pytest.raises(InputError, match=r"Sequential takes no rows of shape 3x2x2 .*by image"):
        revelu.open_oracle(made(convolution), input_shape="3x2x2")(rows())
    with pytest.raises(InputError, match=r"ModuleDict takes no rows of shape 12"):
        revelu.open_oracle(nn.ModuleDict({"a": nn.Linear(12, 1)}))(rows())


class Picky(nn.Module):
    def forward(self, x):
        if (x > 1.0).any():
            raise RuntimeError("a number is larger than 1")
        return x.sum(dim=1)


def test_a_module_that_fails_on_some_numbers_is_a_failing_target():
    with pytest.raises(TargetError, match="larger than 1"):
        revelu.open_oracle(Picky(), 12)(rows() + 10.0)


class Nested(nn.Module):
    def forward(self, x):
        return {"inner": {"logits": x}, "steps": 3}


def test_an_answer_without_a_tensor_is_named():
    with pytest.raises(InputError, match=r"answers inner \(dict\), steps \(int\), none of which"):
        revelu.open_oracle(Nested(), 12)(rows())


# --- what tells modules apart


class Scaled(nn.Module):
    def __init__(self, scale=1.0, names=("a", "b")):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.scale, self.names = nn.Linear(12, 1), scale, set(names)

    def forward(self, x):
        return torch.relu(self.body(x)) * self.scale


class Shifted(Scaled):
    def forward(self, x):
        return super().forward(x) + 1.0


Shifted.__name__ = Shifted.__qualname__ = "Scaled"


def hooked():
    module = Scaled()
    module.register_forward_hook(lambda _module, _inputs, answer: -answer)
    return module


def scripted(scale):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather export
        return torch.jit.script(OfScript(scale))


class OfScript(nn.Module):
    def __init__(self, scale):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.scale = nn.Linear(12, 1), scale

    def forward(self, x):
        return self.body(x) * self.scale


@pytest.mark.parametrize(
    ("one", "others"),
    [
        (Scaled, [lambda: Scaled(2.0), lambda: Scaled(names="ac"), Shifted, hooked]),
        (lambda: scripted(1.0), [lambda: scripted(2.0)]),
    ],
)
def test_a_journal_tells_modules_apart_by_code_and_attributes(tmp_path, one, others):
    journal = tmp_path / "j.db"
    with revelu.open_oracle(one(), 12, journal=journal) as oracle:
        oracle(rows())
    for other in others:
        with pytest.raises(InputError, match="whose module was"):
            revelu.open_oracle(other(), 12, journal=journal)
    with revelu.open_oracle(one(), 12, journal=journal) as again:
        again(rows())
        assert again.journal.n_waiting == 0


def test_a_module_is_the_same_in_every_process(tmp_path):
    text = "import torch\nclass M(torch.nn.Linear):\n    words = frozenset({'a', 'b', 'c'})\n"
    text += "    def forward(self, x):\n        return x if x in {'a', 'b', 'c'} else x + 1\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    told = "import torch, mine; from revelu.adapters.module_code import digest_of; "
    told += "torch.manual_seed(0); print(digest_of(mine.M(3, 1)))"
    python_path = os.pathsep.join([f"{tmp_path}", *sys.path])
    found = set()
    for seed in ("1", "2"):
        own = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": python_path}
        run = subprocess.run(
            [sys.executable, "-c", told], env=own, capture_output=True, text=True, check=True
        )
        found.add(run.stdout)
    assert len(found) == 1


def test_a_file_of_several_modules_names_them(tmp_path):
    torch.save({"actor": nn.Linear(3, 2), "critic": nn.Linear(3, 1), "step": 3}, tmp_path / "m.pt")
    with pytest.raises(FormatError, match=r"'actor' \(Linear\), 'critic' \(Linear\): save the one"):
        revelu.open_oracle(tmp_path / "m.pt", trust=True)
