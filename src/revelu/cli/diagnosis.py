"""What ``revelu diagnose`` prints: one JSON object, or tables for people."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from revelu.cli.output import SCHEMA, versions
from revelu.network.regularity import Condition, Regularity
from revelu.tasks.diagnose.diagnosis import Diagnosis


@dataclass(frozen=True)
class Examination:
    """A finished diagnosis and what surrounds it.

    Attributes
    ----------
    target : str
    diagnosis : Diagnosis
    seconds : float
        Wall-clock time.
    seed : int
    outputs : sequence of str
        Files written.
    warnings : sequence of str
        The diagnosis's and the command's own.
    """

    target: str
    diagnosis: Diagnosis
    seconds: float
    seed: int
    outputs: Sequence[str]
    warnings: Sequence[str]


def document(run: Examination) -> dict[str, Any]:
    """Return the JSON-able account of a diagnosis."""
    found = run.diagnosis
    network, noise, risk = found.network, found.noise, found.at_risk
    top, digits = found.top_layers, found.precision
    return {
        "schema": SCHEMA,
        "target": run.target,
        "status": "finished" if found.status is None else found.status.value,
        "architecture": None if network is None else list(network.architecture),
        "parameters": None if network is None else network.n_parameters,
        "softmax": found.probabilities,
        "noise": None if noise is None else {"law": noise.law, "nu": float(noise.nu.max())},
        "delta": found.delta,
        "at_risk": None if risk is None else risk.name,
        "measured": _regularity(found.measured),
        "exact": _regularity(found.exact),
        "precision": None
        if digits is None
        else {**dataclasses.asdict(digits), "digits_lost": digits.digits_lost},
        "top_layers": None if top is None else dataclasses.asdict(top),
        "query_counts": dict(found.query_counts),
        "perturbation": _perturbation(found),
        "queries": found.ledger.n_queries,
        "rounds": found.ledger.n_rounds,
        "by_phase": dict(found.ledger.by_phase),
        "seconds": run.seconds,
        "seed": run.seed,
        "versions": versions(),
        "evidence": list(found.evidence),
        "warnings": list(run.warnings),
        "outputs": list(run.outputs),
    }


def _regularity(found: Regularity | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "delta": found.delta,
        "axes": found.n_axes,
        "kinks": found.n_kinks,
        "hyperplanes": found.n_hyperplanes,
        "conditions": [dataclasses.asdict(condition) for condition in found.conditions],
    }


def _perturbation(found: Diagnosis) -> dict[str, Any] | None:
    if found.perturbed is None or found.exact is None:
        return None
    return {
        "amplitude": found.perturbed.amplitude,
        "lemma_amplitude": found.perturbed.lemma_amplitude,
        "failure_bound": found.perturbed.failure_bound,
        "before": _regularity(found.exact),
        "after": _regularity(found.perturbed.regularity),
    }


def print_diagnosis(run: Examination, *, verdict_only: bool = False) -> None:
    """Print a diagnosis for people: the verdict, the conditions, then what follows.

    Parameters
    ----------
    run : Examination
    verdict_only : bool
        Leave out all but the first line.
    """
    console = Console(highlight=False, soft_wrap=verdict_only)
    verdict, style = _verdict(run.diagnosis)
    console.print(Text.assemble(f"{run.target}: ", (verdict, style)))
    if verdict_only:
        return
    columns = _columns(run.diagnosis)
    if columns:
        console.print(_conditions(columns))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in _rows(run):
        table.add_row(label, Text(text))
    console.print(table)


def _verdict(found: Diagnosis) -> tuple[str, str]:
    if found.delta is None:
        reason = "figures are missing" if found.status is None else found.status.value
        return f"not diagnosed: {reason.replace('_', ' ')}", "bold red"
    if found.delta == 0.0:
        verdict, style = "not regular", "bold yellow"
    else:
        verdict, style = f"regular with delta {found.delta:.2g}", "bold green"
    if found.status is not None:
        return f"{verdict}, as far as was seen ({found.status.replace('_', ' ')})", "bold yellow"
    return verdict, style


def _columns(found: Diagnosis) -> dict[str, Regularity]:
    """Every set of figures there is, by its heading."""
    after = None if found.perturbed is None else found.perturbed.regularity
    sets = {"by queries": found.measured, "from weights": found.exact, "perturbed": after}
    return {heading: figures for heading, figures in sets.items() if figures is not None}


def _conditions(columns: dict[str, Regularity]) -> Table:
    """One row a condition of Definition 1, with its delta in every column."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("condition", no_wrap=True)
    for heading in columns:
        table.add_column(heading, no_wrap=True)
    table.add_column("what was seen", overflow="fold")
    fullest = max(columns.values(), key=lambda r: len(r.conditions))
    for condition in (columns.get("from weights") or fullest).conditions:
        cells = [_cell(figures, condition.name) for figures in columns.values()]
        label = f"{condition.number} {condition.name.replace('_', ' ')}"
        table.add_row(label, *cells, Text(condition.text))
    return table


def _cell(figures: Regularity, name: str) -> str:
    condition: Condition | None = next((c for c in figures.conditions if c.name == name), None)
    if condition is None or condition.holds is None:
        return "-"
    if condition.holds is False:
        return "fails"
    if condition.delta is None:
        return "holds"
    return f"{'<= ' if condition.at_most else ''}{condition.delta:.2g}"


def _rows(run: Examination) -> list[tuple[str, str]]:
    """Label and text of each line under the conditions."""
    found, ledger = run.diagnosis, run.diagnosis.ledger
    rows = [("evidence", text) for text in found.evidence]
    rows += _assumption_rows(found)
    orders = [
        f"Theorem {name[-1]} {count:,.0f}" for name, count in found.query_counts.items() if count
    ]
    if orders:
        rows.append(("theorems", f"{', '.join(orders)} queries, were every constant 1"))
    rows.append(("queries", f"{ledger.n_queries:,} in {ledger.n_rounds:,} rounds"))
    rows.append(("time", f"{run.seconds:.1f} s"))
    rows += [("warning", text) for text in run.warnings]
    rows += [("written", path) for path in run.outputs]
    return rows


def _assumption_rows(found: Diagnosis) -> list[tuple[str, str]]:
    """What the theorems ask beside regularity, and what smoothing did."""
    rows = []
    if (top := found.top_layers) is not None:
        state = "vanish somewhere" if top.gradients_vanish else "never vanish"
        text = (
            f"gradients {state} (margin {top.margin:.2g}); Theorem 5 promises that they do not "
            f"with probability {top.probability:.3g} for such widths"
        )
        rows.append(("top layers", text))
    if (changed := found.perturbed) is not None and found.exact is not None:
        text = (
            f"delta {found.exact.delta:.2g} before, {changed.regularity.delta:.2g} after noise of "
            f"{changed.amplitude:g} (Lemma 2: {changed.lemma_amplitude:.1g})"
        )
        if changed.failure_bound is not None:
            text += f"; Lemmas 6 and 7 bound the chance of less by {changed.failure_bound:.2g}"
        rows.append(("perturbed", text))
    return rows
