"""Layers whose weights are shared: convolutions, what pools them, and the dense layers above.

An oracle whose inputs are an image and its noise floor come in, a
:class:`revelu.recover.method.Candidate` goes out.  ``pixel_rows`` has the neurons that a single
pixel shows (``seen``), between its kinks (``brackets``), ``sharing`` the filters that they are
copies of, ``signs`` their signs and what biases are missing, ``places`` whether a filter is at a
place, ``geometry`` strides, pads and windows by it, ``joint_fit`` the dense layer and the filters'
last digits, and ``convolution`` puts them together.  ``leaky_filters`` are those of units that pass
both sides, by their ``ties`` where the largest of a window is taken.  Where hidden layers lie
above, ``pixel_lines`` are many such lines, ``lowest_filters`` the filters that recur on them,
``below`` the layers that are known then, and ``upper_units`` the neurons above, by their critical
points and what the gradients do there (``crossings``), on lines that start where features are
seldom on (``starts``).  Where a target does not say that its inputs are an image, ``grid`` sees it.
Inside a box there is ``in_box``.  There is no paper: sharing is found and tested by prediction.
"""

from revelu.network.images import Image
from revelu.recover.structured.convolution import SharedWeights
from revelu.recover.structured.grid import ImageGrid
from revelu.recover.structured.noise import PixelNoise

__all__ = ["Image", "ImageGrid", "PixelNoise", "SharedWeights"]
