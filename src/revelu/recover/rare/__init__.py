"""Units that rarely fire: halfspaces, and first layers under a high threshold (GP18).

The target is ``f(x) = P(u(w_1 x - t_1), ..., u(w_k x - t_k))``: P a polynomial or any network,
u a step, a ReLU or a sigmoid, and the thresholds such that f is constant for most of N(0, I);
a union of halfspaces is such an f.  What is sought is the layer, W and t, not P.  Exponential
and even units need no threshold, but rows of a special shape.

What comes in is an oracle, or samples of N(0, I); what goes out is a
:class:`~revelu.recover.rare.units.UnitsCandidate`, whose units a task puts to the test.

By queries, whatever the thresholds are:

    lowest_layer    the constant that f is where no unit fires
    facets          the faces of the region where it is, ray by ray
    face            one face, to the last digits

From samples, where units fire in few of them:

    rare_samples     the rows that leave the constant, and their moments
    rare_directions  directions and thresholds from the moments
    halfspaces       labels, of which some may be wrong (label_noise): a union fitted by
                     union_fit (a noisy OR), halfspace by halfspace (halfspace_search), and
                     version_space (all halfspaces that agree)
    firing           the same for where answers leave their constant
    sampled_layer    answers: a regression where one unit fires alone, or firing
    smooth_layer     sigmoids, from samples or an oracle: units and a polynomial of low degree
                     above them, fitted together by smooth_units

From samples, without a threshold: exponential_units and even_units.
"""

from revelu.recover.rare.even_units import recover_even_units
from revelu.recover.rare.exponential_units import recover_exponential_units
from revelu.recover.rare.facets import recover_facets
from revelu.recover.rare.halfspaces import recover_union
from revelu.recover.rare.lowest_layer import recover_layer
from revelu.recover.rare.sampled_layer import recover_biased_layer, recover_sampled_layer

__all__ = [
    "recover_biased_layer",
    "recover_even_units",
    "recover_exponential_units",
    "recover_facets",
    "recover_layer",
    "recover_sampled_layer",
    "recover_union",
]
