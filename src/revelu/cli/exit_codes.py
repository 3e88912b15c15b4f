"""What the process tells the shell."""

from enum import IntEnum

from revelu.errors import LimitReachedError, ReveluError, TargetError
from revelu.status import Status


class ExitCode(IntEnum):
    """Exit codes of every command; scripts rely on them."""

    CERTIFIED = 0
    """Recovered and certified; or, where nothing is recovered, finished."""
    NOT_CERTIFIED = 1
    """Finished, not certified.  What was found, if anything, is still written."""
    USAGE = 2
    """A command line, a file or an argument that makes no sense; no standard output."""
    EXHAUSTED = 3
    """The budget of queries or of seconds ran out.  What was found is written, too."""
    TARGET = 4
    """The target is unreachable or answered nonsense."""
    GIVEN_AWAY = 5
    """An audit finds that more is given away than ``--fail-on`` allows."""
    INTERRUPTED = 130
    """SIGINT or SIGTERM."""


def of_status(status: Status) -> ExitCode:
    """Return the exit code of a finished recovery."""
    if status is Status.RECOVERED:
        return ExitCode.CERTIFIED
    if status is Status.BUDGET_EXHAUSTED:
        return ExitCode.EXHAUSTED
    return ExitCode.NOT_CERTIFIED


def of_error(error: ReveluError) -> ExitCode:
    """Return the exit code of an error."""
    if isinstance(error, TargetError):
        return ExitCode.TARGET
    if isinstance(error, LimitReachedError):
        return ExitCode.EXHAUSTED
    return ExitCode.USAGE
