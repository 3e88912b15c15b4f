"""The journal: nothing is asked twice, nothing is replayed wrongly, nothing is lost."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.errors import FormatError, InputError, LimitReachedError, TargetError
from revelu.oracle import Journal, Oracle, measure_noise

NETWORK = revelu.zoo.random_network([6, 5, 1], seed=1)

# Rounds of rows; equal small numbers make equal batches.
ROUNDS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9), min_size=1, max_size=8)


class Counting:
    """A target that numbers its answers, and breaks down after so many batches."""

    def __init__(self, most_batches=10**9):
        self.batches, self.rows, self.most = [], 0, most_batches

    def __call__(self, X):
        if len(self.batches) == self.most:
            raise OSError("gone")
        self.batches.append(X.copy())
        self.rows += len(X)
        return np.column_stack([X[:, 0], np.full(len(X), self.rows)])


def opened(path, target, **options):
    oracle = Oracle(target, 1, batch_rows=4, **options)
    oracle.keep(Journal(path), target="counting")
    return oracle


def ask(oracle, rounds):
    return [oracle(np.array(rows, dtype=float)[:, None]) for rows in rounds]


@settings(max_examples=25)
@given(rounds=ROUNDS, most=st.integers(0, 8))
def test_resumed_run_gets_every_answer_once(tmp_path_factory, rounds, most):
    path = tmp_path_factory.mktemp("j") / "run.db"
    first, broken = Counting(most), True
    with opened(path, first) as oracle:
        try:
            ask(oracle, rounds)
            broken = False
        except TargetError:
            pass
    second = Counting()
    second.rows = first.rows
    with opened(path, second) as oracle:
        answers = np.concatenate(ask(oracle, rounds))
        assert oracle.ledger().by_phase["recover"] == sum(map(len, rounds)) == len(answers)
        assert oracle.ledger().n_rounds == len(rounds)
    # The answers are those that one target gave, in the order in which it gave them.
    whole = Oracle(Counting(), 1, batch_rows=4)
    np.testing.assert_array_equal(answers, np.concatenate(ask(whole, rounds)))
    n_batches = sum(-(-len(rows) // 4) for rows in rounds)
    assert len(first.batches) + len(second.batches) == n_batches
    assert broken == bool(second.batches)


@settings(max_examples=25)
@given(
    runs=st.lists(st.tuples(ROUNDS, st.integers(0, 60)), min_size=1, max_size=4),
)
def test_no_run_exceeds_its_budget_beside_those_before(tmp_path_factory, runs):
    path = tmp_path_factory.mktemp("j") / "run.db"
    target, paid = Counting(), 0
    for rounds, budget in runs:
        with opened(path, target, budget=budget) as oracle:
            for rows in rounds:
                try:
                    ask(oracle, [rows])
                except LimitReachedError:
                    break
            assert oracle.journal.n_queries == target.rows <= max(budget, paid)
        paid = target.rows


def test_divergent_run_has_only_what_is_left(tmp_path):
    with opened(tmp_path / "run.db", Counting()) as oracle:
        ask(oracle, [[1, 2, 3]])
    with opened(tmp_path / "run.db", Counting(), budget=5) as oracle:
        assert oracle.remaining == 5  # as the first run saw it
        ask(oracle, [[7]])
        assert oracle.remaining == 1
        assert not oracle.affords(2)


@pytest.mark.parametrize("name", ["seed", "target", "batch", "dim_in"])
def test_changed_run_is_named(tmp_path, name):
    facts = {"seed": 0, "target": "a", "batch": 4, "dim_in": 1}
    journal = Journal(tmp_path / "run.db")
    journal.bind(facts)
    journal.bind(facts)
    with pytest.raises(InputError, match=f"run whose {name.replace('_', ' ')} was .*, not other"):
        journal.bind({**facts, name: "other"})
    assert journal.facts().items() >= {k: str(v) for k, v in facts.items()}.items()
    journal.close()


def test_changed_version_is_named(tmp_path, monkeypatch):
    with opened(tmp_path / "run.db", Counting()):
        pass
    monkeypatch.setattr("revelu.oracle.journal.__version__", "99.0")
    with pytest.raises(InputError, match=r"version of revelu was .*, not 99\.0"):
        opened(tmp_path / "run.db", Counting())


def test_changed_file_is_named(tmp_path):
    path = tmp_path / "model.onnx"
    NETWORK.save(path)
    with revelu.open_oracle(path, journal=tmp_path / "run.db"):
        pass
    revelu.zoo.random_network([6, 5, 1], seed=2).save(path)
    with pytest.raises(InputError, match="whose file was"):
        revelu.open_oracle(path, journal=tmp_path / "run.db")


def test_nonsense_counts_and_is_asked_again(tmp_path):
    answers = iter([np.array([np.nan]), np.array([1.0])])
    for n_queries in (1, 2):
        with opened(tmp_path / "run.db", lambda _: next(answers)) as oracle:
            assert oracle.n_queries == n_queries - 1
            if n_queries == 1:
                with pytest.raises(TargetError, match="nan"):
                    ask(oracle, [[1]])
            else:
                ask(oracle, [[1]])
            assert oracle.n_queries == oracle.journal.n_queries == n_queries


def test_one_run_at_a_time(tmp_path):
    with opened(tmp_path / "run.db", Counting()), pytest.raises(InputError, match="has this"):
        Journal(tmp_path / "run.db")
    Journal(tmp_path / "run.db").close()


def test_other_files_are_refused_and_left_alone(tmp_path):
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (a)")
    other.close()
    (tmp_path / "text.db").write_text("once upon a time " * 100)
    for name in ("other.db", "text.db"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(FormatError, match=f"{name}: is no journal"):
            Journal(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    with pytest.raises(FormatError):
        Journal(tmp_path)
    with pytest.raises(FormatError):
        Journal(tmp_path / "no" / "such" / "run.db")


def test_answer_that_is_not_finite_is_damage(tmp_path):
    path = tmp_path / "run.db"
    with opened(path, Counting()) as oracle:
        ask(oracle, [[1]])
    db = sqlite3.connect(path)
    db.execute("UPDATE batches SET answer = ?", (np.array([1.0, np.nan]).tobytes(),))
    db.commit()
    db.close()
    with opened(path, Counting()) as oracle, pytest.raises(FormatError, match="is damaged"):
        ask(oracle, [[1]])


def test_cut_answer_is_damage(tmp_path):
    with opened(tmp_path / "run.db", Counting()) as oracle:
        ask(oracle, [[1, 2]])
    database = sqlite3.connect(tmp_path / "run.db")
    with database:
        database.execute("UPDATE batches SET answer = x'00'")
    database.close()
    with opened(tmp_path / "run.db", Counting()) as oracle, pytest.raises(FormatError):
        ask(oracle, [[1, 2]])


@pytest.mark.parametrize("digest", ["xxh3", "blake2b"])
def test_journal_is_read_with_the_digest_that_it_was_written_with(tmp_path, monkeypatch, digest):
    with monkeypatch.context() as patch:
        patch.setattr("revelu.oracle.journal._fastest", lambda: digest)
        with opened(tmp_path / "run.db", Counting()) as oracle:
            ask(oracle, [[1, 2, 3]])
    silent = Counting(0)
    with opened(tmp_path / "run.db", silent) as oracle:
        ask(oracle, [[1, 2, 3]])


def test_a_query_takes_a_few_tens_of_bytes_more_than_its_answer(tmp_path):
    rng, k = np.random.default_rng(0), 3
    oracle = Oracle(lambda X: X[:, :k], 50, batch_rows=16)
    with oracle:
        oracle.keep(Journal(tmp_path / "run.db"))
        oracle(rng.standard_normal((4_000, 50)))
    assert (tmp_path / "run.db").stat().st_size < 4_000 * (8 * k + 30)


@pytest.mark.parametrize("n_workers", [None, 1, 3])
def test_answers_beside_a_failure_are_kept(tmp_path, n_workers):
    asked = []

    def target(X):
        asked.append(int(X[0, 0]))
        if asked[-1] == 2:
            raise OSError("gone")
        return X[:, 0]

    X = np.arange(6.0)[:, None]
    pool = ThreadPoolExecutor(n_workers) if n_workers else None
    oracle = Oracle(target, 1, batch_rows=1, executor=pool)
    oracle.keep(Journal(tmp_path / "run.db"))
    with oracle, pytest.raises(TargetError, match="gone"):
        oracle(X)
    if pool:
        pool.shutdown()
    assert 2 in asked
    asked_again = []
    second = Oracle(lambda X: (asked_again.append(int(X[0, 0])), X[:, 0])[1], 1, batch_rows=1)
    with second:
        second.keep(Journal(tmp_path / "run.db"))
        np.testing.assert_array_equal(second(X), X)
    assert sorted([*asked, *asked_again]) == sorted([*range(6), 2])


def changing(after_rows):
    """A network that becomes another one after so many rows."""
    networks = [NETWORK, revelu.zoo.random_network([6, 5, 1], seed=2)]
    n_rows = 0

    def target(X):
        nonlocal n_rows
        n_rows += len(X)
        return networks[n_rows > after_rows](X)

    return target


@pytest.mark.parametrize("after_rows", [64, 100, 1000, 3000])
def test_model_that_changes_midway_is_named(tmp_path, after_rows):
    path = tmp_path / "run.db"
    with revelu.open_oracle(changing(after_rows), dim_in=6, journal=path) as oracle:
        with pytest.raises(TargetError, match="has changed: a row asked again"):
            revelu.extract(oracle, budget=None)
        assert oracle.n_queries <= after_rows + 2 * 8192
    Journal(path).close()  # whole


def test_model_that_changed_between_runs_is_named(tmp_path):
    path = tmp_path / "run.db"
    with revelu.open_oracle(changing(10**9), dim_in=6, budget=200, journal=path) as oracle:
        assert revelu.extract(oracle).status is revelu.Status.BUDGET_EXHAUSTED
    with (
        revelu.open_oracle(changing(0), dim_in=6, journal=path) as oracle,
        pytest.raises(TargetError, match="has changed"),
    ):
        revelu.extract(oracle)


@pytest.mark.parametrize("scale", [0.0, 1e-6])
def test_noise_is_no_change(tmp_path, scale):
    rng = np.random.default_rng(3)
    oracle = Oracle(lambda X: NETWORK(X) + scale * rng.standard_normal((len(X), 1)), 6)
    oracle.keep(Journal(tmp_path / "run.db"))
    with oracle:
        measure_noise(oracle, 0)
        n_before = oracle.n_queries
        for _ in range(50):
            oracle(rng.standard_normal((3, 6)))
            oracle.check_unchanged()
        assert oracle.n_queries == n_before + 50 * (3 + 8) == oracle.journal.n_queries


def test_work_that_is_to_end_asks_nothing_again(tmp_path):
    oracle = Oracle(NETWORK, 6)
    oracle.keep(Journal(tmp_path / "run.db"))
    with oracle:
        measure_noise(oracle, 0)
        oracle(np.eye(6))
        oracle.end("interrupted")
        n_before = oracle.n_queries
        oracle.check_unchanged()
        assert oracle.n_queries == n_before


def test_finished_extraction_asks_nothing_again(tmp_path):
    target, silent = Oracle(NETWORK, 6), Counting(0)
    path = tmp_path / "run.db"
    with revelu.open_oracle(target.__call__, dim_in=6, journal=path) as oracle:
        first = revelu.extract(oracle, seed=3)
    assert first.status is revelu.Status.RECOVERED
    plain = revelu.extract(NETWORK, seed=3)
    # Eight rows are asked again at the end, to see that the target is still the same.
    assert first.ledger.n_queries == target.n_queries == plain.ledger.n_queries + 8
    with revelu.open_oracle(silent.__call__, dim_in=6, journal=path) as oracle:
        second = revelu.extract(oracle, seed=3)
    assert second.network == first.network == plain.network
    assert second.ledger == first.ledger


def test_larger_budget_goes_on_and_says_what_it_did_not_need(tmp_path):
    target = Oracle(NETWORK, 6)
    reports = []
    for budget in (150, 1000, 5000):
        path = tmp_path / "run.db"
        with revelu.open_oracle(target.__call__, dim_in=6, budget=budget, journal=path) as oracle:
            reports.append(revelu.extract(oracle))
            unused = oracle.journal.n_waiting
            paid = oracle.journal.n_queries
        assert paid == target.n_queries == reports[-1].ledger.n_queries + unused <= budget
        said = [w for w in reports[-1].warnings if "journal" in w]
        assert said == [] if not unused else f"{unused} more" in said[0]
    assert reports[0].status is revelu.Status.BUDGET_EXHAUSTED
    assert reports[2].status is revelu.Status.RECOVERED
    # The last batch of a certificate that a budget had cut.
    assert unused < 1024


def test_show_says_what_a_journal_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"})
    NETWORK.save("model.onnx")
    done = runner.invoke(app, ["extract", "model.onnx", "--journal", "run.db", "--json"])
    report = one_object(done.stdout)
    shown = runner.invoke(app, ["journal", "show", "run.db"])
    assert shown.exit_code == 0
    assert f"{report['queries']:,} in" in shown.stdout
    assert "model.onnx" in shown.stdout
    as_json = one_object(runner.invoke(app, ["journal", "show", "run.db", "--json"]).stdout)
    assert as_json["n_queries"] == report["queries"]
    assert as_json["by_phase"] == {k: n for k, n in report["by_phase"].items() if n}
    assert as_json["facts"]["seed"] == "0"


def test_show_looks_into_a_journal_that_a_run_writes(tmp_path):
    with opened(tmp_path / "run.db", Counting()) as oracle:
        for rows in ([[1.0]], [[2.0], [3.0]]):
            ask(oracle, rows)
            done = CliRunner().invoke(app, ["journal", "show", str(tmp_path / "run.db"), "--json"])
            assert one_object(done.stdout)["n_queries"] == oracle.n_queries
        assert len(list(tmp_path.iterdir())) == 2  # the journal and its log


@pytest.mark.parametrize("name", ["missing.db", "text.db"])
def test_show_refuses_in_one_line(tmp_path, name):
    (tmp_path / "text.db").write_text("no journal")
    done = CliRunner().invoke(app, ["journal", "show", str(tmp_path / name)])
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.count("\n") == 1
    assert name in done.stderr
    assert not (tmp_path / "missing.db").exists()


def test_run_that_asks_nothing_says_so(tmp_path):
    other = revelu.zoo.random_network([6, 5, 1], seed=2)
    reports = []
    for network in (NETWORK, other):
        with revelu.open_oracle(network.__call__, dim_in=6, journal=tmp_path / "run.db") as oracle:
            reports.append(revelu.extract(oracle))
    assert reports[0].warnings == ()
    (note,) = reports[1].warnings
    assert "every answer is from the journal" in note
    assert "may have become another one" in note


@pytest.mark.parametrize("command", ["extract", "span", "diagnose"])
def test_journal_is_not_written_over(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    NETWORK.save("model.npz")
    options = ["--perturb", "0.1"] if command == "diagnose" else []
    done = CliRunner().invoke(
        app, [command, "model.npz", *options, "--journal", "a.npz", "-o", "./a.npz"]
    )
    assert done.exit_code == ExitCode.USAGE
    assert "a.npz: is the journal" in done.stderr
    assert not (tmp_path / "a.npz").exists()


def test_damage_is_named_with_the_file_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with revelu.open_oracle(NETWORK, journal="run.db") as oracle:
        oracle(np.random.default_rng(0).standard_normal((900, 6)))
    whole = (tmp_path / "run.db").read_bytes()
    # All but the first page, which has the tables, is noise.
    noise = np.random.default_rng(1).bytes(len(whole) - 4096)
    (tmp_path / "run.db").write_bytes(whole[:4096] + noise)
    with pytest.raises(FormatError, match=r"^run\.db: is damaged .*begin again with a new journal"):
        revelu.open_oracle(NETWORK, journal="run.db")
    done = CliRunner().invoke(app, ["journal", "show", "run.db"])
    assert done.exit_code == ExitCode.USAGE
    assert done.stderr.startswith("revelu: run.db: is damaged")


def test_full_disk_keeps_the_answers_that_are_there(tmp_path):
    rng, path, asked = np.random.default_rng(0), tmp_path / "run.db", []
    first, more = rng.standard_normal((60, 6)), rng.standard_normal((20_000, 6))

    def ask(X):
        asked.append(len(X))
        return NETWORK(X)

    with revelu.open_oracle(ask, dim_in=6, journal=path) as oracle:
        Y = oracle(first)
        # The file may grow by nothing.
        pages = oracle.journal._db.execute("PRAGMA page_count").fetchone()[0]
        oracle.journal._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(FormatError, match=r"run\.db: cannot be written .*goes on from"):
            oracle(more)
    n = len(asked)
    with revelu.open_oracle(ask, dim_in=6, journal=path) as oracle:
        np.testing.assert_array_equal(oracle(first), Y)
    assert len(asked) == n


def changed(path, statement, *values):
    database = sqlite3.connect(path)
    with database:
        database.execute(statement, values)
    database.close()


def test_a_flipped_bit_is_damage(tmp_path):
    path = tmp_path / "run.db"
    with opened(path, Counting()) as oracle:
        ask(oracle, [[1, 2]])
    answer = bytearray(np.array([1.0, 2.0, 2.0, 2.0]).tobytes())
    answer[0] ^= 1
    changed(path, "UPDATE batches SET answer = ?", bytes(answer))
    with opened(path, Counting()) as oracle, pytest.raises(FormatError, match="what was written"):
        ask(oracle, [[1, 2]])


def test_a_journal_without_checksums_is_read(tmp_path):
    path = tmp_path / "run.db"
    with opened(path, Counting()) as oracle:
        before = ask(oracle, [[1, 2]])
    changed(path, "ALTER TABLE batches DROP COLUMN checksum")
    target = Counting()
    with opened(path, target) as oracle:
        np.testing.assert_array_equal(ask(oracle, [[1, 2]]), before)
        ask(oracle, [[3]])
    assert target.rows == 1


def test_a_resumed_run_says_what_came_from_before(tmp_path):
    path = tmp_path / "run.db"
    with opened(path, Counting()) as oracle:
        ask(oracle, [[1, 2]])
    with opened(path, Counting()) as oracle:
        ask(oracle, [[1, 2], [3]])
        (said,) = oracle.journal.notes()
    assert said.startswith("2 of the queries were answered before")
    assert said.endswith("1 were asked now")
