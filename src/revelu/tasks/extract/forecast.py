"""What an extraction is expected to need, before it starts.

How many neurons a target has is not known, so that nothing but a range can be said, for one hidden
layer of a certain width.
"""

from dataclasses import dataclass

import numpy as np

from revelu.recover.method import Method


@dataclass(frozen=True)
class Forecast:
    """What one hidden layer would take; more of them take more.

    Attributes
    ----------
    width : int
        Neurons.
    n_queries : (int, int)
        Fewest and most, without those of the certificate.
    n_checks : int
        Those of the certificate.
    seconds : float or None
        What the answers to the most queries take, at the pace of the first ones; None where that
        is not known.
    """

    width: int
    n_queries: tuple[int, int]
    n_checks: int
    seconds: float | None

    def in_all(self, n_before: int) -> tuple[int, int]:
        """Fewest and most queries, those already asked and those of the certificate included."""
        least, most = self.n_queries
        others = n_before + self.n_checks
        return others + least, others + most

    def __str__(self) -> str:
        least, most = self.n_queries
        said = (
            f"some {least:,} to {most:,} queries if there is one hidden layer of {self.width} "
            f"neurons, fewer for fewer, and {self.n_checks:,} to verify"
        )
        if self.seconds is not None:
            said += f"; answers take up to {_duration(self.seconds)} at the pace of the first"
        return f"{said}; more hidden layers take more"


def forecast(
    method: Method,
    dim_in: int,
    dim_out: int,
    n_checks: int,
    pace: float | None,
    *,
    width: int = 100,
) -> Forecast | None:
    """Foretell what a method takes; None where nothing is known of it.

    Parameters
    ----------
    method : Method
    dim_in, dim_out : int
        Of the target.
    n_checks : int
        Of the certificate.
    pace : float or None
        Seconds a query.
    width : int
        Neurons that there may be.
    """
    if method.spends is None:
        return None
    n_parameters = width * (dim_in + 1 + dim_out) + dim_out
    fewest, most = (per_parameter * n_parameters for per_parameter in method.spends)
    most = most / dim_out if method.spends_fewer else most
    n_queries = (_two_digits(fewest / dim_out), _two_digits(most))
    seconds = None if pace is None else pace * (n_queries[1] + n_checks)
    return Forecast(width, n_queries, n_checks, seconds)


def _two_digits(n: float) -> int:
    """Round to two digits: no more are known."""
    return int(round(n, 1 - int(np.floor(np.log10(n))))) if n >= 100 else int(np.ceil(n))


def _duration(seconds: float) -> str:
    """Return a duration in words, no finer than it is known."""
    for size, unit in ((3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds" if seconds >= 2.0 else f"{max(seconds, 0.1):.1f} seconds"
