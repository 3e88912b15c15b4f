"""One hidden layer, or two, from labels alone; without a paper.

An oracle of labels comes in, a :class:`revelu.recover.method.Candidate` goes out.  ``borders``
finds points of borders between inputs of a pool; ``facets`` measures the planes of borders there,
by heights that are bisected together, as far as ``precision`` allows; ``walks`` follow them to
where they end in ``bends``, many at once in a ``survey``.  ``rows`` are what bends have in common:
neurons.  ``columns`` is the output layer, a null vector, ``signs`` are those of neurons, and
``polish`` fits all weights: an ``explanation`` of the borders.  ``search`` puts the steps together,
``from_labels`` tunes them, and ``roughness`` says why borders are none of a network.
``first_layer`` tells rows of the first of several hidden layers from others, and ``two_layers``
searches above it, inside a ``domain``.  With ``two_inputs`` borders are ``polygons``, traced from
one of their ``corners`` to the next, whose bends are on ``lines``; the ``plane`` has a network with
them, as far as ``edge_slopes`` allow it.
"""

from revelu.recover.labels.from_labels import FromLabels
from revelu.recover.labels.search import LabelSearch

__all__ = ["FromLabels"]

FromLabels.search = LabelSearch
