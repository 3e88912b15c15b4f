"""Two hidden layers and more, from the digits of float64 (DG21, section 3.5, and beyond it).

An oracle and its noise floor come in, a :class:`revelu.recover.method.Candidate` goes out, with
the lowest layers that are exact even where what is above them was not understood.

``narrow`` takes two hidden layers, the first no wider than the input: ``first_layer`` tells
which hyperplanes of a line are the first layer's, and the upper layers are asked through a right
inverse of its rows.  Where both sides of its neurons pass a signal on, ``leaky`` undoes layer after
layer so.  ``climb`` goes up from the input, whatever the widths:

1. ``first_rows`` finds the first layer on a few lines; what bends elsewhere is a seed of a neuron
   above (``segments`` finds critical points, ``seeds`` the gradients beside them);
2. a ``walk`` reads a neuron's row off its surface, ray by ray: ``frame`` is what is known below it,
   on a ``stack`` of layers, ``estimate`` what its equations say, ``surface`` where it is by those,
   ``kink_lines`` of :mod:`revelu.probe` the questions that find it;
3. ``layers`` finds one layer after the other so; ``layer_rows`` are the rows of all walks, and
   tell the signs of the layer below;
4. ``output_layer`` fits the outputs where the layer is the last; ``answers`` are what a network is
   held against, and tell what no walk has (``open_weights``); all layers are fitted at once, and
   where fresh answers begin to disagree are the seeds of what is missing.

Where answers are float32, ``rough_rows`` finds the first of two layers by lines, roughly, or
``wide_rows`` one that is wider than the input, by planes that lines agree on; ``rough_layers`` fits
both at once, ``rough_tower`` three, and ``rough_wide`` has upper neurons traced (``rough_upper``)
where fits would lose some, and mended where fresh answers are wrong.

Where questions must stay in a box, ``narrow_in_box`` finds two layers, the first narrower than the
input: ``first_in_box`` finds that along chords, ``upper_rows`` puts together what kinks show of
rows above it with the layer in many states, and ``layers_in_box`` is all that is known under way.
``climb_in_box`` climbs there.  ``deep`` is the method with its tuning.
"""

from revelu.recover.deep.climb import Climb
from revelu.recover.deep.climb_in_box import ClimbInBox
from revelu.recover.deep.deep import Deep
from revelu.recover.deep.leaky import Leaky
from revelu.recover.deep.narrow import TwoHidden
from revelu.recover.deep.narrow_in_box import LayersSearch

__all__ = ["Deep", "Leaky", "TwoHidden"]

Deep.search, Deep.search_in_box = Climb, ClimbInBox
TwoHidden.search_in_box = LayersSearch
