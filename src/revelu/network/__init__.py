"""What is recovered: networks, their symmetries, and targets that know their truth."""

from revelu.network import zoo
from revelu.network.alignment import Alignment, align
from revelu.network.distance import l2_distance, l2_norm
from revelu.network.from_files import network_of
from revelu.network.layered import LayeredNetwork
from revelu.network.logits import from_log_ratios, to_log_ratios
from revelu.network.network import Network, load
from revelu.network.simplify import simplify
from revelu.network.slopes import with_slopes
from revelu.network.sums import add_networks, affine_network

__all__ = [
    "Alignment",
    "LayeredNetwork",
    "Network",
    "add_networks",
    "affine_network",
    "align",
    "from_log_ratios",
    "l2_distance",
    "l2_norm",
    "load",
    "network_of",
    "simplify",
    "to_log_ratios",
    "with_slopes",
    "zoo",
]
