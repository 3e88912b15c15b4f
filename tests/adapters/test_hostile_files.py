"""Mutated files, in archives with sums that fit, are refused or opened, and nothing else."""

import queue
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

SUFFIXES = (
    *(".onnx", ".npz", ".safetensors", ".pt"),
    *(".pkl", ".joblib", ".h5", ".keras", ".tflite", ".zip", ".mat", ".nnet"),
)
FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def hostile_files(monkeypatch):
    """The benchmark that makes the mutants."""
    monkeypatch.syspath_prepend(str(FOLDER))
    # Hooks of the interpreter stay for good: none is set here.
    module = __import__("hostile_files")
    monkeypatch.setattr(module, "watch", lambda *_: None)
    monkeypatch.setattr("os.fsync", lambda _: None)
    yield module
    for name in ("hostile_files", "page"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.filterwarnings("ignore")  # of models that are fitted to be mutated
def test_mutants_are_refused_or_opened(hostile_files, suffix):
    if suffix in {".h5", ".keras"}:
        pytest.importorskip("pyfive")
    found = queue.Queue()
    hostile_files.work(suffix, 0, 60, SimpleNamespace(value=0), found)
    counts, faults, _ = found.get()
    faults = [fault for fault in faults if "bytes" not in fault]  # the tests' own memory
    assert not faults
    assert sum(counts.values()) == 60
    assert counts["refused"] > 30


def test_what_is_looked_for_is_found(hostile_files, tmp_path, monkeypatch):
    def fail(_):
        raise RuntimeError("no ReveluError")

    monkeypatch.setattr(hostile_files, "_read", fail)
    assert "RuntimeError" in hostile_files.attack(tmp_path / "x.npz", b"")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_thousand_mutants_of_each_format_in_processes_of_their_own(hostile_files, suffix):
    outcome = hostile_files.run(suffix, 0, 1000)
    assert not outcome.faults
    assert outcome.refused + outcome.opened == 1000
