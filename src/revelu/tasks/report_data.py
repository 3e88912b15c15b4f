"""Report data: what a page shows of a target and of what was recovered, as numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from revelu.errors import LimitReachedError, TargetError
from revelu.network import LayeredNetwork, Network, to_log_ratios
from revelu.network.span import Span
from revelu.oracle import Oracle
from revelu.tasks.job import random_seeds
from revelu.tasks.units import network_in_coordinates
from revelu.types import FloatArray


@dataclass(frozen=True)
class ReportData:
    """What the pictures of a page need, JSON-able.

    Attributes
    ----------
    n_points : int
        On a line.
    reach : float
        How far it goes from a point of N(0, I), in lengths of an input.
    n_compared : int
        Fresh inputs on which target and network are compared.
    most_compared, most_outputs, most_images : int
        Of answers, of outputs and of rows as pictures, the most that can be told apart.
    least_side : int
        Of a picture, in pixels.
    digits, image_digits : int
        Of a number on a line, and of a pixel.
    """

    n_points: int = 241
    reach: float = 2.0
    n_compared: int = 200
    most_compared: int = 600
    most_outputs: int = 4
    most_images: int = 40
    least_side: int = 8
    digits: int = 6
    image_digits: int = 3

    def of_target(self, oracle: Oracle, network: Network | None, seed: int) -> dict[str, Any]:
        """Ask for what the pictures of a target need, booked under ``verify``.

        Parameters
        ----------
        oracle : Oracle
            As the task left it: where it takes log-ratios, these are compared.
        network : Network or None
            What was recovered.

        Returns
        -------
        dict
            ``line`` (``t``, ``target``, ``recovered``, ``kinks``), ``comparison`` (``target``,
            ``recovered``), ``singular_values``, ``images`` and ``filters`` (``shape``: channels,
            rows, columns), where they apply, and ``note``, why pictures are missing.
        """
        figures = {} if network is None else self.of(network)
        rng = np.random.default_rng(random_seeds("port", seed))
        x0, v = _line(rng, oracle.dim_in)
        t = np.linspace(-self.reach, self.reach, self.n_points)
        X = rng.standard_normal((self.n_compared, oracle.dim_in))
        if oracle.box is not None:
            lo, hi = oracle.box
            # The line ends at the nearest wall, less what rounding might put outside.
            x0 = np.full(oracle.dim_in, (lo + hi) / 2.0)
            v = v / np.abs(v).max() * (hi - lo) / 2.0 / self.reach * (1.0 - 1e-9)
            X = rng.uniform(lo, hi, X.shape)
        on_line = x0 + t[:, None] * v
        try:
            with oracle.phase("verify"), oracle.round():
                along, answers = oracle(on_line), oracle(X)
        except (LimitReachedError, TargetError) as error:
            return {**figures, "note": f"no further queries for pictures: {error}"}
        if network is not None:
            network = network_in_coordinates(network, oracle.domain)
        if network is not None and oracle.link.contrast:
            network = to_log_ratios(network)
        line = {"t": self._numbers(t), "target": self._columns(along)}
        line |= {"recovered": None, "kinks": []}
        if network is not None and network.dim_out == along.shape[1]:
            kinks = network.kinks_on_line(x0, v, (-self.reach, self.reach))
            line |= {"recovered": self._columns(network(on_line)), "kinks": self._numbers(kinks)}
            figures["comparison"] = self._comparison(answers, network(X))
        return {"line": line, **figures}

    def of(self, found: Network | Span) -> dict[str, Any]:
        """Return the figures of what was found, which need no query."""
        return self._of_span(found) if isinstance(found, Span) else self._of_network(found)

    def of_digits(self, digits: Sequence[FloatArray] | None) -> dict[str, Any]:
        """Return the figures of weights' digits, layer by layer, where they are known."""
        known = [np.sort(found) for found in digits or () if len(found)]
        if not known:
            return {}
        n = self.n_compared
        shown = [d[np.linspace(0, len(d) - 1, min(len(d), n)).astype(np.intp)] for d in known]
        layers = [self._numbers(d, self.image_digits) for d in shown]
        return {"digits": {"layers": layers, "n": sum(map(len, known))}}

    def _of_network(self, network: Network) -> dict[str, Any]:
        if isinstance(network, LayeredNetwork) and network.filters is not None:
            return self._of_filters(network.filters)
        W = network.weights[0]
        if len(network.weights) < 2 or not len(W):
            return {}
        values = np.linalg.svd(W, compute_uv=False)
        # Neurons by what they move: their weights times those that read them.
        worth = np.linalg.norm(W, axis=1) * np.linalg.norm(network.weights[1], axis=0)
        shown = {"values": self._numbers(values / values[0]), "floor": 0.0, "of": "weights"}
        images = self._images(W[np.argsort(-worth)], "first-layer weights")
        return {"singular_values": shown, **images}

    def _of_filters(self, kernels: FloatArray) -> dict[str, Any]:
        """Filters (filters, channels, rows, columns) as pictures, in the order of the file."""
        n, *shape = kernels.shape
        rows = kernels.reshape(n, -1)[: self.most_images]
        images = [self._numbers(row, self.image_digits) for row in rows]
        return {"filters": {"shape": shape, "rows": images, "n": n}}

    def _of_span(self, span: Span) -> dict[str, Any]:
        figures = self._images(span.basis, "directions of the span") if span.rank else {}
        if span.singular_values.size:
            figures["singular_values"] = {
                "values": self._numbers(span.singular_values),
                "floor": float(span.floor),
                "of": "gradients",
                "rank": span.rank,
            }
        return figures

    def _comparison(self, answers: FloatArray, predicted: FloatArray) -> dict[str, Any]:
        seen = np.isfinite(answers).all(axis=1)
        n = max(self.most_compared // answers.shape[1], 1)
        return {
            "target": self._numbers(answers[seen][:n].ravel()),
            "recovered": self._numbers(predicted[seen][:n].ravel()),
            "largest_error": float(np.abs(answers - predicted)[seen].max(initial=0.0)),
        }

    def _images(self, rows: FloatArray, of: str) -> dict[str, Any]:
        """Rows as square pictures, where the input may be one."""
        side = math.isqrt(rows.shape[1])
        if side < self.least_side or side * side != rows.shape[1]:
            return {}
        images = [self._numbers(row, self.image_digits) for row in rows[: self.most_images]]
        return {"images": {"side": side, "rows": images, "n": len(rows), "of": of}}

    def _columns(self, Y: FloatArray) -> list[list[float | None]]:
        """The first few outputs, each a list."""
        return [self._numbers(column) for column in Y.T[: self.most_outputs]]

    def _numbers(self, values: FloatArray, digits: int | None = None) -> list[float | None]:
        """Numbers to the digits of a picture; None where there is none."""
        return [
            float(f"{x:.{digits or self.digits}g}") if math.isfinite(x) else None
            for x in np.asarray(values, dtype=np.float64).tolist()
        ]


def _line(rng: np.random.Generator, d: int) -> tuple[FloatArray, FloatArray]:
    """A point of N(0, I), and a direction across it that is as long."""
    x0, v = rng.standard_normal((2, d))
    if d > 1:
        v = v - (v @ x0) / (x0 @ x0) * x0
    return x0, v / np.linalg.norm(v) * np.linalg.norm(x0)
