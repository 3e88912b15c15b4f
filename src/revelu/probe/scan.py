"""What a search along a line has found."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.probe.line import Line
from revelu.probe.piece import Piece
from revelu.types import BoolArray, FloatArray


@dataclass
class LineScan:
    """The pieces of a function along a line.

    Attributes
    ----------
    line : Line
    sigma : ndarray, shape (k,)
        Standard error of a lifted answer.
    pieces : list of Piece
        From left to right.
    kinks : ndarray, shape (len(pieces) - 1,)
        Where neighbouring pieces meet, in ``t``.
    jumps : ndarray, shape (len(pieces) - 1, k)
        Change of ``df/dt`` from left to right.
    is_single : ndarray of bool
        Whether a gap is proved to hold a single kink; else a cluster.
    complete : bool
        Whether every gap was closed.
    interval : (float, float)
        Least and largest ``t`` that were asked at.
    message : str
        Why not, in words.
    n_faint : int
        Kinks left out as faint: next to them pieces are less exact than ``sigma``.
    """

    line: Line
    sigma: FloatArray
    pieces: list[Piece]
    kinks: FloatArray
    jumps: FloatArray
    is_single: BoolArray
    complete: bool
    interval: tuple[float, float]
    message: str = ""
    n_faint: int = 0

    @property
    def reach(self) -> float:
        """The largest ``|t|`` that was asked at."""
        return max(abs(t) for t in self.interval)

    def without_faint_kinks(self, atol: float) -> "LineScan":
        """Leave out kinks that change the slope by less than ``atol``.

        Of the two pieces that a faint kink parts, the better supported one stays: a
        faint kink's place, and so the other piece, may be a figment of the noise.

        Parameters
        ----------
        atol : float
            On the Euclidean norm of a jump.
        """
        keep = ~(np.linalg.norm(self.jumps, axis=1) < atol)
        if keep.all():
            return self
        pieces = self.pieces[:1]
        for piece, is_kept in zip(self.pieces[1:], keep, strict=True):
            if is_kept:
                pieces.append(piece)
            else:
                pieces[-1] = max(pieces[-1], piece, key=Piece.extent)
        return replace(
            self,
            pieces=pieces,
            kinks=self.kinks[keep],
            jumps=self.jumps[keep],
            is_single=self.is_single[keep],
            n_faint=self.n_faint + int((~keep).sum()),
        )

    def merged(self, half_gap: float) -> "LineScan":
        """Take kinks that no measurable piece parts for one, as CKM21's intervals do.

        The jump of the merged kink is the change from one measurable piece to the next,
        which is the sum of the jumps; where that is nothing, the two pieces are one.

        Parameters
        ----------
        half_gap : float
            Half the angle of the narrowest piece that is kept.
        """
        edges = np.concatenate([[-np.pi / 2], np.arctan(self.kinks), [np.pi / 2]])
        keep = np.diff(edges) / 2 >= half_gap
        if not keep.any():
            keep[int(np.argmax(np.diff(edges)))] = True
        pieces = [piece for piece, is_kept in zip(self.pieces, keep, strict=True) if is_kept]
        kinks, jumps = [], []
        where = np.flatnonzero(keep)
        for i in range(len(pieces) - 1):
            first, last = int(where[i]), int(where[i + 1])
            if last == first + 1:
                kinks.append(float(self.kinks[first]))
                jumps.append(self.jumps[first])
                continue
            meeting = pieces[i].meet(pieces[i + 1], self.sigma)
            lo, hi = self.kinks[first], self.kinks[last - 1]
            kinks.append(float(np.clip(meeting.t, lo, hi)) if np.isfinite(meeting.t) else lo)
            jumps.append(meeting.jump)
        return replace(
            self,
            pieces=pieces,
            kinks=np.asarray(kinks, dtype=np.float64),
            jumps=np.asarray(jumps, dtype=np.float64).reshape(len(kinks), len(self.sigma)),
            is_single=np.ones(len(kinks), dtype=bool),
        )
