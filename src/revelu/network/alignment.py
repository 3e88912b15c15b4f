"""Compare two networks' parameters up to what no answer can tell."""

from dataclasses import dataclass

import numpy as np

from revelu.errors import InputError
from revelu.network.network import Network
from revelu.network.simplify import RTOL, simplify_tracked, unit_rows
from revelu.numerics.matching import match_rows
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Alignment:
    """A recovered network brought as close to the true one as its symmetries allow.

    Attributes
    ----------
    max_parameter_error : float
        Largest |difference| of any weight or bias of ``aligned`` and
        ``reference``; infinite where a neuron has no partner.
    worst_parameter : str
        Where that is, such as ``"weights[0][3, 17]"``, in the indices of
        ``aligned`` and ``reference``; the first of ``unmatched`` where a neuron
        has no partner; empty where there are no parameters.
    permutations : tuple of ndarray of int
        For each hidden layer, which neuron of the recovered network each of
        ``aligned`` is; those without a partner come last.
    scales : tuple of ndarray
        For each hidden layer, the positive factors by which those neurons were
        multiplied.
    factors : tuple of ndarray
        For each hidden layer, what takes those neurons that have a partner to its size: 1
        where both are written alike.
    signs : ndarray, shape (k,)
        +1 or -1: which neurons of the last hidden layer were negated, their
        affine remainder going to ``skip`` and to the last bias.
    aligned : Network
        The recovered network, simplified, with weight rows of norm 1 in every
        hidden layer, in the truth's order and orientation; the same function.
    reference : Network
        The truth, simplified and scaled alike; the same function.
    unmatched : tuple of str
        Neurons without a partner, such as ``"truth: weights[0][3]"``, in the
        indices of the network that was given.
    """

    max_parameter_error: float
    worst_parameter: str
    permutations: tuple[IntArray, ...]
    scales: tuple[FloatArray, ...]
    factors: tuple[FloatArray, ...]
    signs: FloatArray
    aligned: Network
    reference: Network
    unmatched: tuple[str, ...] = ()

    @property
    def matched(self) -> bool:
        """Whether every identifiable neuron has a partner."""
        return not self.unmatched


def align(recovered: Network, truth: Network, rtol: float = RTOL) -> Alignment:
    """Compare two networks up to permutation, scale and, where free, sign.

    The symmetries of a ReLU network are a permutation and positive scales of
    each hidden layer's neurons and, in the last hidden layer, their signs, which
    an affine map compensates: ``relu(z) = relu(-z) + z``.  Both networks are
    simplified (:func:`revelu.network.simplify`) and scaled to weight rows of
    norm 1; then, from the first hidden layer upwards, neurons are paired by
    their hyperplanes at the least sum of distances.

    Parameters
    ----------
    recovered, truth : Network
        Of the same depth, inputs and outputs.
    rtol : float
        What counts as not identifiable.

    Raises
    ------
    InputError
        If inputs, outputs or depth differ.
    """
    if (recovered.dim_in, recovered.dim_out, len(recovered.weights)) != (
        truth.dim_in,
        truth.dim_out,
        len(truth.weights),
    ):
        raise InputError(
            f"cannot align {recovered.architecture} with {truth.architecture}: "
            "inputs, outputs and depth must be the same"
        )
    mine, scales, kept = _canonical(recovered, rtol)
    theirs, their_scales, kept_truth = _canonical(truth, rtol)
    permutations: list[IntArray] = []
    factors: list[FloatArray] = []
    unmatched: list[str] = []
    signs = np.empty(0)
    shared = np.arange(truth.dim_in, dtype=np.intp)  # columns of the truth with a partner
    for i in range(mine.n_hidden):
        order, signs, paired = _match(mine, theirs, i, shared)
        W, b = mine.weights[i][order], mine.biases[i][order]
        mine = mine.with_layer(i, W, b, np.eye(len(order))[:, order])
        permutations.append(kept[i][order])
        scales[i] = scales[i][order]
        shared = np.flatnonzero(paired)
        factors.append(scales[i][: len(shared)] / their_scales[i][shared])
        unmatched += [f"recovered: weights[{i}][{j}]" for j in permutations[i][len(shared) :]]
        unmatched += [f"truth: weights[{i}][{j}]" for j in kept_truth[i][~paired]]
    if mine.n_hidden:
        mine = mine.turn_round(signs < 0).folded()
    error, worst = (np.inf, unmatched[0]) if unmatched else _worst(mine, theirs)
    return Alignment(
        error,
        worst,
        tuple(permutations),
        tuple(scales),
        tuple(factors),
        signs,
        mine,
        theirs,
        tuple(unmatched),
    )


def _canonical(
    network: Network, rtol: float
) -> tuple[Network, list[FloatArray], tuple[IntArray, ...]]:
    """Simplify and scale to unit weight rows; the network, the factors, who stayed."""
    network, kept = simplify_tracked(network, rtol)
    scales = []
    for i in range(network.n_hidden):
        # relu(s z) = s relu(z) for s > 0: a layer's scales are pushed into the next before
        # that one is scaled.  No row is zero here: such a neuron is a constant and was folded.
        W, b = network.weights[i], network.biases[i]
        s = 1.0 / np.linalg.norm(W, axis=1)
        network = network.with_layer(i, W * s[:, None], b * s, np.diag(1.0 / s))
        scales.append(s)
    return network, scales, kept


def _match(
    mine: Network, theirs: Network, i: int, shared: IntArray
) -> tuple[IntArray, FloatArray, BoolArray]:
    """Pair the neurons of hidden layer ``i`` by what they read of paired neurons.

    Returns the order of mine, those without partner last, with the signs in that
    order, and which of theirs have a partner.
    """
    own = np.column_stack([mine.weights[i][:, : len(shared)], mine.biases[i]])
    other = np.column_stack([theirs.weights[i][:, shared], theirs.biases[i]])
    is_last = i == mine.n_hidden - 1
    # Rows have norm 1 with the bias included, so that no distant hyperplane dominates.
    rows, signs = match_rows(unit_rows(own), unit_rows(other), up_to_sign=is_last)
    paired = rows >= 0
    left = np.setdiff1d(np.arange(len(own)), rows)
    order = np.concatenate([rows[paired], left])
    return order, np.concatenate([signs[paired], np.ones(len(left))]), paired


def _worst(mine: Network, theirs: Network) -> tuple[float, str]:
    """Return the largest |difference| and the name of its parameter."""
    error, worst = 0.0, ""
    names = [f"{kind}[{i}]" for kind in ("weights", "biases") for i in range(mine.n_hidden + 1)]
    pairs = [*zip(mine.weights + mine.biases, theirs.weights + theirs.biases, strict=True)]
    V = (mine.affine[0], theirs.affine[0])
    for name, (a, b) in zip([*names, "skip[0]"], [*pairs, V], strict=True):
        difference = np.abs(a - b)
        if difference.size and (not worst or difference.max() > error):
            index = np.unravel_index(int(difference.argmax()), difference.shape)
            error = float(difference[index])
            worst = f"{name}[{', '.join(str(int(j)) for j in index)}]"
    return error, worst
