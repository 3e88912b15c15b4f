"""Two hidden layers and more, from the digits of float64 (DG21, section 3.5, and beyond it).

An oracle and its noise floor come in, a :class:`revelu.recover.method.Candidate` goes out, with
the lowest layers that are exact even where what is above them was not understood.

``narrow`` takes two hidden layers, the first no wider than the input: ``first_layer`` tells
which hyperplanes of a line are the first layer's, and the upper layers are asked through a right
inverse of its rows.  ``driver`` climbs from the input, whatever the widths:

1. ``segments`` finds critical points on many segments, ``witnesses`` the gradients beside them;
   ``state`` is what is known so far, on a ``stack`` of the layers below;
2. ``kink_equations`` states what a critical point says of a row, ``rows_from_kinks`` finds the
   rows on which critical points agree, ``gradient_rows`` those that none shows, ``hypotheses``
   keeps the ones that predict kinks; together they are a ``layer_estimate``;
3. ``gradient_signs`` tells the side of every neuron, on ``gradient_spans``, and ``always_active``
   the neurons that are always on: that completes a ``layer``;
4. ``output_layer`` fits the outputs where the layer is the last, ``missing_weights`` the weights
   that no critical point has determined, and ``test_inputs`` asks where an error would show.
"""

from revelu.recover.deep.driver import Deep
from revelu.recover.deep.narrow import TwoHidden

__all__ = ["Deep", "TwoHidden"]
