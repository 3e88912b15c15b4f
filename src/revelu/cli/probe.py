"""``revelu probe``: three rows to a target, and what came back."""

import shlex
import sys
from typing import Any

from revelu.cli.command import Asking, command
from revelu.cli.exit_codes import ExitCode
from revelu.cli.options import Box


@command
def probe(box: Box = None, *, asking: Asking) -> ExitCode:
    """Ask TARGET for three rows, and show request, answer, and what was taken of it.

    Beside "next" stands the command that goes on, where what was seen tells it.

    Example:
      revelu probe https://HOST/v2/models/NAME

    Exit codes:
      0  the answer was understood
      2  usage or bad input
      3  budget or time exhausted
      4  target unreachable, or it answered nonsense
    130  interrupted
    """
    from revelu.tasks.probing import probe_target

    asking.reserve([])
    with asking.opened(box) as oracle:
        found = probe_target(oracle, seed=asking.seed)
    taken = None if found.taken is None else found.taken.tolist()
    own: dict[str, Any] = {
        "error": found.error or None,
        "inputs": found.dim_in,
        "answers": None if found.taken is None else found.taken.shape[1],
        "request": found.request,
        "answer": found.answer,
        "headers": found.headers,
        "requests": found.n_requests,
        "asked": found.asked.tolist(),
        "taken": taken,
        "precision": found.precision or None,
        "seconds_a_request": found.seconds,
        "next": _next(asking.command_line, found.options, understood=not found.error),
    }
    account = asking.account(asking.target, found, own)
    if found.error:
        account["status"] = "error"
        sys.stderr.write(f"revelu: {' '.join(found.error.split())}\n")
    asking.show(account, _rows(account))
    return ExitCode.TARGET if found.error else ExitCode.CERTIFIED


def _next(line: str, options: tuple[str, ...], *, understood: bool) -> str | None:
    """The command that goes on; None where it is not known which one does."""
    if not (understood or options):
        return None
    name, _, *words = shlex.split(line)
    kept = [word for word in words if word not in _FORMS]
    if options and options[0] in kept:  # in place of what was given
        place = kept.index(options[0])
        del kept[place : place + len(options)]
    return shlex.join([name, "extract", *kept, *options])


# Options of what is printed.
_FORMS = {"--json", "--csv", "--quiet", "--verbose"}


def _rows(account: dict[str, Any]) -> list[tuple[str, str]]:
    """What was sent, what came back, what was taken of it."""
    import numpy as np

    rows = []
    if account["request"] is not None:
        rows.append(("request", account["request"]))
        rows += [("header", f"{name}: {value}") for name, value in account["headers"].items()]
        rows.append(("answer", account["answer"]))
    taken = account["taken"]
    if taken is not None:
        texts = [np.array2string(np.array(row), precision=17, threshold=8) for row in taken]
        rows.append(("taken", "\n".join(texts)))
        n, d, k = len(taken), account["inputs"], account["answers"]
        rows += [("shape", f"({n}, {d}) to ({n}, {k})"), ("precision", account["precision"])]
    each = f", {account['seconds_a_request']:.3f} s each" if account["requests"] else ""
    rows += [("requests", f"{account['requests']:,}{each}")] if each else []
    return [*rows, ("next", account["next"])] if account["next"] else rows
