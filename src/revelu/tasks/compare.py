"""Compare: the parameters of two networks, aligned up to what no answer can tell."""

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from revelu.adapters import named_network
from revelu.errors import InputError
from revelu.formats import heads_of
from revelu.network import Alignment, Network, align
from revelu.network.logits import without_shift

# Operators that undo what is added to all of their inputs.
_SHIFTED = ("Softmax", "LogSoftmax")


@dataclass(frozen=True)
class Comparison:
    """Two networks, parameter by parameter.

    Attributes
    ----------
    agree : bool
        Whether every neuron has a partner, and every parameter is within ``tolerance``.
    tolerance : float
    max_relative_error : float
        Largest difference of two parameters, relative to the norm of their neuron's weights,
        which is 1 in hidden layers; a bias is held against itself where that is larger.
        Infinite where a neuron has no partner.
    alignment : Alignment or None
        Permutation, scales and signs; None where inputs, outputs or depth differ.
    reason : str
        Why they do not agree; empty where they do.
    first, second : Network
    up_to_shift : bool
        Whether outputs were compared less what all of them have in common, which a softmax above
        them does not show.
    """

    agree: bool
    tolerance: float
    max_relative_error: float
    alignment: Alignment | None
    reason: str
    first: Network
    second: Network
    up_to_shift: bool = False


def compare(
    first: Network | str | PathLike[str],
    second: Network | str | PathLike[str],
    tolerance: float = 1e-6,
) -> Comparison:
    """Compare the parameters of two networks up to permutation, scale and free sign.

    Logits below a softmax are compared up to what is added to all of them, which may depend on the
    input.

    Parameters
    ----------
    first, second : Network or path
        A path ends as :func:`revelu.load` knows it, or is ``demo:NAME``.
    tolerance : float
        Largest relative difference of parameters that agree.  A recovery from float64 answers
        stays well under the default, and one that misses a neuron, or has it elsewhere, does
        not.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If a file cannot be read, or the tolerance is not a positive number.

    Examples
    --------
    >>> import revelu
    >>> a = revelu.Network([[[2.0, 0.0], [0.0, 1.0]], [[1.0, 1.0]]], [[0.0, 1.0], [0.0]])
    >>> b = revelu.Network([[[0.0, 4.0], [1.0, 0.0]], [[0.25, 2.0]]], [[4.0, 0.0], [0.0]])
    >>> compare(a, b).agree
    True
    """
    if not 0 < tolerance < np.inf:
        raise InputError(f"tolerance must be a positive number, got {tolerance!r}")
    a, b = (n if isinstance(n, Network) else named_network(n) for n in (first, second))
    files = [Path(n) for n in (first, second) if not isinstance(n, Network)]
    heads = [head for head in (heads_of(path) for path in files if path.is_file()) if head]
    if reason := _unlike(a, b) or _other_heads(heads):
        return Comparison(False, tolerance, np.inf, None, reason, a, b)
    if heads and all(head[-1] in _SHIFTED for head in heads):
        below = _compared(without_shift(a), without_shift(b), tolerance)
        return replace(below, first=a, second=b, up_to_shift=True)
    found = _compared(a, b, tolerance)
    if not found.agree and not heads and a.dim_out > 1:
        below = _compared(without_shift(a), without_shift(b), tolerance)
        also = "; they agree up to what is added to all outputs, which a softmax does not show"
        return replace(found, reason=found.reason + also) if below.agree else found
    return found


def _compared(a: Network, b: Network, tolerance: float) -> Comparison:
    """Compare two networks of the same depth, inputs and outputs."""
    alignment = align(a, b)
    if alignment.unmatched:
        n = len(alignment.unmatched)
        reason = f"{n} neuron{'s have' if n > 1 else ' has'} no partner"
        return Comparison(False, tolerance, np.inf, alignment, reason, a, b)
    error = _relative_error(alignment)
    agree = error <= tolerance
    reason = "" if agree else f"parameters differ by more than {tolerance:g} of their size"
    return Comparison(agree, tolerance, error, alignment, reason, a, b)


def _unlike(a: Network, b: Network) -> str:
    """Which of inputs, outputs and depth differ, in words."""
    counts = {
        "inputs": (a.dim_in, b.dim_in),
        "outputs": (a.dim_out, b.dim_out),
        "hidden layers": (a.n_hidden, b.n_hidden),
    }
    return "; ".join(f"{m} against {n} {what}" for what, (m, n) in counts.items() if m != n)


def _other_heads(heads: list[tuple[str, ...]]) -> str:
    """How the heads of two files differ, where both have one: parameters are below them."""
    if len(heads) < 2 or heads[0] == heads[1]:
        return ""
    first, second = (" and ".join(head) for head in heads)
    return f"{first} against {second} above the last layer"


def _relative_error(alignment: Alignment) -> float:
    """Largest difference of parameters over what they are held against."""
    mine, theirs = alignment.aligned, alignment.reference
    worst = 0.0
    for i in range(mine.n_hidden + 1):
        is_output = i == mine.n_hidden
        W, U = (np.column_stack([n.weights[i], *n.affine[:is_output]]) for n in (mine, theirs))
        b, c = mine.biases[i], theirs.biases[i]
        size = np.linalg.norm(U, axis=1)
        # A constant has no weights to go by.
        size = np.where(size > 0, size, np.abs(c))
        size = np.where(size > 0, size, size.max(initial=0.0) or 1.0)
        weights = np.abs(W - U).max(axis=1, initial=0.0) / size
        biases = np.abs(b - c) / np.maximum(size, np.abs(c))
        worst = max(worst, float(np.maximum(weights, biases).max(initial=0.0)))
    return worst
