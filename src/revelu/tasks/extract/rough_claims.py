"""What may be claimed of a first layer where answers have few digits.

Bends of float32 answers show on lines of some thousandths, not of 1e-5, and among hundreds of
hyperplanes such a line meets others, too.  So a row is held against where the function bends far
from where it was measured: at its hyperplane, to the digits of the answers, where an upper neuron's
has ended, or turned.  And fresh lines must show no other hyperplane that goes on.
"""

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError, TargetError
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.hyperplane import points_on_hyperplanes
from revelu.probe.kink_lines import KinkLines
from revelu.probe.line import Ask
from revelu.recover.deep.wide_rows import WideRows
from revelu.recover.method import Layer
from revelu.tasks.extract.job import CertifyingJob
from revelu.types import FloatArray, IntArray


def doubt_about_few_digits(
    job: CertifyingJob,
    noise: NoiseFloor,
    layer: Layer,
    *,
    own: float = 0.2,
    n_kinds: int = 3,
    n_lines: int = 10,
) -> str:
    """Say why a first layer is not to be called exact.

    Parameters
    ----------
    layer : (W, b)
    own : float
        The share of far apart points of each hyperplane at which the function has to bend right
        there: at 3% of those of upper neurons' hyperplanes it does, and of a row that errs
        by 1e-3 a tenth at most; elsewhere others are too near, or the bend too faint.
    n_kinds : int
        Bends of ``n_kinds`` sizes: one flat piece of an upper neuron's surface has one.
    n_lines : int
        Fresh lines on which other hyperplanes are looked for.

    Returns
    -------
    str
        Empty where nothing speaks against it.
    """
    (W, b), oracle = layer, job.oracle
    norms, d = np.linalg.norm(W, axis=1), oracle.dim_in
    layer = W / norms[:, None], b / norms
    rng = np.random.default_rng(job.new_seed())
    try:
        with oracle.overtime(), oracle.phase("verify"):
            share, kinds = _own_bends(oracle, noise, layer, rng)
            more = WideRows().lacking(oracle, d, noise, layer, rng, n_lines)
            others = _own_bends(oracle, noise, (more.W, more.b), rng) if len(more) else None
    except (LimitReachedError, TargetError, SaturatedError) as error:
        return f"no layer is called exact: {len(W)} rows seen so far, none looked at again: {error}"
    n_false = int(((share < own) | (kinds < n_kinds)).sum())
    n_more = 0 if others is None else int(((others[0] >= own) & (others[1] >= n_kinds)).sum())
    if n_false:
        return (
            f"no layer is called exact: at most of the points of {n_false} of {len(b)} hyperplanes "
            "the answers do not show a bend right there"
        )
    if n_more:
        return (
            f"no layer is called exact: fresh lines meet {n_more} hyperplanes that go on, and none "
            "of the rows found is theirs"
        )
    return ""


def _own_bends(
    ask: Ask,
    noise: NoiseFloor,
    layer: Layer,
    rng: np.random.Generator,
    *,
    n_points: int = 24,
    side: float = 6e-3,
    place: float = 1e-5,
) -> tuple[FloatArray, IntArray]:
    """At which share of points of each hyperplane the function bends right there, by its error.

    Parameters
    ----------
    n_points : int
        Of each hyperplane, four queries a point,
    side, place : float
        so far to either side of it, and how far off it a bend may be besides, relative to the
        point.

    Returns
    -------
    share : ndarray, shape (m,)
    kinds : ndarray of int, shape (m,)
        How many bends of different sizes there are.
    """
    W, b = layer
    rows = np.repeat(np.arange(len(b)), n_points)
    X, M = points_on_hyperplanes(rng, W[rows], b[rows])
    growth = noise.growth(X)
    lines = KinkLines(X, M, np.zeros(len(X)), side * growth)
    seen = lines.read(ask(lines.points), noise)
    own = seen.is_kink & (np.abs(seen.tau) <= SIGMAS * seen.tau_error + place * growth)
    bends, kinds = np.linalg.norm(seen.jumps, axis=1), np.zeros(len(b), dtype=int)
    for j in range(len(b)):
        here = np.flatnonzero((rows == j) & own)
        here = here[np.argsort(bends[here])]
        apart = SIGMAS * np.sqrt(2.0) * seen.error[here] * bends[here]
        kinds[j] = (np.diff(bends[here], prepend=0.0) > apart).sum()
    return own.reshape(len(b), n_points).mean(axis=1), kinds
