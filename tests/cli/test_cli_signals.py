"""Interrupts in this process: what is raised, what stays as it was."""

import signal
import threading

import pytest

from conftest import PATIENCE_SECONDS
from revelu.cli.exit_codes import ExitCode
from revelu.cli.signals import _EXIT_CODE, raised_interrupts

NUMBERS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


@pytest.fixture
def handled(number):
    """Set the handler of the signal, and bring back the one before."""
    before = signal.getsignal(number)
    yield lambda handler: signal.signal(number, handler)
    signal.signal(number, before)


@NUMBERS
def test_interrupts_are_raised_inside_only(number, handled):
    heard = []
    handled(lambda *_: heard.append(number))
    with pytest.raises(KeyboardInterrupt), raised_interrupts():
        signal.raise_signal(number)
    assert heard == []
    signal.raise_signal(number)
    assert heard == [number]


class Patient:
    """Work that is asked to end."""

    def __init__(self, *, is_under_way=True, is_waiting=False):
        self.is_under_way, self.is_waiting, self.n_asked = is_under_way, is_waiting, 0

    def end(self):
        self.n_asked += 1
        return self.is_under_way


@NUMBERS
def test_work_ends_by_itself_at_the_first_interrupt_and_not_at_the_second(number, handled):
    handled(signal.SIG_DFL)
    work, reached = Patient(), []

    def do():
        signal.raise_signal(number)
        reached.append(work.n_asked)
        signal.raise_signal(number)
        reached.append(work.n_asked)

    with pytest.raises(KeyboardInterrupt), raised_interrupts(work):
        do()
    assert (reached, work.n_asked) == ([1], 1)


@NUMBERS
@pytest.mark.parametrize("work", [Patient(is_waiting=True), Patient(is_under_way=False)])
def test_work_that_waits_or_is_over_is_interrupted(number, handled, work):
    handled(signal.SIG_DFL)
    with pytest.raises(KeyboardInterrupt), raised_interrupts(work):
        signal.raise_signal(number)


@NUMBERS
def test_work_that_does_not_end_is_interrupted(number, handled):
    handled(signal.SIG_DFL)

    def do():
        signal.raise_signal(number)
        threading.Event().wait(PATIENCE_SECONDS)

    with pytest.raises(KeyboardInterrupt), raised_interrupts(Patient(), patience=0.01):
        do()


@NUMBERS
def test_exception_made_of_an_interrupt_is_one(number, handled):
    handled(signal.SIG_DFL)

    def import_something():
        try:
            signal.raise_signal(number)
        except BaseException as error:
            raise ImportError from error

    with pytest.raises(KeyboardInterrupt), raised_interrupts():
        import_something()
    with pytest.raises(ImportError), raised_interrupts():
        raise ImportError


@NUMBERS
def test_interrupt_that_a_finaliser_loses_is_raised_after_it(number, handled):
    handled(signal.SIG_DFL)
    n_lost = 0

    class Dying:
        def __del__(self):
            nonlocal n_lost
            n_lost += 1
            signal.raise_signal(number)

    def work():
        Dying()
        threading.Event().wait(PATIENCE_SECONDS)

    with pytest.raises(KeyboardInterrupt), raised_interrupts():
        work()
    assert n_lost == 1


@NUMBERS
def test_ignored_signal_stays_ignored(number, handled):
    handled(signal.SIG_IGN)
    with raised_interrupts():
        signal.raise_signal(number)
    assert signal.getsignal(number) is signal.SIG_IGN


def test_exit_code_is_that_of_the_contract():
    assert _EXIT_CODE == ExitCode.INTERRUPTED
