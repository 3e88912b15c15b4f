"""Portrait: what a page shows of a target and of what was recovered, as numbers."""

import math
from typing import Any

import numpy as np

from revelu.errors import LimitReachedError, TargetError
from revelu.network import Network, to_log_ratios
from revelu.network.restriction import kinks_on_line
from revelu.network.span import Span
from revelu.oracle import Oracle
from revelu.types import FloatArray

# Keeps the random choices apart from those that drew the target with the same seed.
_STREAM = 0x706F_7274

# Points on a line, and how far it goes from a point of N(0, I) in lengths of an input.
_N_POINTS, _REACH = 241, 2.0

# Answers compared, and the most outputs, points and images that can be told apart.
_N_COMPARED, _MOST_COMPARED = 200, 600
_MOST_OUTPUTS = 4
_MOST_IMAGES = 40
_LEAST_SIDE = 8

# Queries of a portrait.
N_QUERIES = _N_POINTS + _N_COMPARED

# Digits of a number in a picture, and in an image.
_DIGITS, _IMAGE_DIGITS = 6, 3


def portrait(oracle: Oracle, network: Network | None, seed: int) -> dict[str, Any]:
    """Ask for what the pictures of a page need, booked under ``verify``.

    Parameters
    ----------
    oracle : Oracle
        As the task left it: where it takes log-ratios, these are compared.
    network : Network or None
        What was recovered.
    seed : int

    Returns
    -------
    dict
        JSON-able: ``line`` (``t``, ``target``, ``recovered``, ``kinks``), ``comparison``
        (``target``, ``recovered``), ``singular_values`` and ``images``, where they apply,
        and ``note``, why pictures are missing.
    """
    figures = {} if network is None else of_network(network)
    rng = np.random.default_rng(np.random.SeedSequence([_STREAM, seed]))
    x0, v = _line(rng, oracle.dim_in)
    t = np.linspace(-_REACH, _REACH, _N_POINTS)
    X = rng.standard_normal((_N_COMPARED, oracle.dim_in))
    if oracle.box is not None:
        lo, hi = oracle.box
        x0, v = np.full(oracle.dim_in, (lo + hi) / 2.0), v * (hi - lo) / 2.0
        v = v / np.abs(v).max() * (hi - lo) / 2.0 / _REACH * (1.0 - 1e-9)
        X = rng.uniform(lo, hi, X.shape)
    try:
        with oracle.phase("verify"), oracle.round():
            along, answers = oracle(x0 + t[:, None] * v), oracle(X)
    except (LimitReachedError, TargetError) as error:
        return {**figures, "note": f"no further queries for pictures: {error}"}
    if network is not None and oracle.takes_log_ratios:
        network = to_log_ratios(network)
    if network is not None and network.dim_out != along.shape[1]:
        network = None
    line = {"t": _numbers(t), "target": _columns(along), "recovered": None, "kinks": []}
    if network is not None:
        line["recovered"] = _columns(network(x0 + t[:, None] * v))
        line["kinks"] = _numbers(kinks_on_line(network, x0, v, (-_REACH, _REACH)))
        figures["comparison"] = _comparison(answers, network(X))
    return {"line": line, **figures}


def of_network(network: Network) -> dict[str, Any]:
    """Return the figures of a network that need no query."""
    W = network.weights[0]
    if len(network.weights) < 2 or not len(W):
        return {}
    values = np.linalg.svd(W, compute_uv=False)
    # Neurons by what they move: their weights times those that read them.
    worth = np.linalg.norm(W, axis=1) * np.linalg.norm(network.weights[1], axis=0)
    return {
        "singular_values": {"values": _numbers(values / values[0]), "floor": 0.0, "of": "weights"},
        **_images(W[np.argsort(-worth)], "first-layer weights"),
    }


def of_span(span: Span) -> dict[str, Any]:
    """Return the figures of a span."""
    figures: dict[str, Any] = {}
    if span.singular_values.size:
        figures["singular_values"] = {
            "values": _numbers(span.singular_values),
            "floor": float(span.floor),
            "of": "gradients",
            "rank": span.rank,
        }
    return figures | (_images(span.basis, "directions of the span") if span.rank else {})


def _line(rng: np.random.Generator, d: int) -> tuple[FloatArray, FloatArray]:
    """A point of N(0, I), and a direction across it that is as long."""
    x0, v = rng.standard_normal((2, d))
    if d > 1:
        v = v - (v @ x0) / (x0 @ x0) * x0
    return x0, v / np.linalg.norm(v) * np.linalg.norm(x0)


def _comparison(answers: FloatArray, predicted: FloatArray) -> dict[str, Any]:
    seen = np.isfinite(answers).all(axis=1)
    n = max(_MOST_COMPARED // answers.shape[1], 1)
    return {
        "target": _numbers(answers[seen][:n].ravel()),
        "recovered": _numbers(predicted[seen][:n].ravel()),
        "largest_error": float(np.abs(answers - predicted)[seen].max(initial=0.0)),
    }


def _images(rows: FloatArray, of: str) -> dict[str, Any]:
    """Rows as square pictures, where the input may be one."""
    side = math.isqrt(rows.shape[1])
    if side < _LEAST_SIDE or side * side != rows.shape[1]:
        return {}
    shown = rows[:_MOST_IMAGES]
    images = [[float(f"{x:.{_IMAGE_DIGITS}g}") for x in row] for row in shown.tolist()]
    return {"images": {"side": side, "rows": images, "n": len(rows), "of": of}}


def _columns(Y: FloatArray) -> list[list[float | None]]:
    """The first few outputs, each a list."""
    return [_numbers(column) for column in Y.T[:_MOST_OUTPUTS]]


def _numbers(values: FloatArray) -> list[float | None]:
    """Numbers to the digits of a picture; None where there is none."""
    return [
        float(f"{x:.{_DIGITS}g}") if math.isfinite(x) else None
        for x in np.asarray(values, dtype=np.float64).tolist()
    ]
