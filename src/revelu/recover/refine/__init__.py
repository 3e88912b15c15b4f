"""From a network that is nearly right to the last digits of the answers.

A network of any depth and samples come in, a better network goes out.  ``network_fit`` runs the
one Gauss-Newton method over all weights, with the ``derivative`` of the answers as a linear map;
``whitening`` chooses coordinates in which that map is near an isometry; ``some_neurons`` fits those
alone that errors point at; ``polish`` asks, where fresh answers at well-chosen inputs are worth it,
and stops at their rounding.
"""

from revelu.recover.refine.polish import fit_to_last_digits, polish_network, polish_to_known

__all__ = ["fit_to_last_digits", "polish_network", "polish_to_known"]
