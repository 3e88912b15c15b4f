"""Verify and compare: what agrees, what does not, and how the commands say so."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.formats import save_arrays
from revelu.network import from_log_ratios, to_log_ratios, zoo
from revelu.numerics.links import Link
from revelu.oracle import Oracle, softmax
from revelu.recovery import Status
from revelu.report.verdicts import verdict

TRUTH = zoo.random_network([5, 4, 2], seed=1)
DEEP = zoo.random_network([5, 4, 3, 2], seed=2)


def changed(network, i, j, factor):
    """The network with one weight of a layer changed."""
    weights = [W.copy() for W in network.weights]
    weights[i][0, j] *= factor
    return revelu.Network(weights, network.biases, network.skip)


def shuffled(network, seed):
    """The same function: neurons in another order and scale, the last layer's turned round."""
    rng = np.random.default_rng(seed)
    for i in range(network.n_hidden):
        W, b = network.weights[i], network.biases[i]
        order, s = rng.permutation(len(b)), rng.uniform(0.1, 10.0, len(b))
        M = np.eye(len(b))[:, order] / s
        network = network.with_layer(i, s[:, None] * W[order], s * b[order], M)
    return network.turn_round(rng.random(len(network.weights[-2])) < 0.5)


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(
        app, [str(a) for a in arguments]
    )


# --- verify


@pytest.mark.parametrize("truth", [TRUTH, DEEP])
def test_what_computes_the_same_is_certified_within_its_checks(truth):
    found = revelu.verify(shuffled(truth, 0), truth, seed=3, checks=200)
    assert found.status is Status.RECOVERED
    assert found.certificate.n_checks == 200
    phases = dict(found.ledger.by_phase)
    assert {name for name, n in phases.items() if n} == {"noise", "verify"}
    assert found.ledger.n_queries <= 64 + 200 + 20 + 4 * 8 + 2 * 8


@settings(max_examples=8)
@given(j=st.integers(0, 3), size=st.floats(1e-5, 1.0), up=st.booleans())
def test_one_wrong_weight_is_not_certified(j, size, up):
    wrong = changed(TRUTH, 1, j, 1.0 + size if up else 1.0 - size)
    found = revelu.verify(wrong, TRUTH, checks=100)
    assert found.status is Status.UNVERIFIED
    assert found.certificate.fraction_within < 1.0
    assert found.network == wrong


def test_a_missing_neuron_is_not_certified():
    (W, A), (b, c) = TRUTH.weights, TRUTH.biases
    fewer = revelu.Network([W[1:], A[:, 1:]], [b[1:], c])
    assert revelu.verify(fewer, TRUTH, checks=100).status is Status.UNVERIFIED


def test_a_classifier_is_verified_by_its_probabilities():
    def softmax(X):
        Z = np.exp(TRUTH(X) - TRUTH(X).max(axis=1, keepdims=True))
        return Z / Z.sum(axis=1, keepdims=True)

    (W, A), (b, c) = TRUTH.weights, TRUTH.biases
    shifted = revelu.Network([W, A + np.ones(4)], [b, c + 3.0])
    found = revelu.verify(shifted, softmax, checks=100)
    assert found.status is Status.RECOVERED
    assert "common shift" in found.warnings[0]
    assert found.network == shifted
    assert revelu.verify(changed(TRUTH, 1, 0, 1.1), softmax, checks=100).status is Status.UNVERIFIED


# --- labels alone

THREE = zoo.random_network([8, 6, 3], seed=1)


def names(X):
    return np.array(["cat", "dog", "owl"])[THREE(X).argmax(axis=1)]


@pytest.mark.parametrize(
    "target",
    [THREE, lambda X: THREE(X).argmax(axis=1), lambda X: 4 + 2 * THREE(X).argmax(axis=1)],
    ids=["answers", "places", "numbers"],
)
def test_labels_alone_are_verified(target):
    found = revelu.verify(THREE, target, labels=True, seed=3, checks=500)
    assert found.status is Status.RECOVERED
    assert "another label" in found.certificate.statement
    assert found.ledger.n_queries <= 2 * 128 + 2000 + 500 + 100 + 2
    wrong = changed(THREE, 1, 0, 1.2)
    assert revelu.verify(wrong, target, labels=True, checks=500).status is Status.UNVERIFIED


