"""Samples and inputs in tables: every format, with a header or without; classes as logits."""

import gzip
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import revelu
from revelu import Network, Status, zoo
from revelu.cli.app import app
from revelu.errors import FormatError, InputError
from revelu.formats.columns import read_columns
from revelu.formats.tables import read_table
from revelu.oracle import softmax

TRUTH = zoo.random_network([4, 2, 1], seed=3)
X = np.random.default_rng(0).standard_normal((300, 4))
NAMES = ["a", "b", "c", "d"]


def invoke(*arguments):
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return runner.invoke(app, [*map(str, arguments)])


def csv_of(columns, *, separator=",", header=True):
    lines = [separator.join(columns)] if header else []
    lines += [separator.join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines) + "\n"


def samples(y=None):
    """Columns of inputs, of answers and of words."""
    answers = TRUTH(X)[:, 0] if y is None else y
    return {**dict(zip(NAMES, X.T, strict=True)), "price": answers, "id": ["n1"] * len(X)}


WRITERS = {
    "s.csv": lambda path: path.write_text(csv_of(samples())),
    "s.tsv": lambda path: path.write_text(csv_of(samples(), separator="\t")),
    "s.csv.gz": lambda path: path.write_bytes(gzip.compress(csv_of(samples()).encode())),
    "s.parquet": lambda path: pyarrow.parquet.write_table(pa.table(samples()), path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_samples_are_learned_from_every_kind_of_table(tmp_path, name):
    WRITERS[name](tmp_path / name)
    done = invoke(
        "learn", tmp_path / name, "--target", "price", "--drop", "id", "-o", tmp_path / "n.npz"
    )
    assert done.exit_code == 0, done.output
    found = revelu.load(tmp_path / "n.npz")
    assert revelu.align(found, TRUTH).max_parameter_error < 1e-8


@pytest.mark.parametrize("name", ["n.csv", "n.npy"])
def test_columns_without_names_have_numbers(tmp_path, name):
    table = np.column_stack([TRUTH(X), X])
    if name == "n.npy":
        np.save(tmp_path / name, table)
    else:
        columns = dict(enumerate(table.T))
        (tmp_path / name).write_text(csv_of(columns, header=False))
    found = revelu.learn(tmp_path / name, target="0")
    assert found.status is Status.RECOVERED
    assert revelu.align(found.network, TRUTH).max_parameter_error < 1e-8


def test_an_array_of_an_archive_is_named_as_a_column_is(tmp_path):
    np.savez(tmp_path / "s.npz", X=X, price=TRUTH(X)[:, 0])
    assert revelu.learn(tmp_path / "s.npz", target="price").status is Status.RECOVERED
    with pytest.raises(FormatError, match="has no array y"):
        revelu.learn(tmp_path / "s.npz")
    with pytest.raises(FormatError, match="no names to be dropped"):
        revelu.learn(tmp_path / "s.npz", target="price", drop="a")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "has no column 'y'; it has a, b, c, d, price, id"),
        (["--target", "cost"], "has no column 'cost'; it has a, b, c, d, price, id"),
        (["--target", "price", "--drop", "idd"], "has no column 'idd'; it has a, b"),
        (["--target", "price"], "column 'id' holds 'n1' in line 2"),
        (["--target", "a,b,c,d,price,id"], "needs a column of inputs"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--halfspaces", "or"]])
def test_columns_that_are_not_there_are_shown_those_that_are(tmp_path, options, words, more):
    (tmp_path / "s.csv").write_text(csv_of(samples()))
    done = invoke("learn", tmp_path / "s.csv", *options, *more)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_belong_to_files():
    with pytest.raises(InputError, match="target and drop are for samples in files"):
        revelu.learn(X, TRUTH(X)[:, 0], target="y")


def test_halfspaces_are_learned_from_a_table(tmp_path):
    rng = np.random.default_rng(1)
    points = rng.standard_normal((4000, 3))
    fires = (points[:, 0] > 1.5).astype(int)
    columns = {**dict(zip("abc", points.T, strict=True)), "rare": fires}
    (tmp_path / "s.csv").write_text(csv_of(columns))
    done = invoke("learn", tmp_path / "s.csv", "--target", "rare", "--halfspaces", "or", "-q")
    assert done.exit_code in {0, 1}, done.output


# --- classes


def classifier(k, seed=0):
    """Logits of ``k`` classes, the last one's 0, not so far apart that a probability vanishes."""
    W = np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, -0.5]])
    A = np.random.default_rng(seed).uniform(0.5, 1.5, (k, 2))
    A[-1] = 0.0
    return Network([W, A], [[0.3, -0.2], np.append(np.linspace(0.1, 0.4, k - 1), 0.0)])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_probabilities_are_learned_as_logits(tmp_path, k):
    truth = classifier(k)
    P = softmax(truth(X))
    columns = {**dict(zip(NAMES, X.T, strict=True)), **{f"p{i}": p for i, p in enumerate(P.T)}}
    (tmp_path / "s.csv").write_text(csv_of(columns))
    found = revelu.learn(tmp_path / "s.csv", target=[f"p{i}" for i in range(k)])
    assert found.status is Status.RECOVERED
    assert found.is_classifier
    assert found.network.architecture == (4, 2, k)  # outputs share their neurons
    np.testing.assert_allclose(found.network(X), truth(X), atol=1e-8)
    assert found.certificate.passed
    again = revelu.learn(X, P)
    np.testing.assert_allclose(again.network(X), truth(X), atol=1e-8)


