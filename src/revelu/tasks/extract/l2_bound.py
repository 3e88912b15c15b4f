"""How far a recovered network is from its target in L2, from fresh Gaussian queries."""

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from revelu.certify import Examination
from revelu.network import Network, l2_norm
from revelu.recover.method import Candidate
from revelu.recovery import Certificate
from revelu.types import FloatArray

# Of N(0, 1) at the origin.
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


def with_l2_bound(certificate: Certificate, candidate: Candidate, seen: Examination) -> Certificate:
    """Fill the certificate's ``l2_bound``, and say what no number of queries excludes.

    The bound has two parts: errors like those seen, and a bump that all points have missed.
    The second shrinks with the number of checks, to the power of 3/2.

    Parameters
    ----------
    certificate : Certificate
        Of the candidate's network.
    candidate : Candidate
        With a network.
    seen : Examination
        What the certificate rests on.
    """
    network = candidate.network
    if network is None:
        return certificate
    usable = seen.is_drawn & np.isfinite(seen.errors).all(axis=1)
    errors, X = seen.errors[usable], seen.X[usable]
    # No point need have met the strips in which merging has changed the function.
    merged = relative(candidate.merged_l2 or 0.0, network)
    met = merged + relative_l2_bound(network, X, errors, certificate.confidence)
    asked = candidate.n_searched + len(X)
    width = bump_width(asked) if asked else np.inf
    unmet = steepness(network) * bump_norm(width) if asked else np.inf
    statement = (
        f"{certificate.statement}; with the same confidence the relative L2 error is at most "
        f"{met + unmet:.2g}: {met:.2g} if the squared errors vary as those seen, and {unmet:.2g} "
        f"for a bump through the origin, narrower than {width:.2g} and as steep as the steepest "
        "neuron, that can be there unseen; of a steeper one nothing is known; "
        f"of width {width / 10:.1g} it would be found with {points_for(width / 10):,} Gaussian "
        "queries"
    )
    return replace(certificate, l2_bound=met + unmet, statement=statement)


def relative_l2_bound(
    network: Network, X: FloatArray, errors: FloatArray, confidence: float
) -> float:
    """Upper confidence bound on ``|F - f| / |f|`` under N(0, I).

    Parameters
    ----------
    X : ndarray, shape (n, d)
        Points of N(0, I).
    errors : ndarray, shape (n, k)
        The target's answers less the network's, there.

    Notes
    -----
    The mean of the squared errors is taken as normal, with the deviation that they show: an
    assumption, for what has not been seen at all is not in it.
    """
    if not len(X):
        return float("inf")
    squares = (errors**2).sum(axis=1)
    deviation = float(squares.std(ddof=1)) if len(squares) > 1 else float(squares.max())
    upper = float(squares.mean()) + float(ndtri(confidence)) * deviation / np.sqrt(len(squares))
    size = float((network(X) ** 2).sum(axis=1).mean())
    return float(np.sqrt(upper / size)) if size > 0 else float(np.sqrt(upper))


def relative(error: float, network: Network) -> float:
    """An error over the network's norm under N(0, I), where it has one."""
    size = l2_norm(network) if error else 0.0
    return error / size if size > 0 else error


def steepness(network: Network) -> float:
    """The steepest slope, of a neuron or the skip, over the size of the network's function."""
    W, A = network.weights[0], network.weights[-1]
    slopes = np.linalg.norm(W, axis=1) * np.linalg.norm(A, axis=0)
    skip = 0.0 if network.skip is None else float(np.linalg.norm(network.skip[0], 2))
    return relative(float(slopes.max(initial=skip)), network)


def bump_norm(width: float) -> float:
    """The L2 norm of a triangle of slope 1 through the origin: of ``w / 2`` at its middle."""
    return float(width / 2 * np.sqrt(width * _DENSITY / 3))


def bump_width(n_points: int, miss: float = 0.05) -> float:
    """The width of a bump through the origin that all of ``n`` points of N(0, I) miss.

    With a probability of ``miss``.
    """
    return float(-np.log(miss) / (_DENSITY * n_points))


def points_for(width: float, miss: float = 0.05) -> int:
    """How many points of N(0, I) all miss a bump of a width through the origin that rarely."""
    return int(np.ceil(-np.log(miss) / (_DENSITY * width)))