def test_labels_leave_a_positive_factor_open():
    (_, A), (b, c) = THREE.weights, THREE.biases
    twice = revelu.Network([THREE.weights[0], 2.0 * A], [b, 2.0 * c])
    assert revelu.verify(twice, THREE, labels=True, checks=300).status is Status.RECOVERED
    assert revelu.verify(twice, THREE, checks=300).status is Status.UNVERIFIED


def test_labels_of_a_domain_are_verified_there():
    domain = revelu.Domain.gaussian(3.0, 2.0)
    found = revelu.verify(THREE, THREE, labels=True, checks=300, domain=domain)
    assert found.status is Status.RECOVERED
    assert "inputs of N(3, 2²)" in found.certificate.statement
    assert found.network == THREE


def test_labels_beside_borders_may_be_the_rounding_of_float32():
    layers = [(W.astype(np.float32), b.astype(np.float32)) for W, b in _layers_of(THREE)]
    truth = revelu.Network(*map(list, zip(*layers, strict=True)))

    def label(X):
        (W, b), (A, c) = layers
        return (np.maximum(X.astype(np.float32) @ W.T + b, 0) @ A.T + c).argmax(axis=1)

    found = revelu.verify(truth, label, labels=True, seed=1, dim_in=8)
    assert found.status is Status.RECOVERED
    assert found.ledger.n_queries < 20_000
    wrong = changed(truth, 1, 0, 1.001)
    assert revelu.verify(wrong, label, labels=True, seed=1, dim_in=8).status is Status.UNVERIFIED


def _layers_of(network):
    return zip(network.weights, network.biases, strict=True)


def test_labels_that_no_output_stands_for_are_refused():
    with pytest.raises(revelu.InputError, match="3 labels were seen"):
        revelu.verify(zoo.random_network([8, 4, 2], seed=0), THREE, labels=True, checks=100)
    with pytest.raises(revelu.InputError, match="--classes"):
        revelu.verify(THREE, names, labels=True, checks=100)
    with pytest.raises(revelu.InputError, match="everywhere"):
        revelu.verify(THREE, THREE, labels=True, box=(0.0, 1.0))


def test_names_of_classes_are_told_in_the_order_of_outputs():
    def checked(classes):
        told = revelu.open_oracle(names, 8, classes=classes)
        return revelu.verify(THREE, told, labels=True, checks=300)

    found = checked(["cat", "dog", "owl"])
    assert found.status is Status.RECOVERED
    assert found.class_names == ("cat", "dog", "owl")
    assert checked(["dog", "cat", "owl"]).status is Status.UNVERIFIED
    with pytest.raises(revelu.TargetError, match="'owl', which is none of the classes cat, dog"):
        checked(["cat", "dog"])
    with pytest.raises(revelu.InputError, match=r"4 names .* stand for 3"):
        checked(["cat", "dog", "owl", "yak"])
    with pytest.raises(revelu.InputError, match="list of names"):
        checked("cat,dog,owl")


def test_names_of_classes_are_given_on_the_command_line(tmp_path, monkeypatch):
    module = f"named_{tmp_path.name}".replace("-", "_")
    lines = ["import numpy as np, revelu", "net = revelu.load('net.npz')", "def names(X):"]
    lines += ["    return np.array(['cat', 'dog', 'owl'])[net(X).argmax(axis=1)]", ""]
    (tmp_path / f"{module}.py").write_text("\n".join(lines), encoding="utf-8")
    THREE.save(tmp_path / "net.npz")
    monkeypatch.chdir(tmp_path)
    how = ("--labels", "--trust", "--checks", "300", "--classes", "cat,dog,owl")
    done = invoke("verify", "net.npz", f"{module}:names", *how)
    assert done.exit_code == 0
    assert "cat, dog, owl" in done.stdout


