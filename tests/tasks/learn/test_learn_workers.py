"""Samples in chunks: threads, processes and a Dask cluster find what one worker finds."""

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from test_learn import draw, largest_error, samples
from typer.testing import CliRunner

import revelu
from conftest import PATIENCE_SECONDS
from revelu.cli.app import app
from revelu.numerics.reservoir import Reservoir
from revelu.probe.streams import work_through
from revelu.tasks.learn import samples as task

D, M, SHARDS, ROWS = 16, 3, 8, 500


def shard(i):
    """500 samples of 51 parameters, drawn where they are worked on."""
    return samples(draw(D, M, 70), ROWS, 80 + i)


def shards():
    return [partial(shard, i) for i in range(SHARDS)]


@pytest.fixture
def few_in_memory(monkeypatch):
    """Of 4,000 samples 1,600 stay, so that moments come from chunks."""
    monkeypatch.setattr(task, "_MOST_NUMBERS", D * 1600)


def assert_alike(one, other):
    np.testing.assert_allclose(one.network.weights[0], other.network.weights[0], atol=1e-10)
    np.testing.assert_allclose(one.details["eigenvalues"], other.details["eigenvalues"])
    assert one.details["n_samples"] == other.details["n_samples"] == SHARDS * ROWS


@pytest.mark.usefixtures("few_in_memory")
def test_the_result_is_the_same_for_any_number_of_workers():
    alone = revelu.learn(shards)
    assert alone.status is revelu.Status.RECOVERED
    assert largest_error(alone.network, draw(D, M, 70)) < 1e-9
    for n in (1, 3):
        with ThreadPoolExecutor(n) as pool:
            assert_alike(revelu.learn(shards, executor=pool), alone)


@pytest.mark.slow
@pytest.mark.usefixtures("few_in_memory")
def test_chunks_cross_to_processes():
    with ProcessPoolExecutor(2) as pool:
        assert_alike(revelu.learn(shards, executor=pool), revelu.learn(shards))


def workers_of(pids):
    """Who has begun a shard."""
    return {path.name.split("-")[2] for path in Path(pids).iterdir()}


def traced_shard(pids, waits, i):
    """Leave a trace of who works, so that the test knows whom to kill.

    Where it waits, it does so until a worker has been replaced: nobody is done before.
    """
    (Path(pids) / f"{time.time_ns()}-{i}-{os.getpid()}").touch()
    until = time.monotonic() + PATIENCE_SECONDS
    while waits and len(workers_of(pids)) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    return shard(i)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the cluster's own, of the worker that dies
@pytest.mark.usefixtures("few_in_memory")
def test_a_killed_worker_of_a_cluster_is_only_run_again(tmp_path):
    distributed = pytest.importorskip("distributed")
    pids = tmp_path / "pids"
    pids.mkdir()
    passes, kills = [], []

    def kill_one():
        while len(list(pids.iterdir())) == SHARDS:
            time.sleep(0.05)
        worker = int(max(pids.iterdir()).name.split("-")[2])
        os.kill(worker, signal.SIGKILL)
        kills.append(worker)

    def chunks():
        passes.append(len(passes))
        waits = len(passes) == 2  # that of the moments
        if waits:
            threading.Thread(target=kill_one).start()
        return [partial(traced_shard, f"{pids}", waits, i) for i in range(SHARDS)]

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        found = revelu.learn(chunks, executor=client.get_executor(pure=False))
    assert kills
    begun = [path.name.split("-")[2] for path in pids.iterdir()]
    assert len(passes) * SHARDS < len(begun) < (len(passes) + 1) * SHARDS
    assert len(set(begun)) > 2
    assert found.status is revelu.Status.RECOVERED
    assert_alike(found, revelu.learn(shards))


def test_arrays_are_split_among_workers():
    X, y = samples(draw(4, 2, 71), 400, 1)
    with ThreadPoolExecutor(2) as pool:
        assert revelu.learn(X, y, executor=pool).network == revelu.learn(X, y).network


def test_pairs_are_chunks_too():
    pairs = [samples(draw(4, 2, 72), 200, i) for i in range(2)]
    recovery = revelu.learn(lambda: iter(pairs))
    assert recovery.status is revelu.Status.RECOVERED
    assert recovery.details["n_samples"] == 400


def bad_chunks(what):
    X, y = samples(draw(3, 2, 73), 50, 1)
    first = (X, y)
    second = {
        "nan": (np.where(np.arange(50)[:, None] == 7, np.nan, X), y),
        "disagrees": (X[:, :2], y),
        "single": X,
        "lengths": (X, y[:-1]),
        "nothing": None,
    }[what]
    return lambda: [first, lambda: second]


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("nan", "chunk 1: row 7"),
        ("disagrees", "chunk 1: rows of 2 inputs, those of chunk 0 have 3"),
        ("single", "chunk 1: not a pair"),
        ("lengths", "chunk 1: X has shape"),
        ("nothing", "chunk 1: not a pair"),
    ],
)
@pytest.mark.parametrize("n_workers", [0, 2])
def test_a_bad_chunk_is_named(what, message, n_workers):
    if not n_workers:
        with pytest.raises(revelu.InputError, match=message):
            revelu.learn(bad_chunks(what))
        return
    with ThreadPoolExecutor(n_workers) as pool, pytest.raises(revelu.InputError, match=message):
        revelu.learn(bad_chunks(what), executor=pool)


def test_empty_chunks_are_passed_over_and_no_chunks_refused():
    X, y = samples(draw(4, 2, 74), 240, 1)
    recovery = revelu.learn(lambda: [(X[:0], y[:0]), (X, y)])
    assert recovery.status is revelu.Status.RECOVERED
    with pytest.raises(revelu.InputError, match="no samples"):
        revelu.learn(list)


def test_an_executor_is_one():
    X, y = samples(draw(3, 2, 1), 100, 1)
    with pytest.raises(revelu.InputError, match="executor"):
        revelu.learn(X, y, executor=2)


def test_what_fails_cancels_what_has_not_begun():
    begun, cancelled = [], threading.Event()

    def work(i):
        begun.append(i)
        if i == 0:
            raise ValueError("first")
        cancelled.wait(PATIENCE_SECONDS)

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match="first"):
            list(work_through(work, range(30), pool))
        cancelled.set()
    assert begun in ([0], [0, 1])


def test_a_reservoir_keeps_the_least_keys_whatever_the_pieces():
    rng = np.random.default_rng(1)
    keys, rows = rng.random(300), rng.standard_normal((300, 2))
    expected = rows[np.argsort(keys)[:40]]
    for cuts in ([], [25, 30, 200], [60]):
        reservoir = Reservoir(40, 2)
        for k, r in zip(np.split(keys, cuts), np.split(rows, cuts), strict=True):
            below = k <= reservoir.bar
            reservoir.add(k[below], r[below])
        np.testing.assert_array_equal(reservoir.in_order(), expected)
    few = Reservoir(40, 2)
    few.add(keys[:10], rows[:10])
    assert len(few.in_order()) == 10


def test_the_command_line_has_workers(tmp_path):
    for i in range(3):
        X, y = samples(draw(4, 2, 75), 100, i)
        np.savez(tmp_path / f"{i}.npz", X=X, y=y)
    done = CliRunner().invoke(app, ["learn", f"{tmp_path}", "--workers", "2", "--json"])
    assert done.exit_code == 0
    assert CliRunner().invoke(app, ["learn", f"{tmp_path}", "--workers", "0"]).exit_code == 2
