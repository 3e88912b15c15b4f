"""Two inputs: borders are traced as a whole, and a network is found that has them.

A neuron whose line meets borders at three places is told by them.  Of one that bends a border
once, labels tell where, and leave its direction open: any line through there that meets no other
border has the same labels.  Lines that are not told are chosen so.
"""

from dataclasses import dataclass, field

import numpy as np

from revelu.probe.heights import Ask
from revelu.recover.labels.borders import Borders, Pool
from revelu.recover.labels.plane import Drawing, LabelledPlane
from revelu.recover.labels.polygons import EdgeEnd, Tracer, Tracing
from revelu.recover.labels.precision import Precision
from revelu.recover.labels.walks import WalkPace
from revelu.recover.method import Candidate, Disagreement, Why
from revelu.types import FloatArray


@dataclass(frozen=True)
class Planar:
    """How borders of two inputs are found."""

    n_starts: int = 6
    """Border points at which tracing begins,"""
    n_checks: int = 24
    n_passes: int = 6
    """and at which it is seen that all borders are known, ``n_passes`` times at most."""
    first_step: float = 1e-3
    """How far beside points of borders to look first."""
    n_labels: int = 1000
    """More inputs whose labels the network has to have."""
    tracing: Tracing = Tracing()  # noqa: RUF009 - frozen
    drawing: Drawing = Drawing()  # noqa: RUF009


@dataclass
class TwoInputs:
    """The search at work on one target of two inputs."""

    ask: Ask
    pool: Pool
    rng: np.random.Generator
    precision: Precision
    pace: WalkPace
    tuning: Planar
    tracer: Tracer = field(init=False)

    def __post_init__(self) -> None:
        self.tracer = Tracer(self.ask, self.rng, self.precision, self.pace, self.tuning.tracing)

    def propose(self, starts: Borders) -> Candidate:
        """Trace all borders from some of their points on, and draw a network."""
        tuning = self.tuning
        self._trace(starts.take(np.arange(min(tuning.n_starts, len(starts)))))
        for _ in range(tuning.n_passes):
            found = self.pool.borders(tuning.n_checks, self.precision.rtol)
            if not self._trace(found):
                break
        self.pool.draw(tuning.n_labels)
        return self._drawn()

    def repair(self, seen: Disagreement) -> Candidate:
        """Trace borders beside inputs whose fresh labels disagree, and draw anew."""
        self._trace(self.pool.borders_from(seen.X, 4 * len(seen.X), self.precision.rtol))
        return self._drawn()

    def _trace(self, borders: Borders) -> int:
        """Trace those borders that are not known; return how many points had one."""
        new = borders.take(~self.tracer.knows(borders.X))
        if len(new):
            self.tracer.trace(new, self.tuning.first_step)
        return len(new)

    def _drawn(self) -> Candidate:
        """A candidate whose network has all borders, with what they leave open."""
        polygons = self.tracer.polygons()
        if self.tracer.is_full:
            return self._ended(_TOO_MANY.format(n=len(polygons.edges)))
        if (polygons.ends == EdgeEnd.LOST).any():
            return self._ended(_LOST.format(n=int((polygons.ends == EdgeEnd.LOST).sum())))
        edges = polygons.edges
        for c in np.setdiff1d(np.append(edges.a, edges.b), self.pool.classes):
            # A class that no input has shows where it meets two others.
            self._see(polygons.edges.X[(edges.a == c) | (edges.b == c)])
        classes = self.pool.classes
        labels = np.searchsorted(classes, self.pool.labels)
        if not np.isin(np.append(edges.a, edges.b), classes).all():
            return self._ended(_UNSEEN)
        plane = LabelledPlane(polygons, classes, self.pool.X, labels, self.rng, self.tuning.drawing)
        drawn = plane.draw()
        if drawn is None:
            return self._ended(_NONE.format(n=len(edges), bends=len(plane.bends)))
        network = drawn.network
        if len(classes) == 2:
            network = network.then(np.array([[-1.0, 1.0]]))
        of = drawn.n_told + drawn.n_open
        notes = (_OPEN.format(told=drawn.n_told, of=of),) if of else ()
        figures = {"neurons": of, "neurons_told": drawn.n_told}
        return Candidate(network, Why.EXPLAINED, notes=notes, figures=figures)

    def _see(self, X: FloatArray) -> None:
        """Ask beside points of borders of a class that no input of the pool has."""
        h = self.tuning.first_step
        self.pool.add(np.vstack([X + h * way for way in (*np.eye(2), *-np.eye(2))]))

    def _ended(self, said: str) -> Candidate:
        return Candidate(None, Why.UNRESOLVED, obstacles=(said,))


_OPEN = (
    "in the plane of two directions on which labels depend, {told} of {of} neurons are told by "
    "three bends of borders each; labels leave open "
    "the lines of the others, or were not seen to tell them, so the network has such as bend no "
    "other border, and an affine skip for the signs: its labels are certified, its other weights "
    "are one choice of many"
)
_TOO_MANY = "borders have more than {n} edges: they may be curved"
_LOST = "{n} edges of borders end where no other was found to go on"
_UNSEEN = "a class was met beside borders alone, where it is too small to be followed"
_NONE = (
    "no network was found that has the {n} edges and {bends} bends of the borders: what bends them "
    "is none of a hidden layer, or some were not seen"
)
