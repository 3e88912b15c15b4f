"""Many requests at a time: the same result, and a lost worker costs time alone."""

import contextlib
import os
import signal
import socket
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import PATIENCE_SECONDS, one_object
from revelu.adapters.executors import Cluster, check_greeting, executor
from revelu.adapters.http import HttpTarget
from revelu.cli.app import app
from revelu.errors import InputError, TargetError
from revelu.oracle import Journal, Oracle
from revelu.oracle.asking import request_sizes
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


@pytest.mark.filterwarnings("ignore")
def test_absent_cluster_is_named():
    pytest.importorskip("distributed")
    with pytest.raises(TargetError, match="no cluster at"), executor(dask="tcp://127.0.0.1:1"):
        pass
    with pytest.raises(InputError, match="no cluster at"), executor(dask="tcp://127.0.0.1:x"):
        pass


@pytest.mark.parametrize("greeting", [b"", b"SSH-2.0-OpenSSH_9.6\r\n"])
def test_port_of_another_program_is_no_cluster(greeting):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"

        def greet():
            connection, _ = listener.accept()
            # Whoever goes with something unread resets the connection.
            with connection, contextlib.suppress(ConnectionError):
                connection.sendall(greeting)
                connection.recv(1)  # until the other side has gone

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(TargetError, match="is no scheduler of Dask"):
            check_greeting(address, patience=0.3)
        thread.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_cluster_without_workers_is_said_and_ends(caplog):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=1,
            host="127.0.0.1",
            dashboard_address=None,
            worker_dashboard_address=None,
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        pool = Cluster(client, "here", silence=0.5, patience=1.5)
        assert pool.n_workers >= 1
        oracle = Oracle(NETWORK, 12, executor=pool)
        np.testing.assert_array_equal(oracle(np.zeros((4, 12))), NETWORK(np.zeros((4, 12))))
        # All are lost while a question is on its way.
        made.scale(0)
        with pytest.raises(TargetError, match="the cluster at here has had no worker for"):
            oracle(np.zeros((4, 12)))
        with pytest.raises(TargetError, match="no worker"):
            Cluster(client, "here", silence=0.2, patience=0.5)
    assert "no worker at here for" in caplog.text
    assert "waiting" in caplog.text


@pytest.mark.parametrize(
    ("n", "batch_rows", "parts", "sizes"),
    [
        (3000, 1024, 1, [1024, 1024, 952]),
        (3000, 1024, 4, [750] * 4),
        (5000, 1024, 4, [625] * 8),
        (5, 1024, 4, [2, 2, 1]),
        (1, 1024, 4, [1]),
        (64, 32, 8, [8] * 8),
    ],
)
def test_rounds_are_shared_out_evenly(n, batch_rows, parts, sizes):
    assert request_sizes(n, batch_rows, parts=parts) == sizes
    assert sum(sizes) == n


def test_workers_have_a_third_of_the_rows_to_wait_for():
    """Where rows cost the same, a round takes as long as its largest share."""
    asked = Recording()
    with executor(4) as pool, revelu.open_oracle(asked, executor=pool) as oracle:
        rounds, plain = [], oracle._ask_fresh

        def ask(batches, fresh, answers):
            if oracle.rows_a_request is None:
                assert len(batches) <= 4
                rounds.append(max(len(batch) for batch in batches))
            else:  # of many small requests none waits for long
                rounds.append(sum(len(batch) for batch in batches) / 4)
            plain(batches, fresh, answers)

        oracle._ask_fresh = ask
        found = revelu.extract(oracle, seed=1)
    assert found.status is revelu.Status.RECOVERED
    assert found.ledger.n_queries >= 3.2 * sum(rounds)
    assert abs(found.ledger.n_queries / revelu.extract(NETWORK, seed=1).ledger.n_queries - 1) < 0.01


def test_journal_keeps_how_rounds_are_cut(tmp_path):
    journal = tmp_path / "run.db"
    first = Recording()
    with executor(3) as pool, revelu.open_oracle(first, executor=pool, journal=journal) as oracle:
        expected = revelu.extract(oracle, seed=1)
    for n_workers in (1, 2):
        silent = Recording()
        with (
            executor(n_workers) as pool,
            revelu.open_oracle(silent, executor=pool, journal=journal) as oracle,
        ):
            assert revelu.extract(oracle, seed=1).network == expected.network
        assert silent.cuts == []


def test_what_is_no_executor_is_refused():
    with pytest.raises(InputError, match=r"executor must be a concurrent.futures.Executor, got 3"):
        revelu.open_oracle(lambda X: X.sum(axis=1), 3, executor=3)
