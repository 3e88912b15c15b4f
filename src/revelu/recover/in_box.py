"""A box in coordinates in which it is a cube around 0, where inputs vary as methods are used to."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from revelu.network import Network
from revelu.numerics.links import Link
from revelu.oracle import Oracle
from revelu.oracle.extremes import Extremes
from revelu.probe.box import Box
from revelu.probe.view import View
from revelu.recover.method import Layer
from revelu.types import FloatArray


class OracleInBox(View):
    """An oracle in coordinates in which its box is ``|u| <= bound``.

    Questions outside are not asked: their answers are NaN.

    Attributes
    ----------
    dim_out : int
        Known from an answer on; 0 before.
    """

    def __init__(self, oracle: Oracle, bound: float) -> None:
        super().__init__(oracle, oracle.dim_in)
        lo, hi = oracle.box or (-bound, bound)
        self.oracle, self.bound = oracle, bound
        self.box = Box.cube(lo, hi, oracle.dim_in)
        self.dim_out = 0
        self.centre, self.scale = (lo + hi) / 2.0, (hi - lo) / (2.0 * bound)

    @property
    def n_queries(self) -> int:
        """What was asked."""
        return self.oracle.n_queries

    @property
    def link(self) -> Link:
        """What is applied to the target's answers."""
        return self.oracle.link

    @property
    def extremes(self) -> Extremes:
        """The oracle's."""
        return self.oracle.extremes

    def inputs(self, Z: FloatArray) -> FloatArray:
        """Return where the oracle is asked, in its box whatever rounding does, (n, d) -> (n, d)."""
        return self.box.clip(self.centre + self.scale * Z)

    @contextmanager
    def as_answered(self) -> Iterator[None]:
        """Give answers as they are, where otherwise a link is applied."""
        before = self.dim_out
        self.dim_out += self.link.contrast
        try:
            with self.oracle.as_answered():
                yield
        finally:
            self.dim_out = before

    def check_time(self) -> None:
        """Raise where the time is spent."""
        self.oracle.check_time()

    def __call__(self, X: FloatArray) -> FloatArray:
        """Ask those inside."""
        inside = np.abs(X).max(axis=1, initial=0.0) <= self.bound
        asked = super().__call__(X[inside]) if inside.any() else np.empty((0, self.dim_out))
        self.dim_out = asked.shape[1]
        Y = np.full((len(X), self.dim_out), np.nan)
        Y[inside] = asked
        return Y

    def in_float32(self, U: FloatArray) -> FloatArray:
        """The nearest coordinates that stand for float32 numbers, which a target need not round."""
        X = self.oracle.in_float32(self.inputs(U))
        return np.clip(self.coordinates(X), -self.bound, self.bound)

    def coordinates(self, X: FloatArray) -> FloatArray:
        """The coordinates of inputs, shape (n, d)."""
        return np.asarray((X - self.centre) / self.scale)

    def of_inputs(self, layer: Layer) -> Layer:
        """A first layer that reads inputs, of one that reads coordinates."""
        W, b = layer[0] / self.scale, layer[1]
        return W, b - self.centre * W.sum(axis=1)

    def network_of_inputs(self, network: Network) -> Network:
        """The network that reads inputs, of one that reads coordinates."""
        W, b = self.of_inputs((network.weights[0], network.biases[0]))
        skip = network.skip
        if skip is not None and network.n_hidden == 1:
            skip = self.of_inputs(skip)
        return Network([W, *network.weights[1:]], [b, *network.biases[1:]], skip)
