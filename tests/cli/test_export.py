"""A pair as one network and a question, and the sound bound beside a certificate."""

import json
import re
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.cli.networks import save_network
from revelu.errors import InputError
from revelu.network.sums import difference_network
from revelu.numerics.links import Link

F = revelu.zoo.random_network([4, 6, 3, 2], seed=1)
G = revelu.zoo.random_network([4, 5, 2], seed=2)
WITH_SKIP = revelu.Network(F.weights, F.biases, (np.ones((2, 6)), np.array([1.0, -2.0])))


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(
        app, [str(a) for a in arguments]
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    F.save("f.npz")
    G.save("g.onnx")


@pytest.mark.parametrize(
    ("first", "second"), [(F, G), (G, F), (F, WITH_SKIP), (WITH_SKIP, G), (G, G)]
)
def test_a_pair_is_one_network_whose_outputs_are_the_difference(first, second):
    pair = difference_network(first, second)
    assert pair.skip is None
    X = 3.0 * np.random.default_rng(0).standard_normal((200, 4))
    np.testing.assert_allclose(pair(X), first(X) - second(X), rtol=0, atol=1e-12)


def test_networks_of_other_inputs_make_no_pair():
    with pytest.raises(InputError, match="no pair"):
        difference_network(F, revelu.zoo.random_network([5, 3, 2], seed=0))


@pytest.mark.usefixtures("files")
def test_a_pair_is_written_as_checkers_take_it():
    question = ["--vnnlib", "pair.vnnlib", "--tolerance", "1e-9"]
    done = invoke("export", "f.npz", "g.onnx", "--box", "-1", "2.5", "-o", "pair.onnx", *question)
    assert done.exit_code == 0, done.output
    session = onnxruntime.InferenceSession("pair.onnx")
    X = np.random.default_rng(0).uniform(-1, 2.5, (50, 4))
    (answers,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(answers, F(X) - G(X), rtol=0, atol=1e-12)
    text = Path("pair.vnnlib").read_text(encoding="ascii")
    assert text.count("(") == text.count(")")
    assert re.findall(r"declare-const (\w+) Real", text) == [
        *("X_0", "X_1", "X_2", "X_3", "Y_0", "Y_1"),
    ]
    bounds = re.findall(r"\(assert \((<=|>=) (X_\d) (\S+)\)\)", text)
    assert {(op, float(x)) for op, _, x in bounds} == {(">=", -1.0), ("<=", 2.5)}
    asked = re.findall(r"\(and \((<=|>=) (Y_\d) (\S+)\)\)", text)
    assert [(op, float(x)) for op, _, x in asked] == 2 * [(">=", 1e-9), ("<=", -1e-9)]
    assert not re.search(r"\de[-+]?\d", text)  # a decimal has no exponent there


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--box", 0, 1], "there is nothing to write"),
        (["--box", 1, 0, "-o", "x.onnx"], "a box is two finite numbers"),
        (["--box", 0, 1, "-o", "g.onnx"], "is read; write to another file"),
        (["--box", 0, 1, "--vnnlib", "no/x.vnnlib"], "does not exist"),
        (["--box", 0, 1, "-o", "x.onnx", "--tolerance", 0], "positive number"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_line(options, said):
    done = invoke("export", "f.npz", "g.onnx", *options)
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.usefixtures("files")
def test_a_sound_bound_stands_beside_the_certificate():
    nearly = revelu.Network([W * (1 + 1e-11) for W in F.weights], F.biases)
    nearly.save("nearly.npz")
    done = invoke("verify", "nearly.npz", "f.npz", "--sound", "--box", "-1", "1", "--json")
    account = json.loads(done.stdout)
    assert account["status"] == "recovered"
    sound = account["sound"]
    X = np.random.default_rng(0).uniform(-1, 1, (1000, 4))
    largest = float(np.abs(F(X) - nearly(X)).max())
    assert largest < sound["largest"] < 1e-8
    assert 0.5 * largest < sound["largest_found"] <= sound["largest"]
    assert sound["matched"] == sound["neurons"] == 9
    done = invoke("verify", "nearly.npz", "f.npz", "--sound", "--box", "-1", "1")
    assert "sound bound" in done.stdout


@pytest.mark.usefixtures("files")
def test_logits_are_bounded_up_to_their_common_shift():
    shifted = revelu.Network(
        [*F.weights[:-1], F.weights[-1] - F.weights[-1][-1:]],
        [*F.biases[:-1], F.biases[-1] - F.biases[-1][-1]],
    )
    from revelu.certify.sound_bound import sound_bound

    assert sound_bound(F, shifted, (-1.0, 1.0)).largest > 0.1
    assert sound_bound(F, shifted, (-1.0, 1.0), link=Link.named("softmax")).largest < 1e-12


@pytest.mark.usefixtures("files")
def test_a_sound_bound_says_whether_it_is_of_logits_or_of_answers():
    save_network(F, Link.named("softmax"))(Path("classes.onnx"))
    nearly = revelu.Network([W * (1.0 + 1e-7) for W in F.weights], F.biases)
    nearly.save("nearly.npz")
    for target, of in (("classes.onnx", "logits less the last one"), ("f.npz", "answers")):
        done = invoke("verify", "nearly.npz", target, "--sound", "--box", "-1", "1", "--json")
        sound = json.loads(done.stdout)["sound"]
        assert sound["of"] == of
        shown = invoke("verify", "nearly.npz", target, "--sound", "--box", "-1", "1").stdout
        assert f"do {of} differ by" in shown
    assert sound["largest_answer"] == sound["largest"]
    unasked = invoke("verify", "f.npz", "f.npz", "--sound", "--box", "-1", "1", "--budget", "9")
    assert "outputs before any last step" in unasked.stdout


@pytest.mark.usefixtures("files")
def test_what_no_sound_bound_can_be_had_of_is_said_before_anything_is_asked():
    done = invoke("verify", "f.npz", "f.npz", "--sound")
    assert done.exit_code == 2
    assert "give --box LO HI" in done.output
    done = invoke("verify", "f.npz", "http://127.0.0.1:9", "--sound", "--box", "0", "1")
    assert done.exit_code == 2
    assert "needs the weights of TARGET" in done.output
