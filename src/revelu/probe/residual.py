"""A target minus a known network."""

from contextlib import AbstractContextManager

from revelu.network import Network
from revelu.probe.line import Askable
from revelu.types import FloatArray


class Residual:
    """The function ``oracle(X) - network(X)``; a query of it is one of the oracle."""

    def __init__(self, oracle: Askable, network: Network) -> None:
        self.oracle, self.network = oracle, network
        self.dim_in = oracle.dim_in

    def __call__(self, X: FloatArray) -> FloatArray:
        """Ask one round, (n, d) -> (n, k)."""
        return self.oracle(X) - self.network(X)

    def round(self) -> AbstractContextManager[None]:
        """Count the calls made inside as one round."""
        return self.oracle.round()
