"""The neurons that a segment inside a box shows (DG21, section 3.4.1)."""

from dataclasses import dataclass, replace

import numpy as np

from revelu.network import Network
from revelu.numerics.confidence import SIGMAS
from revelu.probe.box import Box, inward_jacobian
from revelu.probe.residual import Residual
from revelu.probe.scan import LineScan
from revelu.recover.shallow.blocks import Costs, choose_blocks
from revelu.types import FloatArray


@dataclass(frozen=True, eq=False)
class SegmentNeurons:
    """How neurons of a segment are measured."""

    box: Box
    base: FloatArray
    """Shape (d,).  A point where all of them are to be off."""
    error: FloatArray
    """Shape (k,).  Standard error of an answer."""
    rng: np.random.Generator
    jump_rtol: float = 1e-4
    """A jump along a segment is the change of the Jacobians to this share of its size."""
    inside: float = 0.1
    """How far inside a piece its slope is measured, as a share of it."""

    def find(self, residual: Residual, scan: LineScan) -> Network | None:
        """Find the neurons of a scan's single kinks (DG21, Algorithms 3 and 4), off at the base."""
        scan = self._measured_again(residual, scan)
        sizes = np.linalg.norm(scan.jumps, axis=1)
        columns = scan.jumps / np.where(sizes > 0.0, sizes, 1.0)[:, None]
        first, blocks = choose_blocks(
            columns, scan.half_gaps(*scan.interval), scan.is_single, 0.0, Costs(independent=0.3)
        )
        with residual.round():
            jacobians = {
                p: self._jacobian(residual, scan, p) for p in (first, *(b.stop for b in blocks))
            }
        W, b, A = [], [], []
        for block in blocks:
            left, right = jacobians[block.start], jacobians[block.stop]
            if not block.is_solvable or left is None or right is None:
                continue
            rows = np.linalg.pinv(columns[block.start : block.stop].T) @ (right - left)
            for i, w in enumerate(rows, start=block.start):
                offset = -float(w @ scan.line.points(scan.kinks[[i]])[0])
                off_by = np.linalg.norm(columns[i] * (w @ scan.line.v) - scan.jumps[i])
                if off_by > self.jump_rtol * sizes[i]:
                    continue
                off = -1.0 if w @ self.base + offset > 0 else 1.0
                W.append(off * w)
                b.append(off * offset)
                A.append(columns[i])
        if not W:
            return None
        return Network([np.array(W), np.array(A).T], [np.array(b), np.zeros(len(self.error))])

    def _measured_again(self, residual: Residual, scan: LineScan) -> LineScan:
        """The scan with its kinks and jumps from two answers near the ends of every piece.

        A jump is a neuron's output column, whose error enters the rows of all neurons between two
        Jacobians; the search stops at what tells a kink.
        """
        edges = np.array([scan.interval[0], *scan.kinks, scan.interval[1]])
        inside = self.inside * np.diff(edges)
        t = np.stack([edges[:-1] + inside, edges[1:] - inside])
        Y = residual(scan.line.points(t.ravel())).reshape(2, len(edges) - 1, -1)
        before, after = t[1, :-1], t[0, 1:]
        # Infinite where the target is saturated.
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = (Y[1] - Y[0]) / (t[1] - t[0])[:, None]
            jumps = np.diff(slopes, axis=0)
            # To the next piece the answer rises by slope (t' - t) + jump (t' - kink).
            rise = Y[0, 1:] - Y[1, :-1] - slopes[:-1] * (after - before)[:, None]
            kinks = after - (rise * jumps).sum(axis=1) / (jumps**2).sum(axis=1)
        if not ((kinks > before) & (kinks < after)).all():
            return scan
        return replace(scan, kinks=kinks, jumps=jumps)

    def _jacobian(self, residual: Residual, scan: LineScan, p: int) -> FloatArray | None:
        """Derivatives of the residual on a piece; none are asked where it vanishes."""
        piece = scan.pieces[p]
        if (np.abs(np.array(piece.gs)) <= SIGMAS * scan.sigma).all() and len(piece.ts) > 1:
            return np.zeros((len(scan.sigma), residual.dim_in))
        edges, half_gaps = scan.edges(*scan.interval), scan.half_gaps(*scan.interval)
        t = float(np.tan((edges[p] + edges[p + 1]) / 2))
        room = min(float(half_gaps[p]), float(np.median(half_gaps)))
        x = self.box.clip(scan.line.points(np.array([t]))[0])
        h = scan.line.step_beside(t, room)
        error = self.error * np.sqrt(1.0 + t * t)
        return inward_jacobian(residual, x, h, self.box, error, self.rng)
