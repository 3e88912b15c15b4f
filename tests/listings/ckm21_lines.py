"""CKM21, section 4.1: where a Gaussian line crosses hyperplanes, and how far apart.

The paper writes a neuron ``relu(<w, x> - b)``; here it is ``relu(w x + b)``, which changes
neither distances nor closeness.  Bounds stand up to a constant, as in print.
"""

import numpy as np


def critical_points(W, b, x0, v):
    """The ``t`` at which neurons change their state on ``x0 + t v`` (Proposition 4.2), shape (k,).

    Infinite where the line never meets the hyperplane.
    """
    slopes = W @ v
    met = slopes != 0
    return np.where(met, -(W @ x0 + b) / np.where(met, slopes, 1.0), np.inf)


def reach(W, b, delta):
    """How far out all critical points lie with probability ``1 - delta`` (Lemma 4.3).

    ``k (sqrt(d) + sqrt(log 1/δ)) / δ * (|b_i| / |w_i| + sqrt(log k/δ))``, the largest over i.
    In print the bias is lost from the proof's second line to its third, and so is the
    ``1 / δ`` of the second summand.
    """
    k, d = W.shape
    offsets = np.abs(b) / np.linalg.norm(W, axis=1)
    slow = k * (np.sqrt(d) + np.sqrt(np.log(1 / delta))) / delta
    return slow * (offsets.max() + np.sqrt(np.log(k / delta)))


def separation(k, d, closeness, delta):
    """How near critical points come with probability ``delta`` (Lemma 4.4).

    Those of k neurons of d inputs that are not (Δ, Δ sqrt(log k/δ))-close; Δ is ``closeness``.
    """
    return closeness * delta**2 / (k**4 * (np.sqrt(d) + np.sqrt(np.log(k / delta))))


def are_far(delta_ij, alpha_ij, closeness, delta):
    """Which pairs, of these Δ and α, Lemma 4.4 speaks of, shape (k, k)."""
    alpha = closeness * np.sqrt(np.log(len(delta_ij) / delta))
    return (delta_ij > closeness) | (alpha_ij > alpha)
