"""A line on which what cannot be told apart is one kink (CKM21, Definition 4.5, Theorem 4.8).

The paper takes gradients at the midpoints of equal intervals, and differences of them for
neurons: of kinks that share an interval it sees the sum.  Here the intervals are the
pieces that are wide enough to be measured.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from revelu.numerics.confidence import SIGMAS
from revelu.probe.line import Askable
from revelu.probe.piece import Answer, Meeting, Piece
from revelu.probe.scan import LineScan
from revelu.types import FloatArray


def coarsen(
    target: Askable,
    scan: LineScan,
    half_gap: float,
    faint: float,
    places: tuple[float, float, float] = (0.15, 0.5, 0.85),
) -> LineScan:
    """Merge kinks that no measurable piece parts, and measure the others anew.

    Parameters
    ----------
    target : Askable
        What was scanned.
    half_gap : float
        Half the angle of the narrowest piece that is kept.
    faint : float
        A change of slope below this is none.
    places : tuple of float
        Where in its interval a piece is asked, as fractions of the angle: clear of the kinks, next
        to which a search may have taken points of other pieces for its own.

    Returns
    -------
    LineScan
        Every kink counts as single.  The jump of a merged one is the change from one piece
        to the next, which is the sum of the jumps, and its place is where the two meet:
        both are exact for the function outside of what was merged.
    """
    edges, half_gaps = scan.edges(), scan.half_gaps()
    keep = half_gaps >= half_gap
    if not keep.any():
        keep[int(np.argmax(half_gaps))] = True
    lo, hi = np.arctan(scan.interval)
    lefts, rights = np.clip(edges[:-1], lo, hi)[keep], np.clip(edges[1:], lo, hi)[keep]
    ts = np.tan(lefts[:, None] + np.outer(rights - lefts, places))
    answers = scan.line.lifted(target, ts.ravel()).reshape(*ts.shape, -1)
    old = [piece for piece, is_kept in zip(scan.pieces, keep, strict=True) if is_kept]
    pieces = [
        _measured(piece, t, g, scan.sigma) for piece, t, g in zip(old, ts, answers, strict=True)
    ]
    meetings = _consistent_meetings(pieces, (rights - lefts).tolist(), scan.sigma)
    kinks = [meeting.t for meeting in meetings]
    jumps = [meeting.jump for meeting in meetings]
    merged = replace(
        scan,
        pieces=pieces,
        kinks=np.asarray(kinks, dtype=np.float64),
        jumps=np.asarray(jumps, dtype=np.float64).reshape(len(kinks), len(scan.sigma)),
        is_single=np.ones(len(kinks), dtype=bool),
    )
    return replace(merged.without_faint_kinks(faint), n_faint=0)


def _consistent_meetings(
    pieces: list[Piece], widths: list[float], sigma: FloatArray
) -> list[Meeting]:
    """Where neighbouring pieces meet; pieces are dropped until they all meet between them.

    Kinks that cancel nearly have their sum's kink anywhere: what lies beside them is merged
    too, the narrower piece first.
    """
    while True:
        meetings = [a.meet(b, sigma) for a, b in pairwise(pieces)]
        for i, meeting in enumerate(meetings):
            left, right = pieces[i], pieces[i + 1]
            flat = np.linalg.norm(meeting.jump) == 0.0
            if flat or not left.ts[-1] <= meeting.t <= right.ts[0]:
                narrow = i if widths[i] < widths[i + 1] else i + 1
                del pieces[narrow], widths[narrow]
                break
        else:
            return meetings


def _measured(old: Piece, t: FloatArray, g: FloatArray, sigma: FloatArray) -> Piece:
    """The piece through three points, or the old one where they are not on one line."""
    one = np.ones_like(g[0])
    new = Piece.of(Answer(float(t[0]), g[0], one), Answer(float(t[2]), g[2], one))
    value, weight = new.extrapolate(float(t[1]))
    fits = np.abs(value - g[1]) <= SIGMAS * sigma * np.hypot(1.0, weight)
    return new if fits.all() and np.isfinite(g).all() else old
