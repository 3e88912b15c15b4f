"""Where queries are spent: lines and their kinks, gradients, hyperplanes; and sums over samples.

Along a line: ``line`` (and its lift), ``kinks`` finds all kinks, from ``piece`` (one affine
stretch) to ``scan`` (what a search has found).  Beside a point: ``gradient`` takes every
derivative, ``gradient_span`` tells how few directions gradients need.  Across a hyperplane:
``hyperplane``, which bends a function or not, and ``kink_lines``, which measure where.
``axes`` puts all three together for a diagnosis.  Of labels: ``heights`` finds where lines leave
a class.

``box`` keeps queries inside a domain, ``residual`` takes a known network off a target.  Nothing
is asked by ``moments`` and ``streams``: they sum Hermite moments over samples in chunks.

What asks raises LimitReachedError where budget or time end first, and, where it needs numbers,
SaturatedError where the target gives none.
"""
