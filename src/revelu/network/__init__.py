"""What is recovered: networks, their symmetries, and targets that know their truth."""

from revelu.network import zoo
from revelu.network.alignment import Alignment, align
from revelu.network.network import Network, load
from revelu.network.simplify import simplify

__all__ = ["Alignment", "Network", "align", "load", "simplify", "zoo"]