def softmax_of(network, digits):
    def answers(X):
        Z = np.exp(0.1 * network(X))
        return np.round(Z / Z.sum(axis=1, keepdims=True), digits)

    return answers


def test_equal_rounded_probabilities_say_no_label():
    asked = np.random.default_rng(0).standard_normal((100, 8))
    target = softmax_of(THREE, 2)
    found = revelu.verify(THREE, target, labels=True, dim_in=8, inputs=asked)
    assert found.status is Status.RECOVERED
    said = found.certificate
    assert "the largest answers are equal" in said.statement
    # Rows given say as little there.
    P = np.sort(target(asked), axis=1)
    assert said.fidelity.n_inputs == (P[:, -1] > P[:, -2]).sum() < len(asked)
    assert "with one largest answer" in said.fidelity.source
    assert 0 < 3000 - said.n_checks < 600
    wrong = changed(THREE, 1, 0, 1.2)
    assert revelu.verify(wrong, target, labels=True, dim_in=8).status is Status.UNVERIFIED
    # Where all answers are equal everywhere, nothing is said, and nothing is certified.
    nothing = softmax_of(THREE, 0)
    assert revelu.verify(THREE, nothing, labels=True, dim_in=8).status is not Status.RECOVERED


def test_labels_that_change_are_said_so():
    rng = np.random.default_rng(0)

    def restless(X):
        return np.where(rng.random(len(X)) < 0.05, 0, THREE(X).argmax(axis=1))

    found = revelu.verify(THREE, restless, labels=True, checks=100)
    assert found.status is Status.NOT_DETERMINISTIC


@pytest.mark.parametrize(
    ("network", "word"),
    [
        (zoo.random_network([6, 4, 2], seed=0), "inputs"),
        (zoo.random_network([5, 4, 3], seed=0), "3 outputs, the target 2"),
    ],
)
def test_other_inputs_or_outputs_are_refused(network, word):
    with pytest.raises(revelu.InputError, match=word):
        revelu.verify(network, TRUTH)


@pytest.mark.parametrize("decimals", [4, 6])
def test_logits_are_those_of_probabilities_that_are_rounded(decimals):
    """The tolerance is two units of the rounding of what is answered."""
    truth = zoo.random_network([5, 4, 3], seed=1)
    wrong = changed(truth, 1, 2, 1.0 + 100.0 * 10.0**-decimals)

    def target(X):
        return np.round(softmax(truth(X)), decimals)

    found = revelu.verify(truth, target, dim_in=5, checks=500)
    assert found.status is Status.RECOVERED
    assert f"2 units of the target's rounding to {decimals}" in found.certificate.statement
    assert found.certificate.tolerance == pytest.approx(2.0 * 10.0**-decimals)
    assert revelu.verify(wrong, target, dim_in=5, checks=500).status is Status.UNVERIFIED


def test_a_spent_budget_is_a_status():
    assert revelu.verify(TRUTH, TRUTH, budget=10).status is Status.BUDGET_EXHAUSTED
    assert revelu.verify(TRUTH, TRUTH, budget=80).status is Status.BUDGET_EXHAUSTED


def test_the_checks_are_not_those_of_the_extraction():
    asked = []

    def target(X):
        asked.append({row.tobytes() for row in np.asarray(X)})
        return TRUTH(X)

    network = revelu.extract(target, dim_in=5, seed=0, checks=100).network
    before = set.union(*asked)
    asked.clear()
    assert revelu.verify(network, target, seed=0, checks=100).status is Status.RECOVERED
    assert not before & set.union(*asked)