def test_a_probability_of_zero_is_named_by_its_row(tmp_path):
    P = softmax(classifier(3)(X))
    P[7] = [1.0, 0.0, 0.0]
    np.savez(tmp_path / "s.npz", X=X, y=P)
    with pytest.raises(FormatError, match=r"s.npz: row 7 holds a probability of 0"):
        revelu.learn(tmp_path / "s.npz")


def test_numbers_that_are_no_probabilities_are_learned_one_at_a_time():
    with pytest.raises(InputError, match="one is learned at a time"):
        revelu.learn(X, classifier(3)(X))


def test_classes_are_written_with_their_softmax(tmp_path):
    import onnxruntime

    P = softmax(classifier(2)(X))
    np.savez(tmp_path / "s.npz", X=X, y=P)
    done = invoke("learn", tmp_path / "s.npz", "-o", tmp_path / "n.onnx")
    assert done.exit_code == 0, done.output
    session = onnxruntime.InferenceSession(tmp_path / "n.onnx")
    np.testing.assert_allclose(session.run(None, {"input": X})[0], P, atol=1e-9)


# --- inputs


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.npy", "x.npz", "x.parquet", "image.npy"])
def test_inputs_of_a_user_come_in_every_kind_of_table(tmp_path, name):
    path, rows = tmp_path / name, X[:20]
    TRUTH.save(tmp_path / "n.npz")
    columns = dict(zip(NAMES, rows.T, strict=True))
    if name == "x.parquet":
        pyarrow.parquet.write_table(pa.table(columns), path)
    elif name == "x.npz":
        np.savez(path, X=rows)
    elif name == "x.csv.gz":
        path.write_bytes(gzip.compress(csv_of(columns).encode()))
    elif name == "x.csv":
        path.write_text(csv_of(columns))
    else:
        np.save(path, rows.reshape(20, 2, 2) if name == "image.npy" else rows)
    done = invoke("extract", tmp_path / "n.npz", "--inputs", path, "--checks", 300, "--json")
    assert done.exit_code == 0, done.output
    assert '"n_inputs": 20' in done.stdout


# --- tables


def test_what_pandas_writes_of_columns_without_names_is_a_header(tmp_path):
    (tmp_path / "t.csv").write_text("0,1,2\n5,6,7\n")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv"), [[5.0, 6.0, 7.0]])
    (tmp_path / "t.csv").write_text("0,1\n5,6\n")
    assert read_table(tmp_path / "t.csv").shape == (2, 2)


def test_arrays_of_an_archive_are_read_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", mask=np.ones((2, 3)), word=np.array(["x"]))
    found = read_columns(tmp_path / "a.npz")
    assert set(found) == {"mask", "word"}
    assert found["mask"].shape == (2, 3)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"\x1f\x8b\x08\x00broken", b"a,b\n1,2"])
def test_a_packed_table_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "t.csv.gz").write_bytes(content)
    with pytest.raises(FormatError):
        read_table(tmp_path / "t.csv.gz")


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([".csv", ".tsv", ".csv.gz", ".npy", ".npz"]))
def test_no_bytes_are_a_traceback(tmp_path_factory, content, suffix):
    path = tmp_path_factory.mktemp("t") / f"t{suffix}"
    path.write_bytes(content)
    for read in (read_table, read_columns, lambda p: revelu.learn(p, target="0")):
        with suppress(InputError):  # and nothing else
            read(path)


@settings(max_examples=50)
@given(
    rows=st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    ),
    separator=st.sampled_from([",", ";", "\t"]),
    names=st.booleans(),
)
def test_numbers_come_back_to_the_last_bit(tmp_path_factory, rows, separator, names):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    head = [["x", "y", "z"]] if names else []
    if not names and rows[0] == [0.0, 1.0, 2.0]:
        return
    lines = [separator.join(map(str, row)) for row in [*head, *rows]]
    path.write_text("\n".join(lines))
    np.testing.assert_array_equal(read_table(path), np.array(rows))
