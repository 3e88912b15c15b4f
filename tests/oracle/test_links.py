"""Links: what undoes a head, how errors go through it, and that it is found by evidence alone."""

import contextlib
import json
import re

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf
from typer.testing import CliRunner

import revelu
from revelu.adapters.onnx_runtime import OnnxTarget
from revelu.certify import certify, examine
from revelu.cli.app import app
from revelu.errors import InputError, SaturatedError, TargetError
from revelu.network import zoo
from revelu.numerics.links import FORMS, NONE, Link
from revelu.oracle import Headed, Oracle, Rounded, degrade, measure_noise
from revelu.oracle.log_ratios import SMALLEST_DIFFERENCE, smallest_with_digits
from revelu.recovery import Status
from revelu.tasks.audit.defences import defences
from revelu.tasks.audit.reference import Reference

ALL = [Link.named(name) for name in FORMS] + [Link.named("logit*100"), Link.named("softmax*100")]
HEADS = [link for link in ALL if link.has_head]


def single(network):
    """The network in float32, its products by NumPy."""
    layers = [
        (W.T.astype(np.float32), b.astype(np.float32))
        for W, b in zip(network.weights, network.biases, strict=True)
    ]

    def answer(X):
        H = X.astype(np.float32)
        for i, (W, b) in enumerate(layers):
            H = (np.maximum(H, np.float32(0.0)) if i else H) @ W + b
        return H

    return answer


def behind(link, network):
    """A target: the head on a network, of a contrast on as many outputs as it has."""

    def answer(X):
        Z = network(X)
        with np.errstate(over="ignore"):
            return link.answers(Z).astype(Z.dtype)

    return answer


@given(st.sampled_from(ALL), st.integers(0, 2**32 - 1))
def test_links_undo_their_heads(link, seed):
    Z = np.random.default_rng(seed).uniform(-3.0, 3.0, (20, 3))
    Y = link.head(Z)
    assert link.holds(Y).all()
    np.testing.assert_allclose(link.inverse(Y), Z, rtol=0, atol=1e-11)


@given(st.sampled_from(HEADS), st.integers(0, 2**32 - 1))
def test_errors_go_through_links_as_differences_do(link, seed):
    rng = np.random.default_rng(seed)
    Y = link.head(rng.uniform(-2.0, 2.0, (2000, 3)))
    off = 1e-7 * rng.standard_normal(Y.shape)
    change = link.inverse(Y + off) - link.inverse(Y)
    ratio = change / link.errors(Y, np.full(Y.shape, 1e-7))
    # A root mean square of 2,000 normal ratios or more is 1 to 0.016; five of those.
    np.testing.assert_allclose(np.sqrt((ratio**2).mean(axis=0)), 1.0, atol=0.08)


def test_a_saturated_row_is_infinite_and_so_is_its_error():
    link = Link.named("logit").within(1e-4, 1.0 - 1e-4)
    Y = np.array([[0.5, 0.2], [1.0, 0.5], [0.5, 1e-9]])
    assert np.isfinite(link.inverse(Y)).all(axis=1).tolist() == [True, False, False]
    assert np.isfinite(link.errors(Y, np.full(Y.shape, 1e-9))).all(axis=1).tolist() == [
        True,
        False,
        False,
    ]


def test_a_logistic_of_a_half_and_a_rest_has_the_digits_of_a_difference():
    x = np.random.default_rng(0).uniform(-6.0, 6.0, (56, 1))
    rest = (1.0 / (1.0 + np.exp(-x)) - 0.5).astype(np.float32)
    p = np.float32(0.5) + rest
    of_a_half = np.hstack([np.float32(1.0) - p, p]).astype(float)
    assert (smallest_with_digits(of_a_half, np.finfo(np.float32)) == SMALLEST_DIFFERENCE).all()
    own = (1.0 / (1.0 + np.exp(-x))).astype(np.float32)
    of_own = np.hstack([np.float32(1.0) - own, own]).astype(float)
    smallest = smallest_with_digits(of_own, np.finfo(np.float32))
    assert smallest[0] == SMALLEST_DIFFERENCE
    assert smallest[1] < 1e-8


