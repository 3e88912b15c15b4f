"""What labels alone show of a target: how many classes there are, and whether they change."""

import numpy as np

from revelu.oracle import Oracle
from revelu.oracle.labels import as_labels
from revelu.tasks.diagnose.kind import Kind


def kind_of_labels(
    oracle: Oracle, rng: np.random.Generator, *, n: int = 1000, shown: int = 12
) -> tuple[Kind, str]:
    """Ask for labels twice; say what they are, and which of them changed, if any did.

    Parameters
    ----------
    n : int
        Inputs of N(0, I); a class of a hundredth of them is missed once in 20,000 times.
    shown : int
        Classes that are named.

    Raises
    ------
    LimitReachedError
        If the budget or the time ends first.
    """
    oracle.names.are_expected = True
    X = rng.standard_normal((n, oracle.dim_in))
    with oracle.phase("noise"), oracle.as_answered():
        first, again = (as_labels(oracle(X))[:, 0] for _ in range(2))
    classes, counts = np.unique(first, return_counts=True)
    name = oracle.names.name if oracle.names else "{:g}".format
    shares = [f"{name(c)} at {m / n:.1%}" for c, m in zip(classes, counts, strict=True)]
    said = f"labels of {len(classes)} class{'es' * (len(classes) > 1)} at {n:,} inputs: "
    said += ", ".join(shares[:shown]) + (", ..." if len(shares) > shown else "")
    kind = Kind(function="steps", extract_with="--labels", evidence=(said,), n_queries=2 * n)
    changed = int((first != again).sum())
    return kind, f"{changed} of {n:,} inputs got another label when asked again" * bool(changed)
