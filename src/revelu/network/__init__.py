"""What is recovered: networks, their symmetries, and targets that know their truth."""

from revelu.network.network import Network, load

__all__ = ["Network", "load"]
