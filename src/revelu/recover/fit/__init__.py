"""One hidden layer from answers of few digits, and from Gaussian samples (ATV21).

``least_squares`` asks: an oracle and its noise floor come in, a
:class:`revelu.recover.method.Candidate` goes out.  ``sizes`` says how many samples a search
needs; where the inputs are many, ``slices`` carries a network over from a few coordinates to all
of them; where lines show critical points, ``line_rows`` measures rows there, ``sightings`` makes
those exact that several lines meet, and ``from_lines`` finds a network by ``row_fits`` of them and
of what is ``missing``, unless ``crossings`` show that hyperplanes end; ``in_box`` does it inside a
box, where ``from_chords`` measures and fits, and ``from_rows`` completes; else ``search`` finds,
refines and sharpens a network for answers whose noise is known; ``far_out`` asks lines where errors
are a smaller share.  Neurons that hardly an input turns on are told by answers around the few that
are wrong (``where_wrong``).

``hermite`` asks nothing: pairs ``(x, f(x))`` come in, a ``learned`` network with its errors goes
out.  ``tensors`` takes the Hermite coefficients to a first network (ATV21, Algorithms 1 to 5),
``spectrum`` counts its neurons, ``limits`` says what samples cannot show (Theorems 3.1 and 3.4),
and ``covariance`` how far every weight is off.

Both look for the ``smallest`` network that explains the samples: ``growth`` makes one wider than
need be, ``pruning`` takes neurons out while the ``price`` falls, and ``sign_patterns`` orients
what is left so that no affine rest remains.
"""

from revelu.recover.fit.fit import Fit
from revelu.recover.fit.hermite import Hermite
from revelu.recover.fit.in_box import FitInBox
from revelu.recover.fit.least_squares import FitSearch

__all__ = ["Fit", "Hermite"]

Fit.search, Fit.search_in_box = FitSearch, FitInBox
