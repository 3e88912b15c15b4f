"""How a network does on the inputs that somebody cares about."""

from collections.abc import Sequence

import numpy as np

from revelu.certify.examination import Examination
from revelu.recovery import Fidelity
from revelu.types import BoolArray, FloatArray


def fidelity_of(given: Examination) -> Fidelity:
    """Say how well the network does on the inputs given.

    Parameters
    ----------
    given : Examination
        Of those inputs alone.
    """
    compared = given.is_compared
    errors = np.abs(given.errors[given.is_seen])
    wrong = compared & ~(given.ratio <= 1.0)
    return Fidelity(
        n_inputs=len(given.X),
        max_abs_error=float(errors.max(initial=0.0)),
        fraction_within=float((given.ratio[compared] <= 1.0).mean()) if compared.any() else 0.0,
        labels_equal=_labels_equal(given),
        source=given.source or "inputs given",
        pattern="" if given.rows is None else pattern_of(given.rows, wrong, given.names),
    )


def fidelity_statement(fidelity: Fidelity) -> str:
    """Return the sentence on the inputs given."""
    labels = fidelity.labels_equal
    same = "" if labels is None else f"{100.0 * labels:.4g}%"
    equal = f", the largest output is the same one on {same} of them" if same else ""
    n = fidelity.n_inputs
    n_wrong = round((1.0 - fidelity.fraction_within) * n)
    of = f"of the {n:,} {fidelity.source}"
    if not n_wrong:
        said = f"all {n:,} {fidelity.source} agree"
    else:
        said = f"{n_wrong:,} {of} differ{'s' * (n_wrong == 1)} by more than their tolerance"
    if n == 1:
        said = f"the one of the {fidelity.source} {'differs' if n_wrong else 'agrees'}"
    pattern = f", {fidelity.pattern}" if fidelity.pattern else ""
    return f"{said}{pattern} (largest error {fidelity.max_abs_error:.2g}{equal})"


def pattern_of(
    rows: FloatArray, wrong: BoolArray, names: Sequence[str] = (), *, most_values: int = 10
) -> str:
    """Say what all wrong rows have in common, and most that have it are wrong: columns' values.

    Parameters
    ----------
    rows : ndarray, shape (n, m)
    wrong : ndarray of bool, shape (n,)
    names : sequence of str
        Of the columns; numbers from 0 without.
    most_values : int
        Of a column that is looked at.

    Returns
    -------
    str
        Empty where no column shows it.

    Examples
    --------
    >>> rows = np.array([[0.1, 0], [0.2, 1], [0.3, 1], [0.4, 0]])
    >>> pattern_of(rows, rows[:, 1] == 1, ("age", "sex"))
    'all with sex = 1'
    """
    if not wrong.any() or wrong.all():
        return ""
    said, alike = list[str](), np.ones(len(rows), dtype=bool)
    for j, column in enumerate(rows.T):
        value = column[wrong][0]
        few = len(np.unique(column)) <= most_values
        if few and (column[wrong] == value).all() and (column != value).any():
            name = names[j] if j < len(names) else f"column {j}"
            said.append(f"{name} = {value:g}")
            alike &= column == value
    return f"all with {' and '.join(said)}" if said and wrong[alike].mean() > 0.5 else ""


def _labels_equal(given: Examination) -> float | None:
    """The share of inputs on which network and target have the same largest output."""
    answered = given.answered
    with np.errstate(over="ignore", invalid="ignore"):
        predicted = given.noise.link.head(given.predicted)
    if answered.shape[1] < 2 or not given.has_classes:
        return None
    chosen = predicted.argmax(axis=1)
    # Coarse answers have ties.
    equal = answered[np.arange(len(answered)), chosen] >= answered.max(axis=1)
    return float((equal & np.isfinite(predicted).all(axis=1)).mean())
