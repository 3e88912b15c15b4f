"""One hidden layer, exactly, from the digits of float64 (DG21, Algorithm 6 and Theorem 2).

An oracle and its noise floor come in, a :class:`revelu.recover.method.Candidate` goes out.
Anywhere: ``lines`` chooses a line and scans it, ``blocks`` which of its pieces are worth a
Jacobian, ``line_neurons`` turns the changes between pieces into neurons, and ``one_hidden``
puts lines together until fresh answers agree; ``worst_rows`` gives rows back the digits that near
kinks have cost, and ``affine_rest`` fits what no neuron explains.  In a box: ``boxed`` finds a
base point, and ``restricted`` adds a neuron for every point that is not explained yet.
"""

from revelu.recover.shallow.one_hidden import OneHidden

__all__ = ["OneHidden"]
