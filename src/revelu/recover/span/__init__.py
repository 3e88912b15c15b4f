"""The row span of a first layer: the directions of the input that a network looks at (JWZ20).

Targets: networks ``f(x) = g(A x)`` of any depth and activation, A having fewer rows than
columns, that answer numbers or class labels.  A gradient of ``f`` is a combination of A's rows,
and so is a normal of the border between two classes.

Each method is a frozen dataclass, what tunes it being its fields, and its ``find`` returns a
:class:`~revelu.recover.span.candidate.SpanCandidate`; :mod:`revelu.tasks.span` chooses one,
checks the span by fresh moves across it, and says how the recovery ended.

===========  ======================================================  ====================
`Adaptive`   Algorithm 1, gradient after gradient, only what is new  ``adaptive``
`OneRound`   Algorithm 1 as printed: all queries in advance          ``one_round``
`Averaged`   answers of few digits: many gradients, then long moves  ``averaged``
`LabelSpan`     Algorithm 2: normals of borders, from labels alone      ``labels``
===========  ======================================================  ====================

Numbers: :mod:`revelu.probe.gradient` measures derivatives and their errors, the methods stack
them, and ``span_of_rows`` tells their rank.  Labels: ``labels`` runs the search whose state is
in ``label_search``; ``boundary`` finds places on a border and its heights beside them, and
``normals`` makes slopes of heights.
"""

from revelu.recover.span.adaptive import Adaptive
from revelu.recover.span.averaged import Averaged
from revelu.recover.span.labels import LabelSpan
from revelu.recover.span.one_round import OneRound

__all__ = ["Adaptive", "Averaged", "LabelSpan", "OneRound"]
