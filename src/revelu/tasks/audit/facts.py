"""What a target is, in words."""

import numpy as np
from scipy.special import betainc

from revelu.network import Network
from revelu.oracle import Domain, NoiseFloor
from revelu.oracle.labels import are_labels
from revelu.recovery import Status
from revelu.tasks.audit.attack import Finding
from revelu.tasks.audit.reference import Reference
from revelu.tasks.diagnose.kind import Kind
from revelu.tasks.units import network_in_coordinates
from revelu.types import FloatArray


def facts(
    noise: NoiseFloor | None,
    first: Finding | None,
    reason: str = "",
    known: Reference | None = None,
    kind: Kind | None = None,
    domain: Domain | None = None,
) -> dict[str, str]:
    """Say what a target is, and whether it shows that it was trained against extraction.

    Parameters
    ----------
    noise : NoiseFloor or None
        None where it could not be measured, for ``reason``.
    first : Finding or None
        Of the answers as they are.
    known : Reference or None
    kind : Kind or None
        What the target looks like of which no network was found.
    domain : Domain, optional
        Neurons are alike where it says that inputs are: in units of one column beside another's
        that are a thousand times as large any two are.
    """
    copy = None if first is None else first.copy
    said = similar_neurons(None if copy is None else network_in_coordinates(copy, domain))
    trained = {"similar neurons": said} if said else {}
    return {**_seen(noise, first, reason, known, kind), **trained}


def similar_neurons(
    network: Network | None, least: float = 0.99, false_alarm: float = 1e-3, most: int = 6
) -> str:
    """Name neurons of a first layer that look alike, as a training against extraction makes them.

    Parameters
    ----------
    network : Network or None
        What was recovered.
    least : float
        Cosine of two rows, their biases included, that are called alike: 8 degrees apart.
    false_alarm : float
        Chance that any two of as many rows in random directions are as near as two that are named.
    most : int
        Pairs that are named.
    """
    if network is None or len(network.weights) < 2 or len(network.weights[0]) < 2:
        return ""
    rows = np.column_stack([network.weights[0], network.biases[0]])
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
    i, j = np.triu_indices(len(rows), 1)
    cosines = np.abs((rows[i] * rows[j]).sum(axis=1)).clip(max=1.0)
    # The share of a sphere of D dimensions within an angle of a line through its centre.
    share = betainc((rows.shape[1] - 1) / 2, 0.5, 1.0 - cosines**2)
    found = np.flatnonzero((cosines >= least) & (len(i) * share <= false_alarm))
    if not len(found):
        return ""
    found = found[np.argsort(-cosines[found])]
    degrees = np.rad2deg(np.arccos(cosines))
    named = ", ".join(f"{i[p]} and {j[p]} ({degrees[p]:.2g} degrees)" for p in found[:most])
    rest = f" and {len(found) - most} more pairs" if len(found) > most else ""
    return (
        f"neurons {named}{rest} of the first hidden layer point the same way, as a training "
        "against extraction makes them: it did not keep them from being found"
    )


def _seen(
    noise: NoiseFloor | None,
    first: Finding | None,
    reason: str,
    known: Reference | None,
    kind: Kind | None,
) -> dict[str, str]:
    """What a target is; parameters as of :func:`facts`."""
    if known is not None and are_labels(known.Y):
        n = len(np.unique(known.labels))
        seen = f"labels: {n:,} different ones among {len(known.Y):,} answers"
        return {"answers": seen, "shape": "constant but for borders", "depth": _depth(first)}
    if known is not None and (of_steps := _of_steps(first, kind)):
        answers = known.link.form.given
        depth = "none: such a function has no layers of ReLUs"
        return {"answers": answers, **of_steps, "depth": depth, "precision": _levels(known.Y)}
    if noise is None:
        return {"answers": f"not measured: {reason}", "shape": "unknown", "depth": "unknown"}
    answers = noise.link.form.given
    seen = f"curves at {noise.curved:.0%} of the places seen"
    shape = (
        f"smooth: {seen}" if noise.is_smooth else f"piecewise linear, as far as was seen ({seen})"
    )
    law = "random: repeated rows differ" if noise.law == "random" else f"{noise.numbers}"
    error = float(noise.nu.max())
    return {
        "answers": answers,
        "shape": f"{shape}, as {noise.link.form.behind}" if noise.link.has_head else shape,
        "depth": _depth(first),
        "precision": f"{law}; an answer is good to about {error:.1g} of its size",
    }


def _of_steps(first: Finding | None, kind: Kind | None) -> dict[str, str]:
    """The shape of a step function; empty of what was not seen to be one."""
    if kind is not None and kind.function == "steps":
        where = {
            "trees": ", at values of single inputs, as those of trees",
            "others": ", as those of nearest neighbours",
        }
        return {"shape": f"steps: constant but for jumps{where.get(kind.steps, '')}"}
    is_seen = first is not None and first.of_steps
    return {"shape": "steps: constant but for jumps"} if is_seen else {}


def _levels(Y: FloatArray, digits: int = 12) -> str:
    """Say which numbers the answers of a step function are: their own steps, and no rounding.

    Parameters
    ----------
    digits : int
        Decimal digits, of the largest answer, in which two that are one agree: sums of votes
        differ by a few units of float64's sixteen.
    """
    scale = float(np.abs(Y).max()) or 1.0
    levels = np.unique(np.round(Y / scale, digits)) * scale
    unit = float(np.diff(levels).min(initial=np.inf))
    multiples = levels / unit
    # A unit is the difference of two numbers that are each as exact as that.
    near = np.abs(multiples - np.rint(multiples)) * unit <= 10.0**-digits * scale * (
        1.0 + np.abs(multiples)
    )
    if np.isfinite(unit) and near.all() and len(levels) > 2:
        return f"steps: multiples of {unit:.3g}"
    return f"steps: {len(levels):,} different values in {len(Y):,} answers"


def _depth(first: Finding | None) -> str:
    """Evidence of how deep the target is."""
    network = None if first is None else first.network
    if network is None:
        return "unknown"
    found = network.network
    if network.status is Status.RECOVERED and found is not None:
        n = sum(width > 0 for width in found.architecture[1:-1])
        layers = {0: "no hidden layer", 1: "one hidden layer"}.get(n, f"{n} hidden layers")
        return f"{layers}, {'-'.join(map(str, found.architecture))}"
    if network.status is Status.NOT_IN_CLASS:
        return f"not one or two hidden ReLU layers: {network.evidence[0]}"
    if network.status is Status.PARTIAL:
        return "two hidden layers or more: hyperplanes of a first layer were found alone"
    return "unknown: no network was found that explains the answers"
