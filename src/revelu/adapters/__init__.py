"""Targets become oracles: callables, networks, files, demos."""

from revelu.adapters.demos import demos, named_network
from revelu.adapters.opening import is_served, open_oracle

__all__ = ["demos", "is_served", "named_network", "open_oracle"]
