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
    ran_out : bool
        Whether the search ran out of rounds, which says nothing of the function.
    is_torn : bool
        Whether the answers jump somewhere.
    contradicts : bool
        Whether rows there were answered otherwise when they were asked again.
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
    ran_out: bool = False
    is_torn: bool = False
    contradicts: bool = False
    n_faint: int = 0

    @property
    def reach(self) -> float:
        """The largest ``|t|`` that was asked at."""
        return max(abs(t) for t in self.interval)

    def edges(self, lo: float = -np.inf, hi: float = np.inf) -> FloatArray:
        """Angles at which pieces begin and end, the outer ones at ``lo`` and ``hi``, (m + 2,)."""
        return np.arctan([lo, *self.kinks, hi])

    def half_gaps(self, lo: float = -np.inf, hi: float = np.inf) -> FloatArray:
        """Half the angle that each piece covers, of those between ``lo`` and ``hi``, (m + 1,)."""
        return np.asarray(np.diff(self.edges(lo, hi)) / 2)

    def without_faint_kinks(self, atol: float) -> "LineScan":
        """Leave out kinks that change the slope by less than ``atol``.

        Of the two pieces that a faint kink parts, the better supported one stays: noise may
        have made up the kink's place, and so the other piece.

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