@pytest.mark.parametrize("text", ["probit", "logit*-1", "logit*x", "none*2", "logit*inf", ""])
def test_unknown_links_are_refused(text):
    with pytest.raises(InputError, match="link"):
        Link.named(text)


@pytest.mark.parametrize("link", ALL, ids=str)
@pytest.mark.parametrize("widths", [[10, 16, 3], [8, 10, 6, 3]])
def test_links_are_found_in_float64_without_a_query(link, widths):
    found = []
    for seed in range(4):
        oracle = Oracle(behind(link, zoo.random_network(widths, seed=seed)), widths[0])
        measure_noise(oracle, seed)
        assert oracle.n_queries == 64
        found.append(str(oracle.link))
    assert found == [str(link)] * 4


@pytest.mark.parametrize("link", ALL, ids=str)
def test_links_are_found_in_float32(link):
    n_right = 0
    for seed in range(6):
        target = behind(link, single(zoo.random_network([10, 12, 3], seed=seed)))
        oracle = Oracle(target, 10)
        measure_noise(oracle, seed)
        n_right += str(oracle.link) == str(link)
        assert oracle.ledger().n_recovery <= 120
    assert n_right >= 5


@pytest.mark.parametrize("offset", [300.0, 1000.0])
def test_float32_answers_far_from_0_are_behind_no_logarithm(offset):
    """The logarithm of large answers is small, so it may err by more of them: that hides kinks."""
    for seed in range(100, 112):
        network = single(zoo.random_network([6, 10, 2], seed=seed))
        oracle = Oracle(lambda X, f=network: f(X) + np.float32(offset), 6)
        measure_noise(oracle, seed)
        assert oracle.link == NONE


@pytest.mark.parametrize(
    "head",
    [
        lambda z: np.logaddexp(0.0, z),
        lambda z: z * (1.0 + erf(z)),
        erf,
        lambda z: z**3,
        np.sin,
    ],
    ids=["softplus", "gelu", "erf", "cube", "sin"],
)
def test_other_heads_are_taken_for_none_of_these(head):
    for seed in range(5):
        network = zoo.random_network([6, 8, 1], seed=seed)
        oracle = Oracle(lambda X, f=network: head(f(X)), 6)
        measure_noise(oracle, seed)
        assert oracle.link == NONE
    assert revelu.extract(lambda X: head(network(X)), dim_in=6).status is Status.NOT_IN_CLASS


@pytest.mark.parametrize("link", HEADS, ids=str)
def test_networks_behind_heads_come_back(link):
    truth = zoo.random_network([6, 8, 3], seed=4)
    found = revelu.extract(behind(link, truth), dim_in=6, seed=1)
    assert found.status is Status.RECOVERED, found.evidence
    assert str(found.link) == str(link) == found.to_dict()["link"]
    X = np.random.default_rng(0).standard_normal((2000, 6))
    Z, Y = truth(X), found.network(X)
    if link.contrast:
        Z, Y = Z - Z[:, -1:], Y - Y[:, -1:]
    assert np.abs(Y - Z).max() < 1e-8 * Z.std()
    assert found.ledger.n_recovery < 8 * truth.n_parameters


@pytest.mark.parametrize("link", [Link.named(n) for n in ("logit", "log", "atanh")], ids=str)
def test_networks_behind_heads_come_back_in_float32(link):
    truth = zoo.random_network([6, 8, 1], seed=4)
    found = revelu.extract(behind(link, single(truth)), dim_in=6, seed=1)
    assert found.status is Status.RECOVERED, found.evidence
    X = np.random.default_rng(0).standard_normal((2000, 6))
    assert np.abs(found.network(X) - truth(X)).max() < 1e-5 * truth(X).std()
    assert found.ledger.n_recovery < 40 * truth.n_parameters