def test_log_ratios_and_back():
    X = np.random.default_rng(0).standard_normal((20, 5))
    Y = TRUTH(X)
    ratios = to_log_ratios(TRUTH)
    np.testing.assert_allclose(ratios(X), Y[:, :-1] - Y[:, -1:], atol=1e-12)
    np.testing.assert_allclose(from_log_ratios(ratios)(X)[:, :-1], ratios(X), atol=1e-12)
    assert not from_log_ratios(ratios)(X)[:, -1].any()
    with pytest.raises(revelu.InputError, match="two outputs"):
        to_log_ratios(zoo.random_network([2, 2, 1], seed=0))


# --- compare


@settings(max_examples=15)
@given(
    truth=st.sampled_from([TRUTH, DEEP, zoo.random_network([7, 3, 1], seed=5)]),
    seed=st.integers(0, 10**6),
    exponent=st.integers(-12, 12),
)
def test_symmetries_are_undone_at_any_scale(truth, seed, exponent):
    *weights, A = truth.weights
    *biases, c = truth.biases
    scaled = revelu.Network([*weights, A * 10.0**exponent], [*biases, c * 10.0**exponent])
    found = revelu.compare(shuffled(scaled, seed), scaled)
    assert found.agree
    assert found.max_relative_error < 1e-9
    # Small outputs must not hide that one of their weights is wrong.
    wrong = changed(scaled, len(truth.weights) - 1, 0, 1.01)
    assert not revelu.compare(wrong, scaled).agree


def test_differences_are_held_against_the_tolerance():
    strongest = int(np.abs(TRUTH.weights[1][0]).argmax())
    near = changed(TRUTH, 1, strongest, 1.0 + 1e-4)
    assert not revelu.compare(near, TRUTH).agree
    assert revelu.compare(near, TRUTH, tolerance=1e-3).agree
    with pytest.raises(revelu.InputError, match="tolerance"):
        revelu.compare(near, TRUTH, tolerance=0.0)


@pytest.mark.parametrize(
    ("widths", "word"),
    [((4, 4, 2), "5 against 4 inputs"), ((5, 4, 1), "outputs"), ((5, 4, 4, 2), "hidden layers")],
)
def test_other_shapes_differ(widths, word):
    found = revelu.compare(TRUTH, zoo.random_network(list(widths), seed=0))
    assert not found.agree
    assert found.alignment is None
    assert word in found.reason


def test_constants_agree_with_themselves_only():
    def constant(c):
        return revelu.Network([np.zeros((0, 2)), np.zeros((1, 0))], [[], [c]])

    assert revelu.compare(constant(2.0), constant(2.0)).agree
    assert revelu.compare(constant(0.0), constant(0.0)).agree
    assert not revelu.compare(constant(2.0), constant(2.1)).agree


# --- the commands


@pytest.fixture
def files(tmp_path):
    paths = {name: tmp_path / f"{name}.npz" for name in ("truth", "same", "wrong")}
    TRUTH.save(paths["truth"])
    shuffled(TRUTH, 1).save(paths["same"])
    changed(TRUTH, 1, 1, 1.5).save(paths["wrong"])
    return paths


@pytest.mark.parametrize(
    ("name", "code", "status"), [("same", 0, "recovered"), ("wrong", 1, "unverified")]
)
def test_verify_says_whether_they_agree(files, name, code, status):
    arguments = ("verify", files[name], files["truth"], "--checks", "80")
    done = invoke(*arguments)
    assert done.exit_code == code
    assert ("NOT verified" in done.stdout) == bool(code)
    done = invoke(*arguments, "--json")
    assert done.exit_code == code
    said = json.loads(done.stdout)
    assert (said["status"], said["certified"], said["method"]) == (status, not code, "verify")
    assert said["certificate"]["n_checks"] == 80
    assert said["recovered"] == str(files[name])


def test_verify_ends_with_the_codes_of_the_contract(files, tmp_path):
    assert invoke("verify", files["same"], files["truth"], "--budget", "9").exit_code == 3
    assert invoke("verify", tmp_path / "none.npz", files["truth"]).exit_code == 2
    assert invoke("verify", files["same"], "demo:digits").exit_code == 2


