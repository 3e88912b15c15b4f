"""Neurons that are nearly one, in coordinates in which they are not.

Close neurons (CKM21, Definition 3.7) have hyperplanes that run side by side.  Across them
the coordinates ``x = p + S y`` are stretched until the hyperplanes are far apart, along
them they stay: in ``y`` the neurons are no longer close, and a line across all of them
separates what can be separated at all.  A line of half-length ``T`` tells kinks apart that
are ``sqrt(nu T)`` from each other, so that the view is narrowed until they fill it.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.errors import SaturatedError
from revelu.network import Network
from revelu.numerics.confidence import SIGMAS
from revelu.oracle import NoiseFloor
from revelu.probe.kinks import find_kinks
from revelu.probe.line import Askable, Line
from revelu.probe.scan import LineScan
from revelu.probe.view import View
from revelu.recover.close.coarsening import coarsen
from revelu.recover.shallow.line_neurons import peel
from revelu.types import FloatArray


class Rescaled(View):
    """A target in the coordinates ``y`` of ``x = p + S y``, less its value at ``p``.

    Parameters
    ----------
    target : Askable
    p : ndarray, shape (d,)
    n : ndarray, shape (d,)
        Unit normal.
    across, along : float
        What ``S`` multiplies by in the direction of ``n``, and orthogonal to it.
    """

    def __init__(
        self, target: Askable, p: FloatArray, n: FloatArray, across: float, along: float
    ) -> None:
        super().__init__(target, len(p))
        self.p, self.n, self.across, self.along = p, n, across, along
        # What does not vary here would only hide the digits of what does.
        self.base = np.zeros(1)
        self.base = self(np.zeros((1, self.dim_in)))[0]

    def inputs(self, Z: FloatArray) -> FloatArray:
        """Return where the target is asked, (n, d) -> (n, d)."""
        t = Z @ self.n
        rest = Z - np.outer(t, self.n)
        return self.p + self.along * rest + np.outer(self.across * t, self.n)

    def __call__(self, X: FloatArray) -> FloatArray:
        """Ask one round, (n, d) -> (n, k); raises SaturatedError where nothing is said."""
        Y = super().__call__(X)
        if not np.isfinite(Y).all():
            raise SaturatedError("the target is saturated beside a hyperplane")
        return Y - self.base

    def restored(self, network: Network) -> Network:
        """The neurons of a network in ``y``, as neurons in ``x`` that are on beyond ``p``."""
        (W, A), (b, _) = network.weights, network.biases
        t = W @ self.n
        rest = W - np.outer(t, self.n)
        V = rest / self.along + np.outer(t / self.across, self.n)
        c = b - V @ self.p
        back = np.where(t < 0, -1.0, 1.0)
        return Network([V * back[:, None], A], [c * back, np.zeros(len(A))])


@dataclass
class Zoomed:
    """What a line across the hyperplanes shows in rescaled coordinates."""

    zoom: "Zoom"
    rescaled: Rescaled
    scan: LineScan
    """Of the line."""
    nu: float
    """Noise of the rescaled answers, relative to them."""
    blurred: float = field(default=0.0, init=False)
    """What kinks too near to be measured, taken as one, change in L2 under N(0, I), about."""

    @property
    def is_one_neuron(self) -> bool:
        """Whether there is one kink, and proof that it is one."""
        return len(self.scan.kinks) == 1 and bool(self.scan.is_single.all())

    def neurons(self, rng: np.random.Generator) -> Network | None:
        """Recover the neurons that the line crosses.

        Returns
        -------
        Network or None
            The neurons, all on far along the normal, with ``c = 0`` and no skip; of width 0
            where there is no kink; None where they were not understood.
        """
        k, d = len(self.scan.sigma), self.rescaled.dim_in
        scan = self.scan
        try:
            if len(scan.kinks):
                narrow = self.zoom.narrow * float(np.sqrt(self.nu))
                scan = coarsen(self.rescaled, scan, narrow, self.zoom.faint_slope(scan))
                if 0 < len(scan.kinks) < len(self.scan.kinks):
                    self.blurred = self._strips(scan.kinks)
            if not len(scan.kinks):
                return Network([np.zeros((0, d)), np.zeros((k, 0))], [[], np.zeros(k)])
            peeled = peel(self.rescaled, scan, self.zoom.precise * self.nu, rng)
        except SaturatedError:
            return None
        return None if peeled.n_unresolved else self.rescaled.restored(peeled.network)

    def _strips(self, kept: FloatArray) -> float:
        """The L2 norm of triangles between kinks that are one among those kept, at most."""
        kinks, jumps = self.scan.kinks, np.linalg.norm(self.scan.jumps, axis=1)
        gaps = np.diff(kinks)
        apart = np.abs(kinks[:, None] - kept)
        nearest, off = apart.argmin(axis=1), apart.min(axis=1)
        parted = (nearest[:-1] != nearest[1:]) & (np.maximum(off[:-1], off[1:]) < gaps / 4.0)
        heights = np.maximum(jumps[:-1], jumps[1:]) * gaps
        # Of a strip as wide as the gap, N(0, 1) has its width over sqrt(2 pi) at most.
        shares = self.rescaled.across * gaps / np.sqrt(2.0 * np.pi)
        return float((heights * np.sqrt(shares))[~parted].sum())


@dataclass(frozen=True)
class Zoom:
    """A look at neurons side by side, from ever nearer."""

    max_views: int = 6
    fill: float = 1.5
    wide: float = 4.0
    """The view is narrowed to ``fill`` times what the kinks span, unless ``wide`` times that is
    no narrower than it was."""
    unresolved: float = 100.0
    """Of kinks at one place, what they may span, in units of ``sqrt(nu)``."""
    closer: float = 500.0
    closest: float = 1e-5
    """What looks like one neuron is looked at again from ``closest`` times nearer, down to this
    half-length."""
    narrow: float = 30.0
    """Pieces of a half-angle under ``sqrt(nu)`` times this are not measured."""
    precise: float = 0.008
    """A factor on the noise that peeling is told: an error of a rescaled row counts little, for
    it bends what is between hyperplanes that nearly coincide."""
    faint: float = 30.0
    """A kink whose slope is under ``faint`` standard errors of an answer is rounding."""

    def look(
        self,
        target: Askable,
        noise: NoiseFloor,
        p: FloatArray,
        n: FloatArray,
        half_length: float,
        room: float,
        rng: np.random.Generator,
    ) -> Zoomed | None:
        """Look at the neurons whose hyperplanes pass ``p`` within a distance, side by side.

        Parameters
        ----------
        target : Askable
            Affine around ``p`` but for those neurons.
        noise : NoiseFloor
            Of the answers.
        p, n : ndarray, shape (d,)
            A point among the hyperplanes, and their unit normal, nearly.
        half_length : float
            How far from ``p`` along ``n`` they are looked for.
        room : float
            How far orthogonal to ``n`` nothing else bends the target.

        Returns
        -------
        Zoomed or None
            As narrow as the kinks found; None where the line was not understood.
        """
        view = None
        for _ in range(self.max_views):
            try:
                rescaled = Rescaled(target, p, n, half_length, min(room, 1.0))
                nu, scale = _relative_noise(rescaled, noise)
                line = Line(np.zeros_like(p), n)
                scan = find_kinks(rescaled, line, nu, scale, rng, (-1.0, 1.0), through=True)
            except SaturatedError:
                return None
            if not scan.complete:
                return None
            view = Zoomed(self, rescaled, scan.without_faint_kinks(self.faint_slope(scan)), nu)
            if not len(view.scan.kinks):
                return view
            if view.is_one_neuron:
                if half_length <= self.closest:
                    return view
                p = p + half_length * float(view.scan.kinks[0]) * n
                half_length = max(half_length / self.closer, self.closest)
                continue
            lo, hi = float(view.scan.kinks.min()), float(view.scan.kinks.max())
            # A cluster that the search could not take apart is as narrow as its resolution.
            span = (hi - lo) / 2 if hi > lo else self.unresolved * float(np.sqrt(nu))
            if self.wide * self.fill * span >= 1.0:
                return view
            p = p + half_length * (lo + hi) / 2 * n
            half_length *= self.fill * max(span, 4.0 * SIGMAS * nu)
        return view

    def faint_slope(self, scan: LineScan) -> float:
        """A slope along a line that is rounding."""
        return self.faint * float(np.linalg.norm(scan.sigma))


def _relative_noise(view: Rescaled, noise: NoiseFloor) -> tuple[float, FloatArray]:
    """The noise of rescaled answers, and how large they are at both ends of the line."""
    size = np.abs(view(np.outer([-1.0, 1.0], view.n))).max(axis=0)
    growth = float(noise.growth(view.p))
    absolute = noise.nu * noise.scale * growth
    size = np.maximum(np.asarray(size), absolute)
    # An output that is always 0 has neither; where all are, rounding is the least noise there is.
    relative = np.divide(absolute, size, out=np.zeros_like(size), where=size > 0)
    return max(float(relative.max()), float(np.finfo(float).eps)), size
