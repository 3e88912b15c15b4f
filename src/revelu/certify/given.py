"""How a network does on the inputs that somebody cares about."""

import numpy as np

from revelu.certify.examination import Examination
from revelu.recovery import Fidelity


def fidelity_of(given: Examination) -> Fidelity:
    """Say how well the network does on the inputs given.

    Parameters
    ----------
    given : Examination
        Of those inputs alone.
    """
    compared = given.is_compared
    errors = np.abs(given.errors[given.is_seen])
    return Fidelity(
        n_inputs=len(given.X),
        max_abs_error=float(errors.max(initial=0.0)),
        fraction_within=float((given.ratio[compared] <= 1.0).mean()) if compared.any() else 0.0,
        labels_equal=_labels_equal(given),
    )


def fidelity_statement(fidelity: Fidelity) -> str:
    """Return the sentence on the inputs given."""
    labels = fidelity.labels_equal
    same = "" if labels is None else f"{100.0 * labels:.4g}%"
    equal = f", the largest output is the same one on {same} of them" if same else ""
    n = fidelity.n_inputs
    which = "the input" if n == 1 else f"the {n:,} inputs"
    return (
        f"of {which} given {_percent(1.0 - fidelity.fraction_within)} differ by more than "
        f"their tolerance (largest error {fidelity.max_abs_error:.2g}{equal})"
    )


def _labels_equal(given: Examination) -> float | None:
    """The share of inputs on which network and target have the same largest output."""
    answered, predicted = given.answered, given.predicted
    if given.noise.of_log_ratios:
        predicted = np.column_stack([predicted, np.zeros(len(predicted))])
    if answered.shape[1] < 2 or not given.has_classes:
        return None
    chosen = predicted.argmax(axis=1)
    # Coarse answers have ties.
    equal = answered[np.arange(len(answered)), chosen] >= answered.max(axis=1)
    return float((equal & np.isfinite(predicted).all(axis=1)).mean())


def _percent(fraction: float) -> str:
    if fraction >= 0.995:
        return "100%"
    return "none" if fraction == 0.0 else f"{100 * fraction:.2g}%"
