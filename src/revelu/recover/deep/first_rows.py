"""The first layer, of any width, from a few long lines (DG21, Algorithm 7, for more rows).

A hyperplane of the first layer bends the function wherever it goes; one of a later layer ends or
turns.  Rows that one line has shown are looked past on the next: what is new there is tested alike,
and what is no first layer's is a seed of what lies above.
"""

import logging
from dataclasses import dataclass, field, replace

import numpy as np

from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.hyperplane import bend_everywhere
from revelu.probe.kink_lines import Sharpening
from revelu.probe.line import Ask
from revelu.recover.deep.first_layer import FirstLayerSearch
from revelu.recover.deep.seeds import Seed, SeedSearch, new_hyperplanes
from revelu.recover.deep.stack import Stack
from revelu.recover.line import Peeling
from revelu.recover.method import Layer
from revelu.types import FloatArray

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FirstRows:
    """The search for the rows of a first layer, and what tunes it."""

    seeds: SeedSearch = field(default_factory=SeedSearch)
    segments: tuple[int, ...] = (1, 2, 2, 4, 4, 4)
    """Long segments of one round after the other."""
    quiet: int = 1
    """Rounds without a new row that end the search."""
    reach: float = 5.0
    """How far they go to either side, in standard deviations of an input."""
    start: float = 0.5
    """The standard deviation of their middles."""
    bound: float = np.inf
    """The largest coordinate of an input that may be asked."""
    wanted: int = 4
    mostly: float = 0.9
    """Points at which a row has to bend the function, and the share of all that are looked at."""
    sharp: float = 1e-13
    """A row whose standard error is larger is measured again,"""
    costly: float = 2.0
    """unless that takes more queries, as a share of those asked so far."""
    sharpening: Sharpening = field(default_factory=Sharpening)

    def find(
        self, oracle: Oracle, noise: NoiseFloor, line: Peeling, rng: np.random.Generator
    ) -> tuple[Layer, list[Seed]]:
        """Find the rows, whose signs are not known, and seeds of neurons above.

        None where what lines show is no first layer's.

        Parameters
        ----------
        line : Peeling
            The kinks of one line, with a hyperplane each.

        Raises
        ------
        LimitReachedError, SaturatedError, CurvedError
        """
        search = FirstLayerSearch(oracle, noise, rng)
        if line.scan.complete:
            first = search.find(line)
            if first.is_others:
                return (np.empty((0, oracle.dim_in)), np.empty(0)), []
            if len(first.W) < oracle.dim_in:
                return self._sharp(oracle, noise, first.W, first.b, search.errors, rng), []
        rows, errors = search.rows, search.errors
        if len(rows):
            # One line's hyperplanes have passed a lighter test.
            sure = bend_everywhere(
                oracle,
                noise,
                rows[:, :-1],
                rows[:, -1],
                rng,
                wanted=self.wanted,
                mostly=self.mostly,
            )
            rows, errors = rows[sure], errors[sure]
        return self.find_others(oracle, noise, rows, errors, rng)

    def find_others(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        rows: FloatArray,
        errors: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[Layer, list[Seed]]:
        """Find what is missing of the layer, given rows ``(m, d + 1)`` and how far they are off."""
        seeds: list[Seed] = []
        quiet, d = 0, oracle.dim_in
        for n in self.segments:
            starts, ends = self._long_segments(n, d, rng)
            known = Stack(d, [rows[:, :-1]], [rows[:, -1]])
            breaks = known.breaks_between(starts, ends)
            found = self.seeds.find(oracle, noise, starts, ends, breaks, rng)
            more = self._new_rows(oracle, noise, rows, found, rng)
            seeds += [seed for seed in found if seed not in more]
            rows = np.vstack([rows, *(seed.hyperplane[None] for seed in more)])
            errors = np.append(errors, [seed.error for seed in more])
            quiet = 0 if more else quiet + 1
            if quiet == self.quiet:
                break
        layer = self._sharp(oracle, noise, rows[:, :-1], rows[:, -1], errors, rng)
        log.info("first layer: %d rows, %d queries", len(rows), oracle.n_queries)
        return layer, seeds

    def find_among(
        self, ask: Ask, noise: NoiseFloor, layer: Layer, seeds: list[Seed], rng: np.random.Generator
    ) -> Layer:
        """Find rows that lines have missed of a layer, among seeds where a network is wrong."""
        found = self._new_rows(ask, noise, np.column_stack(layer), seeds, rng)
        rows = np.array([seed.hyperplane for seed in found]).reshape(-1, layer[0].shape[1] + 1)
        errors = np.array([seed.error for seed in found])
        how = replace(self.sharpening, bound=self.bound)
        W, b, _ = how.measure(ask, noise, rows[:, :-1], rows[:, -1], errors, rng)
        return W, b

    def _sharp(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        W: FloatArray,
        b: FloatArray,
        errors: FloatArray,
        rng: np.random.Generator,
    ) -> Layer:
        """Rows with those measured again that are vague, for errors grow from layer to layer.

        Each weight takes four answers: with fewer rows than inputs they stay as they are if that
        is much more than was asked so far.
        """
        W, b, vague = W.copy(), b.copy(), np.flatnonzero(errors > self.sharp)
        n, d = len(vague), W.shape[1]
        if len(W) < d and 4 * n * d > self.costly * oracle.n_queries:
            return W, b
        how = replace(self.sharpening, bound=self.bound)
        W[vague], b[vague], _ = how.measure(oracle, noise, W[vague], b[vague], errors[vague], rng)
        return W, b

    def _long_segments(
        self, n: int, d: int, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Where long segments start and end, shape (n, d)."""
        x = np.clip(self.start * rng.standard_normal((n, d)), -self.bound / 2, self.bound / 2)
        v = rng.standard_normal((n, d))
        v *= self.reach * np.sqrt(d) / np.linalg.norm(v, axis=1)[:, None]
        to_face = (
            (self.bound - np.sign(v) * x) / np.abs(v),
            (self.bound + np.sign(v) * x) / np.abs(v),
        )
        ahead, behind = (np.minimum(t.min(axis=1), 1.0)[:, None] for t in to_face)
        return x - behind * v, x + ahead * v

    def _new_rows(
        self,
        ask: Ask,
        noise: NoiseFloor,
        rows: FloatArray,
        found: list[Seed],
        rng: np.random.Generator,
    ) -> list[Seed]:
        """The seeds that are new rows of the first layer, one of each, the most precise."""
        new = new_hyperplanes(found, rows)
        if not new:
            return new
        some = np.array([seed.hyperplane for seed in new])
        is_row = bend_everywhere(
            ask,
            noise,
            some[:, :-1],
            some[:, -1],
            rng,
            wanted=self.wanted,
            mostly=self.mostly,
            bound=self.bound,
        )
        chosen = {seed for seed, is_one in zip(new, is_row, strict=True) if is_one}
        return [seed for seed in found if seed in chosen]
