"""What ``revelu diagnose`` says: fields of an account, tables for people."""

import dataclasses
from typing import Any

from revelu.network.regularity import Regularity
from revelu.tasks.diagnose.diagnosis import Diagnosis


def fields_of(found: Diagnosis) -> dict[str, Any]:
    """Return what an account says of a diagnosis."""
    network, noise, risk = found.network, found.noise, found.at_risk
    top, digits = found.top_layers, found.precision
    return {
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


def rows_of(found: Diagnosis) -> list[tuple[str, str]]:
    """Return what the theorems ask beside regularity, and what smoothing did."""
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
    orders = [
        f"Theorem {name[-1]} {count:,.0f}" for name, count in found.query_counts.items() if count
    ]
    if orders:
        rows.append(("theorems", f"{', '.join(orders)} queries, were every constant 1"))
    return rows
