"""What ``revelu learn`` prints: samples instead of queries, error bars, signs."""

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from revelu.cli.output import STYLES, Run, describe
from revelu.cli.output import document as document_of_run
from revelu.recovery import Status
from revelu.report.verdicts import VERDICTS


def document(run: Run) -> dict[str, Any]:
    """Return the JSON-able account of what was learned.

    The fields of an extraction, and ``samples``, ``exact``, ``noise``, ``standard_errors``
    (``W``, ``b``, ``A``, ``c`` and, with a skip, ``V``) and ``sign_patterns``.
    """
    details = run.recovery.details
    errors = details.get("standard_errors")
    bars = None
    if errors is not None:
        bars = {name: _rows(value) for name, value in vars(errors).items() if value is not None}
    return {
        **document_of_run(run),
        "samples": details.get("n_samples"),
        "exact": details.get("exact"),
        "noise": details.get("noise"),
        "standard_errors": bars,
        "sign_patterns": [_rows(signs) for signs in details.get("sign_patterns", [])],
    }


def print_learned(run: Run, *, verdict_only: bool = False) -> None:
    """Print what was learned for people.

    Parameters
    ----------
    run : Run
    verdict_only : bool
        Leave out all but the first line.
    """
    recovery = run.recovery
    console = Console(highlight=False, soft_wrap=verdict_only)
    verdict, tone = VERDICTS[recovery.status]
    checks = recovery.certificate
    if recovery.status is Status.UNVERIFIED and checks and checks.fraction_within == 1.0:
        verdict = "NOT certified"
    verdict = verdict.replace("fresh queries", "samples kept apart")
    console.print(Text.assemble(f"{run.target}: ", (verdict, STYLES[tone])))
    if verdict_only:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _lines(run):
        table.add_row(label, Text(text))
    console.print(table)


def _lines(run: Run) -> list[tuple[str, str]]:
    recovery, details = run.recovery, run.recovery.details
    lines = []
    if recovery.network is not None:
        lines.append(("network", describe(recovery.network, recovery.status)))
    if recovery.certificate is not None:
        lines.append(("certificate", recovery.certificate.statement))
    lines.append(("samples", f"{details.get('n_samples', 0):,}"))
    if not details.get("exact", True):
        lines.append(("noise", f"{details['noise']:.2g}"))
    errors = details.get("standard_errors")
    if errors is not None and errors.b.size:
        lines.append(("error bars", f"weights {errors.W.max():.1g}, biases {errors.b.max():.1g}"))
    lines.append(("time", f"{run.seconds:.1f} s"))
    lines += [("evidence", text) for text in recovery.evidence]
    lines += [("warning", text) for text in run.warnings]
    mark = "" if recovery.status.value == "recovered" else " (not certified)"
    return lines + [("written", f"{path}{mark}") for path in run.outputs]


def _rows(value: np.ndarray) -> list[Any]:
    return list(value.tolist())