def test_compare_prints_what_it_used_and_the_worst_parameter(files):
    done = invoke("compare", files["same"], files["truth"])
    assert done.exit_code == 0
    assert all(
        word in done.stdout for word in ("they agree", "worst", "order 0", "scales 0", "signs")
    )
    done = invoke("compare", files["wrong"], files["truth"])
    assert done.exit_code == 1
    assert "weights[1][0, " in done.stdout
    said = json.loads(invoke("compare", files["same"], files["truth"], "--json").stdout)
    assert said["status"] == "agree"
    assert sorted(said["permutations"][0]) == [0, 1, 2, 3]
    assert set(said["signs"]) <= {-1, 1}
    assert len(said["scales"][0]) == 4
    # What was used, used by hand, makes one network of the other.
    mine, truth = (revelu.load(files[name]) for name in ("same", "truth"))
    order, scales, signs = (
        np.array(said[k][0] if k != "signs" else said[k])
        for k in ("permutations", "scales", "signs")
    )
    rows = (signs * scales)[:, None] * mine.weights[0][order]
    np.testing.assert_allclose(rows, truth.weights[0], atol=1e-12)
    equal = json.loads(invoke("compare", files["truth"], files["truth"], "--json").stdout)
    assert equal["scales"] == [[1.0] * 4]


def test_compare_names_the_neurons_without_a_partner(files, tmp_path):
    (W, A), (b, c) = TRUTH.weights, TRUTH.biases
    path = tmp_path / "fewer.npz"
    revelu.Network([W[1:], A[:, 1:]], [b[1:], c]).save(path)
    done = invoke("compare", path, files["truth"])
    assert done.exit_code == 1
    assert "B weights[0][0]" in done.stdout
    said = json.loads(invoke("compare", path, files["truth"], "--json").stdout)
    assert said["max_relative_error"] is None
    assert said["unmatched"] == ["truth: weights[0][0]"]


def test_nothing_of_a_verification_is_booked_as_recovery():
    truth = zoo.random_network([5, 4, 1], seed=1)

    def answers(X):
        return (1.0 / (1.0 + np.exp(-truth(X)))).astype(np.float32)

    # Elsewhere, it is asked in the end whether it is still the same; a link is looked for.
    for target in (truth, answers):
        found = revelu.verify(truth, Oracle(target, 5, is_remote=True))
        assert found.status is Status.RECOVERED
        assert found.ledger.by_phase["recover"] == 0


def test_files_with_different_heads_differ(tmp_path):
    network = zoo.random_network([3, 4, 1], seed=2)
    paths = {name: tmp_path / f"{name}.onnx" for name in ("logit", "atanh", "none")}
    W, b = list(network.weights), list(network.biases)
    for name, path in paths.items():
        save_arrays(path, W, b, None, "float64", Link.named(name))
    found = revelu.compare(paths["logit"], paths["atanh"])
    assert not found.agree
    assert found.reason == "Sigmoid against Tanh above the last layer"
    # A file without a head is what lies below one.
    assert revelu.compare(paths["logit"], paths["none"]).agree
    assert revelu.compare(paths["logit"], paths["logit"]).agree


def less_shift(network, seed):
    """Logits with the same softmax: an affine function of the last hidden layer is added to all."""
    rng = np.random.default_rng(seed)
    (*weights, A), (*biases, c) = network.weights, network.biases
    added = rng.normal(size=(1, A.shape[1])), rng.normal()
    return revelu.Network([*weights, A + added[0]], [*biases, c + added[1]])


