"""Exceptions: what is raised at the edge of the library.

A target that cannot be recovered is not an exception but a
:class:`revelu.Status`.  What is raised here is a bad argument, a bad file, or a
target that answers nonsense.  Every class derives from :class:`ReveluError`.
"""

from typing import Any


class ReveluError(Exception):
    """Base class of everything that revelu raises on purpose.

    Attributes
    ----------
    n_unsent : int
        Rows of a batch that failed, and that no request had carried by then: they were not asked.
    """

    n_unsent = 0


class InputError(ReveluError, ValueError):
    """An argument, an input array or an option that makes no sense."""


class FormatError(InputError):
    """A file that cannot be read or written, or does not hold a network."""


class DamagedError(FormatError):
    """A file that is not whole, or not what its name says: no program should open it as it is."""


class UntrustedError(InputError):
    """A target whose opening would execute code, opened without trust."""


class HostileError(UntrustedError):
    """A file that names what no model is made of, such as ``os.system``: nobody should open it."""


class MissingExtraError(ReveluError, ImportError):
    """An optional dependency is needed and absent; the message names the extra."""


class TargetError(ReveluError):
    """The target is unreachable or answered nonsense (NaN, infinite, wrong shape).

    Attributes
    ----------
    options : tuple of str
        Of the command line, with which it would be understood, as far as that is known.
    """

    options: tuple[str, ...] = ()


class UnansweredError(TargetError):
    """A row that the target does not answer, or not by finite numbers, however often it is asked.

    Parameters
    ----------
    row : int, optional
        Its place in what was asked.

    Attributes
    ----------
    asked : ndarray, shape (n, d), or None
        What was asked, as far as that is known.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.asked: Any = None


class WholeNumbersError(UnansweredError):
    """A row that is refused since some column takes whole numbers alone."""


class ChangedError(TargetError):
    """A row asked again is answered otherwise: what was asked belongs to two targets."""


class DependsOnBatchError(TargetError):
    """Beside other rows a row is answered otherwise, by more than rounding: that is no function.

    Attributes
    ----------
    apart : float
        How far answers to one row lie apart at most, in units of the output.
    """

    apart = float("nan")


class SaturatedError(TargetError):
    """Wherever a target was asked, some class has a probability without digits."""


class CurvedError(TargetError):
    """On segments a target has no affine pieces that can be resolved.

    Solvers catch it: such a target is not in the class.
    """


class LimitReachedError(ReveluError):
    """The budget of queries or of seconds forbids the next batch.

    Solvers catch it and return what they have; it reaches a caller only from a
    bare ``oracle(X)``.

    Attributes
    ----------
    heard : str
        What the target did at the last, where it failed and there was no time to ask again.
    """

    heard = ""