@pytest.mark.parametrize("name", ["logit", "logit*100", "log", "log1p", "atanh"])
def test_links_of_one_neuron_are_found_where_it_is_on(name):
    # At more than half of the places all answers stay the same.
    for seed in range(8_620_200, 8_620_210):
        network = zoo.random_network([2, 1, 3], seed=seed)
        oracle = Oracle(behind(Link.named(name), network), 2)
        measure_noise(oracle, seed)
        assert oracle.link.name == Link.named(name).name
        assert oracle.n_queries <= 64 + 200


def test_the_answers_of_a_share_show_that_it_is_1_less_another():
    rng = np.random.default_rng(0)
    p = 1.0 / (1.0 + np.exp(-rng.uniform(-1.0, 1.0, (56, 1))))
    small = {
        scale: [
            float(smallest_with_digits(Y, np.finfo(np.float64), scale=scale, is_paired=True)[0])
            for Y in (scale * p, scale - scale * p)
        ]
        for scale in (1.0, 100.0)
    }
    # No answer is under a quarter of the scale: those all together tell it.
    for own, difference in small.values():
        assert own < 1e-290
        assert difference == SMALLEST_DIFFERENCE


@pytest.mark.parametrize(
    ("link", "falling"),
    [(link, falling) for link in HEADS for falling in {False, link.name == "logit"}],
)
def test_each_float32_answer_behind_a_head_has_its_own_error(link, falling):
    network = zoo.random_network([10, 16, 3], seed=7_600_050)
    target = behind(link, single(network))
    oracle = Oracle((lambda X: np.float32(link.scale) - target(X)) if falling else target, 10)
    noise = measure_noise(oracle, 7_600_050)
    assert oracle.link.name == link.name
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20_000, 10)).astype(np.float32).astype(np.float64)
    Y, Z = oracle(X), -network(X) if falling else network(X)
    Z = Z[:, :-1] - Z[:, -1:] if link.contrast else Z
    seen = np.isfinite(Y).all(axis=1)
    ratio = ((Y - Z)[seen] / noise.sigma_at(X[seen], Y[seen])).ravel()
    # Of precise answers as of vague ones, which differ by orders of magnitude.
    for part in np.array_split(ratio[np.argsort(np.abs(Z[seen]).ravel())], 8):
        assert 0.05 < np.sqrt((part**2).mean()) < 1.5
    assert noise.is_told(X, Y).mean() > 0.4


@pytest.mark.parametrize("name", ["logit", "atanh", "log1p"])
def test_two_layers_behind_a_head_come_back_in_float32(name):
    link, network = Link.named(name), zoo.random_network([6, 5, 4, 1], seed=8_620_100)
    recovery = revelu.extract(behind(link, single(network)), dim_in=6, seed=1)
    assert (recovery.status, recovery.link.name) == (Status.RECOVERED, name)
    X = np.random.default_rng(1).standard_normal((20_000, 6))
    Z = network(X)
    assert np.abs(recovery.network(X) - Z).max() <= 1e-5 * Z.std()
    assert recovery.ledger.n_queries < 20_000


@pytest.mark.parametrize("places", [4, 6])
def test_rounded_probabilities_are_certified_as_they_are(places):
    truth = zoo.random_network([6, 5, 3], seed=3)
    probabilities = behind(Link.named("softmax"), truth)
    target = lambda X: np.round(probabilities(X), places)  # noqa: E731
    found = revelu.extract(target, dim_in=6, seed=0)
    assert found.status is Status.RECOVERED, found.certificate.statement
    assert "units of the target's rounding" in found.certificate.statement
    X = np.random.default_rng(0).standard_normal((20_000, 6))
    off = np.abs(found.link.answers(found.network(X)) - target(X)).max()
    assert off <= 2.0 * 10.0**-places


