"""What was found until something unforeseen ended a task: an interrupt, or a defect."""

from revelu.recovery import Result

_NAME = "partial"


def keep_partial(error: BaseException, found: Result) -> None:
    """Put what was found on what ended the task: who catches it has it as ``error.partial``."""
    error.__dict__[_NAME] = found


def partial_of(error: BaseException) -> Result | None:
    """Return what a task found that ``error`` ended; None where it was nothing."""
    found = error.__dict__.get(_NAME)
    return found if isinstance(found, Result) else None
