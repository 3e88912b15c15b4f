"""Targets become oracles: callables, networks, files, demos."""

from revelu.adapters.demos import demos, named_network
from revelu.adapters.endpoints import Endpoint
from revelu.adapters.identity import identity_of
from revelu.adapters.opening import open_oracle

__all__ = ["Endpoint", "demos", "identity_of", "named_network", "open_oracle"]
