"""What float64 holds of a number: its digits, half of them, and the least that is not 0."""

import numpy as np

EPS = float(np.finfo(np.float64).eps)
"""Spacing of numbers next to 1: n products are summed to ``n EPS`` of their sizes, and a singular
value of ``max(m, n) EPS`` of the largest one is none (LAPACK's and NumPy's convention)."""

HALF_DIGITS = EPS**0.5
"""What is left of the digits where they were squared, or divided by a step of the best length."""

TINY = float(np.finfo(np.float64).tiny) / EPS
"""The smallest number whose rounding is one, too: it stands for 0 under a fraction and in a
logarithm."""
