"""Many inputs and fewer neurons: the search goes on in the span of the first layer's rows.

A network ``f(x) = g(W x)`` of r independent rows is one of r coordinates, and there a normal of a
border takes r heights instead of d.  A direction that borders hardly show is not in the span at
first.  Then labels at an input and at its projection differ, and the border between the two shows
the direction: the span is made wider, and the search begins anew.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from revelu.oracle import Oracle
from revelu.recover.method import Candidate, Disagreement, Tell, Why
from revelu.recover.span import LabelSpan
from revelu.recover.span.boundary import Border, find_borders
from revelu.recover.span.label_search import LabelSpanSearch as SpanSearch
from revelu.recover.subspace import Subspace
from revelu.types import FloatArray


@dataclass(frozen=True)
class Slicing:
    """When a network is looked for in the span of its first layer."""

    many_inputs: int | None = 48
    """Targets of fewer inputs are searched in all coordinates first, and in the span where that
    finds nothing; None: never in the span."""
    most_directions: float = 0.75
    """In all coordinates, too, are searched those that look at a larger share of directions,"""
    largest_angle: float = 1e-8
    """and those whose span is told to fewer digits, in radians."""
    n_empty_looks: int = 32
    """Looks around, of eight places each, that must find nothing to add: of all places fewer than
    1.2% would then, at 95% confidence."""

    def takes(self, d: int) -> bool:
        """Whether a target of ``d`` inputs is searched in the span first."""
        return self.many_inputs is not None and d >= self.many_inputs


class Inside(Protocol):
    """A search in few coordinates."""

    @property
    def classes(self) -> FloatArray:
        """The labels that the outputs of a candidate stand for, ascending."""

    @property
    def noise_of_places(self) -> float:
        """How precisely labels tell borders, relative to an input's size."""

    def propose(self) -> Candidate:
        """Search until a network explains all border points, or there is a reason to end."""

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Go on beside inputs whose fresh labels disagree."""


@dataclass
class InSpan:
    """A search in coordinates of the first layer's span, and what it says of all inputs."""

    oracle: Oracle
    rng: np.random.Generator
    tell: Tell
    tuning: Slicing
    begin: Callable[[Oracle], Inside]
    """Oracle -> Inside.  Begins a search of a target of few inputs."""
    span: SpanSearch = field(init=False)
    subspace: Subspace = field(init=False)
    inside: Inside | None = field(default=None, init=False)
    """That search; None where the span is not known, or is nearly all of the inputs."""

    def __post_init__(self) -> None:
        self.span = SpanSearch(self.oracle, self.rng, None)

    def propose(self) -> Candidate | None:
        """Find the span, then a network inside; None where all coordinates are to be searched."""
        tuning, d = self.tuning, self.oracle.dim_in
        self.inside = None
        self.tell("looking for directions")
        method = LabelSpan(tuning.n_empty_looks, tuning.largest_angle, tuning.most_directions)
        why, _ = method.run(self.span, self.tell)
        # Borders of one direction are points, and tell no weight.
        if why is not Why.EXPLAINED or not 1 < self.span.rank < tuning.most_directions * d:
            return None
        # Rounding leaves the rows that the search has taken orthonormal to a few digits less.
        self.subspace = Subspace(np.linalg.qr(self.span.known.rest.taken.T)[0].T)
        inner = Oracle(self._ask, self.subspace.dim, batch_rows=sys.maxsize)
        self.inside = self.begin(inner)
        return self._whole(self.inside.propose())

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Make the span wider where it lacks a direction, or go on inside of it."""
        if self.inside is None:
            return None
        missed = self._missed(seen.X)
        if missed:
            before = self.span.rank
            self.span.learn_from(missed)
            return self.propose() if self.span.rank > before else None
        X, worst = (self.subspace.coordinates(X) for X in (seen.X, seen.worst[None]))
        candidate = self.inside.repair(replace(seen, X=X, worst=worst[0]))
        return None if candidate is None else self._whole(candidate)

    def _ask(self, Z: FloatArray) -> FloatArray:
        return self.oracle(self.subspace.points(Z))

    def _missed(self, X: FloatArray) -> list[Border]:
        """Borders between inputs and their projections, which no move out of the span meets."""
        P = self.subspace.points(self.subspace.coordinates(X))
        there, here = self.oracle(np.vstack([X, P]))[:, 0].reshape(2, -1)
        rows = np.flatnonzero(there != here)
        if not len(rows):
            return []
        return find_borders(self.oracle, P[rows], X[rows], here[rows], self.span.nearness)

    def _whole(self, candidate: Candidate) -> Candidate:
        """The candidate of all inputs."""
        network, layers = candidate.network, candidate.layers
        if network is not None:
            network = self.subspace.in_all_coordinates(network)
        lifted = tuple((W @ self.subspace.basis, b) for W, b in layers)
        figures = {**candidate.figures, "directions": self.subspace.dim}
        return replace(candidate, network=network, layers=lifted, figures=figures)
