"""The rows of a layer as walks give them, and the signs of the layer below.

A walk knows the layer below it up to sign.  Of the true sum of a neuron only the neurons below
count, and no linear part: with ``phi_i = 1`` where row ``i`` below has the wrong sign,

    z = sum_i v_i relu(+-u_i) + c' = sum_i v_i relu(u_i) - sum_i phi_i v_i u_i + c,

so that the linear part which the walk has found is ``l = -sum_i phi_i v_i w_i``.  The same signs
hold for all rows, and are 0 or 1: least squares, rounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from revelu.numerics.float64 import EPS, HALF_DIGITS
from revelu.numerics.records import Records
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.walk import Walk
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LayerRows(Records):
    """Sums ``v . relu(u) + l . h + c`` in a frame, one a row."""

    v: FloatArray
    """Shape (n, m)."""
    l: FloatArray  # noqa: E741 - the name in the derivation
    """Shape (n, dim)."""
    c: FloatArray
    """Shape (n,)."""
    undetermined: BoolArray
    """Shape (n, m + dim)."""

    @classmethod
    def of(cls, frame: KnownLayers, walks: Sequence[Walk]) -> "LayerRows":
        """Return the rows of walks, every row below with the sign it has in the frame."""
        n, m = len(walks), len(frame.b)
        theta = np.array([walk.estimate.theta for walk in walks]).reshape(n, frame.size)
        is_open = np.array([walk.is_open for walk in walks], dtype=bool).reshape(n, frame.size)
        turned = np.array([walk.signs < 0 for walk in walks], dtype=bool).reshape(n, m)
        # relu(-u) = relu(u) - u
        moved = np.where(turned, theta[:, :m], 0.0)
        theta[:, m:-1] -= moved @ frame.W
        theta[:, -1] -= moved @ frame.b
        v, linear, constant = np.split(theta, [m, frame.size - 1], axis=1)
        return cls(v, linear, constant[:, 0], is_open[:, :-1])

    @property
    def theta(self) -> FloatArray:
        """All unknowns, shape (n, frame.size)."""
        return np.column_stack([self.v, self.l, self.c])

    def sums(self, frame: KnownLayers, X: FloatArray) -> FloatArray:
        """Sums at inputs, shape (len(X), n)."""
        return frame.features(frame.region(X), np.ones(len(frame.b))) @ self.theta.T

    def explain(self, frame: KnownLayers, X: FloatArray, rtol: float) -> BoolArray:
        """Which points lie on a row's surface, to ``rtol`` of their size, shape (len(X),)."""
        at, s = frame.region(X), np.ones(len(frame.b))
        near = rtol * (1.0 + np.linalg.norm(X, axis=1))
        explained, F = np.zeros(len(X), dtype=bool), frame.features(at, s)
        for theta in self.theta:
            slope = np.linalg.norm(frame.gradients(at, s, theta), axis=1)
            explained |= np.abs(F @ theta) <= near * slope
        return explained

    def alike(self, rtol: float, *, fewest: int = 3) -> IntArray:
        """Which of the others are the first row, as far as both are known.

        Parameters
        ----------
        rtol : float
            How far off 1 the cosine may be.
        fewest : int
            Unknowns that both must know: two rows agree on fewer by chance, up to scale.
        """
        V, known = np.column_stack([self.v, self.l]), ~self.undetermined
        both = known & known[0]
        A, B = np.where(both, V, 0.0), np.where(both, V[0], 0.0)
        sizes = np.linalg.norm(A, axis=1) * np.linalg.norm(B, axis=1)
        same = np.abs((A * B).sum(axis=1)) > (1.0 - rtol) * sizes
        same &= both.sum(axis=1) >= min(fewest, V.shape[1])
        return np.flatnonzero(same[1:]) + 1

    def tell_signs(self, m: int) -> BoolArray:
        """Which rows have equations for the signs of ``m`` rows below to tell, shape (n,)."""
        return np.asarray(self.undetermined.sum(axis=1) < self.undetermined.shape[1] - m)

    def _told(self, frame: KnownLayers, open_weights: BoolArray) -> FloatArray:
        """Projectors onto what rows tell of their linear parts, shape (n, dim, dim).

        Through a weight ``v_i`` that is not known any multiple of row ``i`` may be in them, and
        with it of what is not known of that row.
        """
        m, dim = frame.W.shape
        told = np.empty((len(self.c), dim, dim))
        for r, is_open in enumerate(self.undetermined):
            top = is_open[:m]
            axes = np.eye(dim)[is_open[m:] | open_weights[top].any(axis=0)]
            open_parts = np.vstack([frame.W[top], axes])
            told[r] = np.eye(dim) - np.linalg.pinv(open_parts, HALF_DIGITS) @ open_parts
        return told

    def signs(
        self,
        frame: KnownLayers,
        open_weights: BoolArray,
        *,
        off: float = 0.1,
        fit: float = 1e-4,
        max_rounds: int = 3,
    ) -> tuple[FloatArray, BoolArray, BoolArray, FloatArray]:
        """Find the signs of the rows on top of the frame.

        Unknowns whose columns are half of the digits fainter than the largest have no say, nor have
        singular values.

        Parameters
        ----------
        open_weights : ndarray of bool, shape (m, dim)
            Which of their weights are not known: what is in linear parts through a row of the
            wrong sign tells them.
        off : float
            How far an unknown may be from 0 or 1.
        fit : float
            What may be left of a row's linear part, relative to all that adds to it.
        max_rounds : int
            Times that rows which do not fit are left out.

        Returns
        -------
        s : ndarray, shape (m,)
            1 or -1.
        known : ndarray of bool, shape (m,)
        fits : ndarray of bool, shape (n,)
            Rows whose linear part is what the signs say.
        missing : ndarray, shape (m, dim)
            What is to be added to the frame's rows.
        """
        m, fits = len(frame.b), np.ones(len(self.c), dtype=bool)
        i, p = np.nonzero(open_weights)
        phi, known = np.zeros(m), np.zeros(m, dtype=bool)
        told = self._told(frame, open_weights)
        v = np.where(self.undetermined[:, :m], 0.0, self.v)
        linear = (told @ self.l[:, :, None])[:, :, 0]
        units = np.eye(frame.W.shape[1])[:, p]
        parts = told @ np.concatenate([v[:, None] * frame.W.T, v[:, None, i] * units], axis=2)
        used = self.tell_signs(m)
        used = used if used.any() else fits
        for _ in range(max_rounds):
            A = parts[used].reshape(-1, parts.shape[2])
            sizes = np.linalg.norm(A, axis=0)
            live = sizes > HALF_DIGITS * sizes.max(initial=0.0)
            U, s, Vt = np.linalg.svd(A[:, live] / sizes[live], full_matrices=False)
            n = int((s > HALF_DIGITS * s.max(initial=0.0)).sum())
            x = Vt[:n].T @ (U[:, :n].T @ -linear[used].ravel() / s[:n]) / sizes[live]
            # What the system does not tell has a part outside its row space.
            is_told = (Vt[:n] ** 2).sum(axis=0) > 1.0 - HALF_DIGITS
            # The unknowns that are live are signs, then what is missing of weights.
            found, are_told = np.zeros(A.shape[1]), np.zeros(A.shape[1], dtype=bool)
            found[live], are_told[live] = x, is_told
            phi = np.round(found[:m]).clip(0.0, 1.0)
            known = are_told[:m] & (np.abs(found[:m] - phi) < off)
            missing = np.zeros(frame.W.shape)
            missing[i, p] = np.where(are_told[m:] & (phi[i] > 0.5), found[m:], 0.0)
            left = told @ (self.l + (v * phi) @ (frame.W + missing))[:, :, None]
            size = np.abs(v) @ np.linalg.norm(frame.W, axis=1)
            fits = np.linalg.norm(left[:, :, 0], axis=1) <= fit * size
            if known[live[:m]].all() or fits[used].all() or not (used & fits).any():
                break
            used = used & fits
        return np.where(phi > 0.5, -1.0, 1.0), known, fits, missing

    def signs_of_low_rank(
        self, frame: KnownLayers, *, rtol: float = 1e-6, off: float = 0.01, n_steps: int = 30
    ) -> tuple[FloatArray, BoolArray, FloatArray]:
        """Find the signs that leave linear parts of the lowest rank.

        Where a neuron below is missing, or always on and has no wall, its weights are in the
        linear parts of all rows, and leave one dimension of them; each wrong sign adds one.  Least
        squares are solved again and again, weighted each time against the directions that the last
        solution has left: a sum of logarithms of singular values stands for the rank.

        Parameters
        ----------
        rtol : float
            A singular value of this size is none, relative to all that adds to the linear parts.
        off : float
            How far an unknown may be from 0 or 1.

        Returns
        -------
        s : ndarray, shape (m,)
        known : ndarray of bool, shape (m,)
            None where the equations are not more than the unknowns.
        directions : ndarray, shape (r, dim)
            What is left of the linear parts, one row for every neuron that is missing.
        """
        whole = ~self.undetermined.any(axis=1)
        whole = whole if whole.any() else ~whole
        v, linear = self.v[whole], self.l[whole]
        (n, m), dim = v.shape, frame.W.shape[1]
        size = float(np.linalg.norm(np.abs(v) @ np.linalg.norm(frame.W, axis=1)))
        phi, small = np.full(m, 0.5), np.inf
        for _ in range(n_steps):
            U, values, _ = np.linalg.svd(linear + (v * phi) @ frame.W)
            small = max(0.5 * min(small, float(values[0])), EPS * size)
            against = (U / np.hypot(np.append(values, np.zeros(n - len(values))), small)).T
            A = ((against @ v)[:, None, :] * frame.W.T[None]).reshape(-1, m)
            phi = np.linalg.lstsq(A, -(against @ linear).ravel())[0]
        turned = phi > 0.5
        _, values, directions = np.linalg.svd(linear + (v * turned) @ frame.W)
        r = int((values > rtol * size).sum())
        is_told = (n - r) * (dim - r) > m
        known = is_told & (np.abs(phi - turned) < off)
        return np.where(turned, -1.0, 1.0), known, directions[:r]
