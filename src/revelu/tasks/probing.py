"""Probe: three rows to a target, and what came back, before anything is begun."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revelu.adapters.credentials import shown
from revelu.adapters.error_pages import first_complaint
from revelu.errors import TargetError
from revelu.oracle import Oracle
from revelu.oracle.grid import nearest_float32
from revelu.oracle.numbers import are_written_float32
from revelu.oracle.whole_columns import in_whole_numbers
from revelu.recovery import Result
from revelu.tasks.job import open_target, random_seeds
from revelu.types import FloatArray


@dataclass(frozen=True)
class Probe(Result):
    """What three rows were answered.

    Attributes
    ----------
    dim_in : int
    asked : ndarray, shape (3, d)
        In the target's own units.
    taken : ndarray, shape (3, k), or None
        What was understood; None where nothing was.
    precision : str
        What numbers the answers are, as far as so few tell.
    request, answer : str or None
        The last request and what came back, shortened and without secrets; None of a target that
        is not behind an address.
    headers : mapping of str to str
        Of the request; variables stand for secrets.
    n_requests : int
    seconds : float
        Of a request, on average; of a target that is not behind an address, of the three rows.
    error : str
        Why nothing was understood.
    options : tuple of str
        Of the command line, with which it would be, as far as that is known.
    """

    dim_in: int
    asked: FloatArray
    taken: FloatArray | None
    precision: str
    request: str | None
    answer: str | None
    headers: dict[str, str]
    n_requests: int
    seconds: float
    error: str = ""
    options: tuple[str, ...] = ()


def probe_target(target: Any, seed: int = 0, n: int = 3, **options: Any) -> Probe:
    """Ask a target for a few rows, and show what happened.

    Parameters
    ----------
    target : Oracle, Endpoint, callable or str
    seed : int
        Decides the rows.
    n : int
        How many they are.
    **options
        As of :func:`revelu.open_oracle`.

    Raises
    ------
    InputError
        If the target cannot be opened.
    TargetError
        If it cannot be reached.
    """
    oracle = open_target(target, seed, None, **options)
    oracle.declare(command="probe", seed=int(seed))
    exchanges: list[Any] = []
    if oracle.client is not None:
        oracle.client.listener = exchanges.append
    rng = np.random.default_rng(random_seeds("probe", seed))
    low, high = oracle.box or (-np.inf, np.inf)
    Z: FloatArray = rng.standard_normal((n, oracle.dim_in)).clip(low, high)

    def ask() -> tuple[FloatArray, FloatArray]:
        rows = Z[:, : oracle.dim_in]
        with oracle.phase("noise"):
            return rows, oracle(rows)

    began, taken = time.monotonic(), None
    failed: TargetError | None = None
    try:
        Z, taken = in_whole_numbers(oracle, ask)
    except TargetError as failure:
        # What did arrive says more than the failure does.
        if not exchanges:
            raise
        failed = failure
    seconds = time.monotonic() - began
    return _account(oracle, Z, taken, exchanges, seconds, failed)


def _account(
    oracle: Oracle,
    Z: FloatArray,
    taken: FloatArray | None,
    exchanges: Sequence[Any],
    seconds: float,
    failed: TargetError | None,
) -> Probe:
    # A refusal says more than what was asked after it, to see where limits are.
    refusals = [exchange for exchange in exchanges if exchange.reply.status >= 400]
    told = refusals if failed is not None and refusals else exchanges
    last = told[-1] if told else None
    if last is not None:
        seconds = sum(exchange.seconds for exchange in exchanges) / len(exchanges)
    return Probe(
        None,
        ledger=oracle.ledger(),
        dim_in=oracle.dim_target,
        asked=Z if oracle.domain is None else oracle.domain.to_target(Z),
        taken=taken,
        precision="" if taken is None else _seen(oracle, taken),
        request=None if last is None else shown(_request(last), most=2000),
        answer=None if last is None else shown(_answer(last), most=2000),
        headers={} if last is None else dict(last.headers),
        n_requests=len(exchanges),
        seconds=seconds,
        error="" if failed is None else f"{failed}",
        options=() if failed is None else failed.options,
        warnings=() if oracle.domain is None else oracle.domain.notes,
    )


def _seen(oracle: Oracle, taken: FloatArray) -> str:
    names = oracle.names
    if not names:
        return precision_of(taken)
    found = ", ".join(dict.fromkeys(names.name(number) for number in taken.ravel().tolist()))
    return f"names of classes, {found}: recovered as labels (revelu extract, or span --labels)"


def _request(exchange: Any) -> str:
    return f"{exchange.method} {exchange.url} {_text(exchange.content)}"


def _answer(exchange: Any) -> str:
    reply = exchange.reply
    content = first_complaint(reply.content) if reply.status >= 400 else reply.content
    return f"{reply.status} {_text(content)}"


def _text(content: bytes) -> str:
    """A body as text, and of binary tensors how long they are."""
    try:
        text, rest = content.decode(), 0
    except UnicodeDecodeError:
        # Tensors follow the JSON object.
        end = content.find(b"]}") + 2
        text, rest = content[:end].decode(errors="replace"), len(content) - end
    return f"{text} and {rest:,} bytes" if rest else text


def precision_of(Y: FloatArray, most_digits: int = 12) -> str:
    """Say what numbers a few answers are.

    Parameters
    ----------
    Y : ndarray, shape (n, k)
    most_digits : int
        Significant decimal digits of numbers that were rounded; others have 16 or 17.
    """
    if len(Y) > 1 and (Y[0] == Y).all():
        return (
            f"all {len(Y)} answers are the same: of these nothing can be told; inputs like the "
            "model's own tell more (--like DATA)"
        )
    if np.array_equal(Y, np.rint(Y)):
        return "whole numbers: labels, perhaps"
    if are_written_float32(Y, least=2):
        return "float32 numbers, in decimals"
    digits = max(_significant(y) for y in Y.ravel().tolist())
    if digits <= most_digits:
        return f"at most {digits} significant digits"
    return "float32 numbers" if np.array_equal(nearest_float32(Y), Y) else "float64 numbers"


def _significant(y: float) -> int:
    """Digits that it takes to write a number down."""
    mantissa = f"{y!r}".lower().partition("e")[0]
    return len(mantissa.replace(".", "").lstrip("-0").rstrip("0")) or 1
