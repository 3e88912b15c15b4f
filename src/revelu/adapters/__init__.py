"""Targets become oracles: callables, networks, files, demos."""

from revelu.adapters.demos import demos
from revelu.adapters.opening import open_oracle

__all__ = ["demos", "open_oracle"]
