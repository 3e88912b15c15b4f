"""A target minus a known network."""

from revelu.network import Network
from revelu.probe.line import Askable
from revelu.probe.view import View
from revelu.types import FloatArray


class Residual(View):
    """The function ``oracle(X) - network(X)``; a query of it is one of the oracle."""

    def __init__(self, oracle: Askable, network: Network) -> None:
        super().__init__(oracle, oracle.dim_in)
        self.network = network

    def inputs(self, Z: FloatArray) -> FloatArray:
        """Return them as they are, (n, d) -> (n, d)."""
        return Z

    def __call__(self, X: FloatArray) -> FloatArray:
        """Ask one round, (n, d) -> (n, k)."""
        return self.target(X) - self.network(X)
