"""The span of noisy rows: how many singular values stand out, and how far off it is."""

from dataclasses import replace

import numpy as np

from revelu.network.span import Span
from revelu.numerics.confidence import SIGMAS
from revelu.types import FloatArray

NO_GAP = (
    "the singular values run into the noise: there may be more directions, and the weakest that "
    "were found may be noise"
)


def span_of(gradients: FloatArray) -> tuple[Span, bool]:
    """Span the rows of a matrix whose entries err by 1, and tell whether a gap shows its rank.

    The norm of an (m, n) matrix of unit noise is about sqrt(m) + sqrt(n).

    Parameters
    ----------
    gradients : ndarray, shape (m, n)

    Returns
    -------
    span : Span
    clear : bool
        Whether the first singular value left out is `SIGMAS` times less than the last taken.
    """
    if not gradients.any():
        return Span(np.empty((0, gradients.shape[1]))), True
    _, values, vt = np.linalg.svd(gradients, full_matrices=False)
    noise = np.sqrt(gradients.shape[0]) + np.sqrt(gradients.shape[1])
    rank = int((values > SIGMAS * noise).sum())
    left_out = values[rank] if rank < len(values) else 0.0
    clear = rank > 0 and bool(SIGMAS * left_out <= values[rank - 1])
    return Span(vt[:rank], values / values[0], floor=float(noise / values[0])), clear


def with_errors(span: Span, gradients: FloatArray) -> Span:
    """Tell how far off each direction is by what noise explains, and by both halves of the rows.

    Kinks that noise hides put gradients off by more than noise does, and halves apart.

    Parameters
    ----------
    span : Span
        Of ``gradients (m, n)``.
    gradients : ndarray, shape (m, n)
    """
    unit = expected_angle(span, span.dim_in)
    if not span.rank:
        return span
    values = span.singular_values[: span.rank]
    errors = unit * values[-1] / values
    if len(gradients) >= 4 * span.rank:
        for half in (gradients[::2], gradients[1::2]):
            rows = np.linalg.svd(half, full_matrices=False)[2][: span.rank]
            beside = np.linalg.norm(span.basis - span.basis @ rows.T @ rows, axis=1)
            errors = np.maximum(errors, beside)
    return replace(span, errors=errors)


def expected_angle(span: Span, n: int) -> float:
    """Return about the largest principal angle, from the weakest direction and the noise."""
    if not span.rank:
        return 0.0
    # floor is (sqrt(m) + sqrt(n)) units; a row of noise across the span has sqrt(n).
    m = len(span.singular_values)
    unit = span.floor / (np.sqrt(m) + np.sqrt(n))
    return float(unit * np.sqrt(n) / span.singular_values[span.rank - 1])