def test_logits_below_a_softmax_are_compared_up_to_a_common_shift(tmp_path):
    network = zoo.random_network([3, 6, 4], seed=8)
    other = shuffled(less_shift(network, 1), 2)
    softmax = Link.named("softmax")
    paths = {n: tmp_path / f"{n}.onnx" for n in ("a", "b", "a_bare", "b_bare", "wrong")}
    for path, (found, link) in zip(
        paths.values(),
        [
            (network, softmax),
            (other, softmax),
            (network, Link.named("none")),
            (other, Link.named("none")),
            (changed(other, 1, 0, 1.01), softmax),
        ],
        strict=True,
    ):
        save_arrays(path, [*found.weights], [*found.biases], found.skip, "float64", link)
    found = revelu.compare(paths["a"], paths["b"])
    assert found.agree
    assert found.up_to_shift
    assert found.max_relative_error < 1e-9
    # A file that does not say is what lies below the head of the other.
    assert revelu.compare(paths["a"], paths["b_bare"]).agree
    assert not revelu.compare(paths["a"], paths["wrong"]).agree
    bare = revelu.compare(paths["a_bare"], paths["b_bare"])
    assert not bare.agree
    assert "they agree up to what is added to all outputs" in bare.reason
    assert "they agree up to" not in revelu.compare(paths["a_bare"], paths["wrong"]).reason
    said = invoke("compare", paths["a"], paths["b"])
    assert said.exit_code == 0
    assert "compared up to what is added to all of them" in said.stdout
    with_box = ("--box", "-1", "1")
    told = invoke("compare", paths["a_bare"], paths["b_bare"], *with_box)
    assert told.exit_code == 1
    assert "they agree up to what is added to all answers of a row" in " ".join(told.stdout.split())


# --- saturated targets

SHARP = zoo.random_network([4, 5, 3], seed=1)


def sharper(by, added=0.0):
    (W, A), (b, c) = SHARP.weights, SHARP.biases
    return revelu.Network([W, by * A], [b, by * (c + np.array([added, 0.0, 0.0]))])


def sharply(network, digits=None):
    def answers(X):
        P = softmax(network(X))
        return P if digits is None else np.round(P, digits)

    return answers


@pytest.mark.parametrize(("by", "digits"), [(3e4, None), (100.0, 4)])
def test_saturated_answers_do_not_speak_against_a_network(by, digits):
    found = revelu.verify(sharper(by), sharply(sharper(by), digits), dim_in=4)
    assert (found.status, found.saturated) == (Status.UNVERIFIED, True)
    assert found.certificate is None
    assert "of the answers are 0 and 1 alone" in found.evidence[0]
    assert "--like DATA" in found.evidence[0]
    said = verdict("verify", {**found.fields(), "status": "unverified"})
    assert said.words == "undecided: the target is saturated where it was asked"
    # Other classes do.
    other = revelu.verify(sharper(by, added=2.0), sharply(sharper(by), digits), dim_in=4)
    assert (other.status, other.saturated) == (Status.UNVERIFIED, False)
    assert other.evidence[0].startswith("fresh queries disagree")


def test_a_saturated_link_that_is_told_says_so():
    found = revelu.verify(sharper(3e4), sharply(sharper(3e4)), dim_in=4, link="softmax")
    assert (found.status, found.saturated) == (Status.UNVERIFIED, True)


def test_probabilities_under_the_smallest_normal_number_are_compared():
    found = revelu.verify(sharper(300.0), sharply(sharper(300.0)), dim_in=4)
    assert found.status is Status.RECOVERED


def test_labels_that_are_tied_at_most_inputs_verify_no_network():
    truth = zoo.random_network([5, 8, 3], seed=5)
    lowered = [truth.biases[0], truth.biases[1] - 3.0]

    def target(X):  # all three answers are 0 at most inputs
        return np.maximum(truth(X) - 3.0, 0.0)

    # The same, but where all are 0: there its label is another one.
    other = revelu.Network([*truth.weights, np.eye(3)], [*lowered, [0.0, 0.0, 1e-9]])
    X = np.random.default_rng(0).standard_normal((1000, 5))
    assert (target(X).argmax(axis=1) != other(X).argmax(axis=1)).mean() > 0.5
    said = revelu.verify(other, target, labels=True)
    assert said.status is Status.UNVERIFIED
    assert said.certificate is not None
    assert said.certificate.fraction_within == 1.0
    assert "no answer is the largest" in said.evidence[0]
