"""Many requests at a time: the same result, and a lost worker costs time alone."""

import contextlib
import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import PATIENCE_SECONDS, one_object
from revelu.adapters.executors import executor
from revelu.adapters.http import HttpTarget
from revelu.cli.app import app
from revelu.errors import InputError, TargetError
from revelu.oracle import Journal, Oracle
from serving import serving

NETWORK = revelu.zoo.random_network([12, 10, 2], seed=3)


class Recording:
    """A model that remembers how its rows were cut."""

    dim_in = 12

    def __init__(self):
        self.cuts, self.lock = [], threading.Lock()

    def __call__(self, X):
        with self.lock:
            self.cuts.append(X.tobytes())
        return NETWORK(X)


@pytest.mark.parametrize("n_workers", [1, 2, 7])
def test_result_does_not_depend_on_the_number_of_workers(n_workers, tmp_path):
    alone, shared = Recording(), Recording()
    with revelu.open_oracle(alone, batch=200) as oracle:
        expected = revelu.extract(oracle, seed=1)
    with executor(n_workers) as pool:
        journal = tmp_path / "run.db"
        with revelu.open_oracle(shared, batch=200, executor=pool, journal=journal) as oracle:
            found = revelu.extract(oracle, seed=1)
    assert found.network == expected.network
    # The sentinels of a journal come on top.
    extra = len(shared.cuts) - len(alone.cuts)
    assert extra == 1
    assert set(shared.cuts) == set(alone.cuts)
    # A run of another number of workers goes on with the same batches.
    silent = Recording()
    with revelu.open_oracle(silent, batch=200, journal=journal) as oracle:
        assert revelu.extract(oracle, seed=1).network == expected.network
    assert silent.cuts == []


def test_workers_ask_at_the_same_time():
    barrier = threading.Barrier(3, timeout=PATIENCE_SECONDS)

    def target(X):
        barrier.wait()
        return X.sum(axis=1)

    with executor(3) as pool:
        Oracle(target, 2, batch_rows=1, executor=pool)(np.zeros((6, 2)))


def test_time_is_over_between_batches():
    asked, over = [], threading.Event()

    def target(X):
        asked.append(X)
        if len(asked) > 20:
            over.wait(PATIENCE_SECONDS)
            # Whoever looks has to be heard before all are answered, on a busy machine, too.
            time.sleep(0.02)
        return X.sum(axis=1)

    def clock():
        """Seconds are answers; whoever looks once they are over lets the target go."""
        if len(asked) > 20:
            over.set()
        return float(len(asked))

    with executor(2) as pool:
        oracle = Oracle(target, 2, batch_rows=1, executor=pool, max_seconds=20, clock=clock)
        with pytest.raises(revelu.LimitReachedError, match="seconds"):
            oracle(np.zeros((1000, 2)))
    assert oracle.n_queries == len(asked) < 1000


def test_interrupt_that_ends_no_wait_is_heard():
    answered, over = [], threading.Event()

    def target(X):
        time.sleep(0.2)  # until the main thread waits
        # Raised on this thread, it leaves the other one waiting, as does one that comes just
        # before the wait.
        signal.raise_signal(signal.SIGINT)
        over.wait(PATIENCE_SECONDS)
        answered.append(X)
        return X.sum(axis=1)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pool = ThreadPoolExecutor(1)
    try:
        with pytest.raises(KeyboardInterrupt):
            Oracle(target, 2, executor=pool)(np.zeros((1, 2)))
        assert not answered
    finally:
        over.set()
        pool.shutdown()
        signal.signal(signal.SIGINT, before)


def test_executor_that_is_shut_down_is_named():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(TargetError, match="the executor takes no batches"):
        Oracle(NETWORK, 12, executor=pool)(np.zeros((1, 12)))


def test_workers_on_the_command_line():
    with serving(NETWORK) as server:
        reports = []
        for workers in (1, 3):
            arguments = ["extract", server.url, "--workers", str(workers), "--batch", "100"]
            done = CliRunner().invoke(app, [*arguments, "--json"])
            assert done.exit_code == 0, done.stderr
            reports.append(one_object(done.stdout))
    for report in reports:
        del report["seconds"], report["command_line"]
    assert reports[0] == reports[1]


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two processes here."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            worker_dashboard_address=None,
        )
        with contextlib.closing(made):
            yield made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_cluster_gives_the_same_result(cluster):
    expected = revelu.extract(NETWORK, seed=1)
    with serving(NETWORK) as server:
        arguments = ["extract", server.url, "--dask", cluster.scheduler_address, "--seed", "1"]
        done = CliRunner().invoke(app, [*arguments, "--json"])
        assert done.exit_code == 0, done.stderr
        assert one_object(done.stdout)["queries"] == expected.ledger.n_queries + 8
        with executor(dask=cluster.scheduler_address) as pool:
            oracle = revelu.open_oracle(server.url, executor=pool)
            assert revelu.extract(oracle, seed=1).network == expected.network


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_lost_worker_costs_time_only(cluster, tmp_path):
    victims = [worker.pid for worker in cluster.workers.values()]
    asked, killed = threading.Event(), threading.Event()

    class Slow(Recording):
        def __call__(self, X):
            if len(X) > 1:  # the server itself asks for one row
                asked.set()
                killed.wait(PATIENCE_SECONDS)
            return super().__call__(X)

    def kill():
        asked.wait(PATIENCE_SECONDS)
        os.kill(victims[0], 9)
        killed.set()

    X = np.random.default_rng(0).standard_normal((600, 12))
    with serving(Slow()) as server, executor(dask=cluster.scheduler_address) as pool:
        target = HttpTarget(server.url)
        oracle = Oracle(target, 12, batch_rows=10, executor=pool)
        oracle.keep(Journal(tmp_path / "run.db"))
        killer = threading.Thread(target=kill)
        killer.start()
        with oracle:
            np.testing.assert_array_equal(oracle(X), NETWORK(X))
            assert oracle.n_queries == oracle.journal.n_queries == 600
        killer.join()
    assert victims[0] not in [worker.pid for worker in cluster.workers.values()]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_absent_cluster_is_named():
    with pytest.raises(InputError, match="no cluster at"), executor(dask="tcp://127.0.0.1:1"):
        pass