def test_a_network_that_is_wrong_by_three_units_of_probabilities_is_refused():
    truth = zoo.random_network([6, 5, 3], seed=3)
    oracle = Oracle(degrade(behind(Link.named("softmax"), truth), Rounded(4)), 6)
    noise = measure_noise(oracle, 0)
    wrong = zoo.random_network([6, 5, 3], seed=3)
    wrong = revelu.Network(wrong.weights, [wrong.biases[0], wrong.biases[1] + [0.01, 0.0, 0.0]])
    for network, passes in ((truth, True), (wrong, False)):
        compared = revelu.network.to_log_ratios(network)
        seen = examine(compared, oracle, noise, 500, np.random.default_rng(1))
        assert certify(seen).passed is passes


def test_a_link_that_is_named_is_taken_or_refused_before_all_is_asked():
    truth = zoo.random_network([4, 3, 1], seed=2)
    target = behind(Link.named("logit"), truth)
    found = revelu.extract(target, dim_in=4, link="logit")
    assert found.status is Status.RECOVERED
    assert revelu.extract(target, dim_in=4, link="none").status is Status.NOT_IN_CLASS
    oracle = revelu.open_oracle(truth, link="logit")
    with pytest.raises(InputError, match="answers lie between 0 and 1, and Network has answered"):
        revelu.extract(oracle)
    assert oracle.n_queries <= 64
    with pytest.raises(InputError, match="of several outputs"):
        revelu.extract(target, dim_in=4, link="softmax")
    with pytest.raises(InputError, match="unknown link 'probit'"):
        revelu.open_oracle(truth, link="probit")


def test_infinite_answers_are_refused_of_what_is_no_exponential():
    with pytest.raises(TargetError, match="answered inf"):
        revelu.extract(lambda X: np.where(X[:, 0] > 0.0, np.inf, X[:, 0]), dim_in=3)


@pytest.mark.parametrize("link", HEADS, ids=str)
def test_heads_are_written_and_left_off_when_read(tmp_path, link):
    network = zoo.random_network([4, 6, 3], seed=1)
    shown = revelu.network.to_log_ratios(network) if link.contrast else network
    path = tmp_path / "head.onnx"
    revelu.formats.save_arrays(
        path,
        list(network.weights),
        list(network.biases),
        None,
        np.float64,
        head=link,
        certified=True,
    )
    X = np.random.default_rng(2).standard_normal((20, 4))
    np.testing.assert_allclose(OnnxTarget(path)(X), link.head(shown(X)), rtol=1e-12, atol=1e-14)
    assert revelu.load(path) == network
    said = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert said["head"] == str(link)


