"""Inputs at which a network of several layers would show what it lacks.

They are chosen among many that are not asked.
"""

import numpy as np

from revelu.network import Network
from revelu.oracle import NoiseFloor
from revelu.recover.deep.witnesses import Witnesses
from revelu.types import BoolArray, FloatArray


def n_last_look(network: Network, *, most: int = 40_000, per_parameter: float = 100) -> int:
    """How many inputs in a row must be right in the end.

    In proportion to the queries of a search, which several outputs shorten.

    Parameters
    ----------
    network : Network
    most : int
    per_parameter : float
        Inputs for each parameter, with one output.
    """
    return int(min(most, per_parameter * network.n_parameters / np.sqrt(network.dim_out)))


def rare_inputs(
    network: Network,
    rng: np.random.Generator,
    *,
    n_inputs: int = 20_000,
    rarely: int = 200,
    n_each: int = 8,
) -> FloatArray:
    """Inputs of N(0, I) at which a neuron is on that rarely is, or off, shape (n, d).

    Parameters
    ----------
    network : Network
    rng : numpy.random.Generator
    n_inputs : int
        Inputs among which they are chosen.
    rarely : int
        At fewer of those a neuron is rarely in a state.
    n_each : int
        Inputs for each such neuron.
    """
    hidden = network.activations(rng.standard_normal((n_inputs, network.dim_in)))
    chosen = [np.empty(0, dtype=np.intp)]
    for h in hidden[1:]:
        rarer = np.where((h > 0).mean(axis=0) < 0.5, h > 0, h <= 0)
        rare = np.flatnonzero(rarer.sum(axis=0) < rarely)
        chosen += [np.flatnonzero(rarer[:, j])[:n_each] for j in rare]
    return hidden[0][np.unique(np.concatenate(chosen))]


def informative_inputs(
    network: Network,
    undetermined: list[BoolArray],
    rng: np.random.Generator,
    *,
    n_inputs: int = 20_000,
    spreads: tuple[float, ...] = (1.0, 2.0),
    n_each: int = 4,
    most: int = 60,
) -> FloatArray:
    """Inputs of N(0, I), or a little further out, at which undetermined weights matter.

    Parameters
    ----------
    network : Network
    undetermined : list of ndarray of bool
        Which of every hidden layer's weights.
    rng : numpy.random.Generator
    n_inputs : int
        Inputs among which they are chosen.
    spreads : tuple of float
        Standard deviations of those.
    n_each, most : int
        Inputs for each weight, and for all.

    Returns
    -------
    ndarray, shape (n, d)
        A few for each weight; for some there may be none.
    """
    X = rng.standard_normal((n_inputs, network.dim_in)) * rng.choice(spreads, n_inputs)[:, None]
    hidden = network.activations(X)
    chosen = [np.empty(0, dtype=np.intp)]
    for i, rows in enumerate(undetermined):
        for j, k in np.argwhere(rows):
            below = hidden[i][:, k] > 0 if i else np.ones(n_inputs, dtype=bool)
            own = hidden[i + 1][:, j] > 0
            kinds = (
                (own, ~own) if network.skip is not None and i == len(undetermined) - 1 else (own,)
            )
            chosen += [np.flatnonzero(below & kind)[:n_each] for kind in kinds]
    return np.asarray(X[rng.permutation(np.unique(np.concatenate(chosen)))[:most]])


def suspects(
    network: Network,
    witnesses: Witnesses,
    noise: NoiseFloor,
    rng: np.random.Generator,
    *,
    rtol: float = 1e-4,
    most: int = 16,
) -> FloatArray:
    """Inputs at which gradients were measured that are not the network's, shape (n, d).

    Parameters
    ----------
    network : Network
    witnesses : Witnesses
    noise : NoiseFloor
    rng : numpy.random.Generator
    rtol : float
        A gradient is another one if it differs by so much of its size.
    most : int
    """
    X, J, unit = witnesses.points, witnesses.gradients, noise.unit[:, None]
    off = network.jacobian(X) - J
    apart, size = (np.linalg.norm(a / unit, axis=(1, 2)) for a in (off, J))
    rows = np.flatnonzero(apart > rtol * np.maximum(size, 1.0))
    return np.asarray(X[rng.permutation(rows)[:most]])