def test_the_command_line_takes_a_link_and_writes_a_head(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network = zoo.random_network([4, 5, 1], seed=1)
    arrays = list(network.weights), list(network.biases), None, np.float64
    revelu.formats.save_arrays(tmp_path / "served.onnx", *arrays, head=Link.named("logit"))
    invoke = lambda *words: CliRunner().invoke(app, list(words))  # noqa: E731
    done = invoke("extract", "served.onnx", "-o", "again.onnx", "--head", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["link"] == "logit"
    X = np.random.default_rng(2).standard_normal((200, 4))
    np.testing.assert_allclose(
        OnnxTarget(tmp_path / "again.onnx")(X), OnnxTarget(tmp_path / "served.onnx")(X), atol=1e-9
    )
    for words, said in ((("--link", "cloglog"), "unknown link"), (("--link", "log1p"), "")):
        done = invoke("extract", "served.onnx", *words, "--budget", "3000", "--json")
        assert (done.exit_code == 2) is bool(said)
        assert said in done.stderr
    assert invoke("verify", "again.onnx", "served.onnx").exit_code == 0
    refused = invoke("extract", "served.onnx", "--head", "-o", "again.npz")
    assert refused.exit_code == 2
    assert "give -o FILE.onnx" in refused.stderr


def test_samples_of_a_sigmoid_are_learned_as_logits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = zoo.random_network([4, 2, 1], seed=1)
    X = np.random.default_rng(0).standard_normal((600, 4))
    y = 1.0 / (1.0 + np.exp(-truth(X)[:, 0]))
    X, y = X[(y > 1e-3) & (y < 0.999)], y[(y > 1e-3) & (y < 0.999)]
    fresh = np.random.default_rng(1).standard_normal((500, 4))
    chunks = lambda: [(X[:300], y[:300]), (X[300:], y[300:])]  # noqa: E731
    for found in (revelu.learn(X, y, link="logit"), revelu.learn(chunks, link="logit")):
        assert found.network is not None
        assert str(found.link) == "logit"
        assert np.abs(found.network(fresh) - truth(fresh)).max() < 1e-6
    np.savez("samples.npz", X=X, y=y)
    words = ["learn", "samples.npz", "--link", "logit", "-o", "found.npz", "--json"]
    done = CliRunner().invoke(app, words)
    assert json.loads(done.stdout)["link"] == "logit", done.stderr
    np.savez("samples.npz", X=X, y=np.where(np.arange(len(y)) == 7, 1.0, y))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "row 7 answers 1" in done.stderr
    for link, said in (("cloglog", "unknown link"), ("softmax", "all classes"), ("atanh*x", "*")):
        with pytest.raises(InputError, match=re.escape(said)):
            revelu.learn(X, y, link=link)


def test_diagnoses_and_spans_take_a_link():
    truth = zoo.random_network([6, 3, 1], seed=2)
    target = behind(Link.named("logit"), truth)
    found = revelu.diagnose(target, dim_in=6, link="logit")
    assert found.fields()["link"] == "logit"
    seen = revelu.recover_span(target, dim_in=6, link="logit")
    assert seen.status is Status.RECOVERED
    for task in (revelu.diagnose, revelu.recover_span):
        with pytest.raises(InputError, match="unknown link"):
            task(target, dim_in=6, link="probit")
        with pytest.raises(InputError, match="answers lie between 0 and 1"):
            task(truth, link="logit")


def test_a_head_is_served():
    truth = zoo.random_network([4, 3, 2], seed=2)
    for link in (Link.named("logit*100"), Link.named("softmax")):
        X = np.random.default_rng(0).standard_normal((20, 4))
        np.testing.assert_allclose(degrade(truth, Headed(link))(X), behind(link, truth)(X))
    with pytest.raises(InputError, match="of several outputs"):
        degrade(zoo.random_network([4, 3, 1], seed=2), Headed(link))(X)
    done = CliRunner().invoke(app, ["serve", "demo:digits", "--link", "probit"])
    assert done.exit_code == 2
    assert "unknown link" in done.stderr


def test_a_single_probability_says_one_of_two_classes():
    X = np.random.default_rng(0).standard_normal((200, 3))
    logits = zoo.random_network([3, 4, 1], seed=1)(X)
    for link in (Link.named("logit"), Link.named("logit*100")):
        known = Reference(X, link.head(logits), link)
        assert known.labels.tolist() == (logits[:, 0] > 0.0).tolist()
        *others, labels = defences(known.deviation, 1, 0, probabilities=False, middle=known.middle)
        assert (labels.name, labels.leaves) == ("labels", "label")
        assert labels.of(known.Y)[:, 0].tolist() == known.labels.tolist()
        kept = {defence.name: known.costs(defence)[0] for defence in others}
        assert kept["none"] == kept["float32"] == 1.0
        # Of two digits those next to a half are a half.
        assert 0.5 < kept["2 digits"] <= kept["4 digits"] <= 1.0
    plain = Reference(X, logits)
    assert plain.middle is None
    assert defences(1.0, 1, 0, probabilities=False)[-1].leaves == "numbers"


@pytest.mark.parametrize("step", ["Sigmoid", "Tanh", "Exp", "LogSoftmax"])
def test_files_that_end_in_a_head_are_read_and_compared(tmp_path, step):
    network = zoo.random_network([4, 5, 3], seed=3)
    network.save(tmp_path / "network.onnx", "float64")
    model = onnx.load(tmp_path / "network.onnx")
    last = model.graph.output[0].name
    model.graph.node.append(onnx.helper.make_node(step, [last], ["answer"]))
    model.graph.output[0].name, model.producer_name = "answer", "another"
    onnx.save(model, tmp_path / "head.onnx")
    found = revelu.load(tmp_path / "head.onnx")
    X = np.random.default_rng(0).standard_normal((10, 4))
    np.testing.assert_array_equal(found(X), network(X))
    # Nothing that computes may follow.
    model.graph.node.append(onnx.helper.make_node("Relu", ["answer"], ["more"]))
    model.graph.output[0].name = "more"
    onnx.save(model, tmp_path / "more.onnx")
    with pytest.raises(InputError, match="cannot read a node of type Relu here"):
        revelu.load(tmp_path / "more.onnx")


@pytest.mark.parametrize("seed", [192, 3, 11, 40])
def test_answers_that_hardly_vary_are_behind_no_head(seed):
    """A head would explain them by larger errors, which answers as they are may have, too."""
    truth = zoo.scaled(zoo.random_network([6, 7, 2], seed=seed), 1e6, 1.0)
    noise = measure_noise(Oracle(truth, 6), seed)
    assert not noise.link.has_head
    assert noise.nu.max() < 1e-14


@pytest.mark.parametrize("seed", range(3))
def test_a_sigmoid_is_found_though_others_beside_it_are_saturated(seed):
    network = zoo.random_network([4, 10, 6], seed=seed)
    steep = revelu.Network(
        [network.weights[0], 40.0 * network.weights[1]],
        [network.biases[0], 40.0 * network.biases[1]],
    )
    target = behind(Link.named("logit"), steep)
    oracle = Oracle(lambda X: np.round(target(X), 8).astype(np.float32), 4)
    # All at once they have digits at few inputs, if at any.
    with contextlib.suppress(SaturatedError):
        measure_noise(oracle, np.random.default_rng(seed))
    assert oracle.link.name == "logit"
    assert oracle.ledger().n_queries <= 400


@pytest.mark.parametrize("seed", range(3))
def test_exponentials_of_half_precision_are_found_and_certified_though_some_overflow(seed):
    drawn = zoo.random_network([5, 8, 1], seed=seed)
    X = np.random.default_rng(9).standard_normal((2000, 5))
    # One in thirty overflows.
    up = np.log(np.finfo(np.float16).max) - np.quantile(3.0 * drawn(X), 0.97)
    weights = [drawn.weights[0], 3.0 * drawn.weights[1]]
    network = revelu.Network(weights, [drawn.biases[0], 3.0 * drawn.biases[1] + up])

    def answer(X):
        with np.errstate(over="ignore"):
            return np.exp(network(X)).astype(np.float16)

    found = revelu.verify(network, answer, seed=seed, link="log")
    assert np.isinf(answer(X)).any()
    assert found.status is Status.RECOVERED, found.certificate.statement
    assert found.answers["law"] == "rounded to 11 binary digits"
    # A network that overflows elsewhere is another one.
    other = revelu.Network(network.weights, [network.biases[0], network.biases[1] - 0.2])
    assert revelu.verify(other, answer, seed=seed, link="log").status is Status.UNVERIFIED


@pytest.mark.parametrize("link", ["logit", "log", "log1p", "atanh"])
def test_heads_in_half_precision_are_found(link):
    drawn = zoo.random_network([5, 8, 2], seed=101)
    target = behind(Link.named(link), lambda X: 2.0 * drawn(X))

    def answer(X):
        with np.errstate(over="ignore"):
            return target(X).astype(np.float16)

    oracle = Oracle(answer, 5)
    measure_noise(oracle, np.random.default_rng(0))
    assert oracle.link.name == link
