"""Recovery of a convolution, what pools it, and the dense layers above, from queries.

    f(x) = A pool(relu(w * x + b)) + c

1. A line along a pixel at a corner of the image shows a kink for every filter.
2. Moves of the pixels around it give the filters' weights: all other neurons cancel.
3. Filters are what the rows seen are copies of; the slopes at the ends of the line say their signs.
4. Stride, pads and windows are proposed, and tested by predicted kinks at places never seen.
5. The dense layer takes an answer a feature; a few answers more give the filters' last digits.

Where another hidden layer lies above the filters, ``lowest_filters`` tells filters from its
neurons, and ``upper_units`` finds those; steps 4 and 5 follow with the features for inputs.

So the cost goes with the filters and with the features that the outputs read, not with the weights
of a dense network of the same function.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network import LayeredNetwork
from revelu.network.images import Image
from revelu.network.layers import Convolution, Pooling
from revelu.numerics.interruption import interruptible
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.method import Candidate, Disagreement, Law, Method, Search, Why
from revelu.recover.structured.below import KnownFilters
from revelu.recover.structured.density import Density
from revelu.recover.structured.geometry import Geometry
from revelu.recover.structured.in_box import StructureInBox
from revelu.recover.structured.joint_fit import JointFit
from revelu.recover.structured.leaky_filters import LeakyFilters
from revelu.recover.structured.lowest_filters import LowestFilters
from revelu.recover.structured.pixel_lines import PixelLines
from revelu.recover.structured.pixel_rows import PixelRows
from revelu.recover.structured.places import Places
from revelu.recover.structured.seen import Corner, Layers, Row, Seen
from revelu.recover.structured.sharing import Filter, find_filters, in_one_frame
from revelu.recover.structured.signs import MissingBiases, sign_by_ties, signs_of, window_steps
from revelu.recover.structured.upper_units import UpperUnits, layouts
from revelu.types import FloatArray

__all__ = ["SharedWeights"]

log = logging.getLogger(__name__)


@dataclass
class StructureSearch(Search):
    """Filters from pixels, the layers around them, and the dense layer above."""

    method: "SharedWeights"
    image: Image = field(init=False)
    asked: FloatArray = field(init=False)
    answers: FloatArray = field(init=False)
    """Shape (n, d) and (n, k).  What filters are fitted to."""
    found: Layers = field(init=False)
    """As they were last fitted: filters, the slopes of leaky units, and what pools them."""
    why_not: list[str] = field(default_factory=list, init=False)
    """What kept the pixels tried from showing filters."""
    shown: tuple[Convolution, Pooling | None] | None = field(default=None, init=False)
    """Filters that the pixel tried last has shown, and what pools them."""
    last_line: tuple[Seen, list[Row]] | None = field(default=None, init=False)
    """What a pixel's line has shown last."""
    lines_below: PixelLines = field(init=False)
    """Those that were last asked for filters below other neurons."""
    below: KnownFilters | None = field(default=None, init=False)
    """Layers below those that are fitted."""
    is_stacked: bool = field(default=False, init=False)
    """Filters were found below other neurons."""
    n_left_open: int = field(default=0, init=False)
    """Kinks of the last line along a pixel without a row, and filters without a sign."""

    def __post_init__(self) -> None:
        self.image = Image(self.oracle.image or (1, 1, self.oracle.dim_in))
        self.asked = np.empty((0, self.oracle.dim_in))
        self.answers = np.empty((0, len(self.noise.scale)))

    def propose(self) -> Candidate:
        """Try one pixel after another until one shows filters that explain fresh answers."""
        with interruptible(self.oracle.check_time):
            return self._proposed()

    def _proposed(self) -> Candidate:
        self.tell("looking for filters")
        lines, (corner, *others) = self.method.lines, self._pixels()
        network = None
        try:
            is_local = not lines.act_together(self.oracle, self.noise, self.image, self.rng)
            if is_local:
                network = self._single(corner)
            # Filters that recur and leave answers unexplained are not all: some are zero at the
            # corner, and its neighbours show them, for less than the searches below would ask.
            is_short = network is None and self.shown is not None and self._all_recur(*self.shown)
            if is_short:
                network = self._single(*others)
            if network is None and is_local:
                network = self._leaky(corner)
            if network is None:
                network = self._stacked(corner, is_local=is_local)
            if network is None and is_local and not (is_short or self.is_stacked):
                network = self._single(*others)
            if not is_local and not self.is_stacked:
                self.why_not = ["neurons see pixels that are far apart"]
        except LimitReachedError as error:
            return Candidate(network, Why.LIMIT, obstacles=(str(error),))
        except SaturatedError as error:
            return Candidate(None, Why.NOT_SHARED, obstacles=(str(error),))
        if network is not None:
            notes = network.lost_in_onnx if self.noise.is_exact else ()
            return Candidate(network, Why.EXPLAINED, notes=notes)
        return self._not_shared(is_local=is_local)

    def _not_shared(self, *, is_local: bool) -> Candidate:
        """No network; where there are filters nevertheless, and how large a dense one would be."""
        why = "; ".join(dict.fromkeys(self.why_not)) or "no pixel shows filters"
        said = f"no shared weights: {why}"
        if not (is_local or self.is_stacked) or not self.noise.is_exact:
            return Candidate(None, Why.NOT_SHARED, obstacles=(said,))
        try:
            n = self.method.density.n_parameters(self.oracle, self.noise, self.rng)
        except LimitReachedError as error:
            return Candidate(None, Why.LIMIT, obstacles=(said, str(error)))
        is_small = n <= self.method.most_dense
        price = (
            f"pixels act together with near ones alone, and a dense network of the same function "
            f"has some {n:,} parameters or more"
        )
        if is_small:
            self.tell(f"{price}, for a query or more each")
            return Candidate(None, Why.NOT_SHARED, obstacles=(said,))
        price += ": methods for dense ones, a query or more for each, were not tried"
        return Candidate(None, Why.UNRESOLVED, obstacles=(said, price))

    def at_corner(self, *, is_single: bool, is_stacked: bool) -> Corner:
        """What the corner shows; nothing is fitted, so that it costs little.

        Parameters
        ----------
        is_single, is_stacked : bool
            Whether to look for filters that outputs read, and for some below other neurons.
        """
        lines, pixel = self.method.lines, self._pixels()[0]
        is_local = not lines.act_together(self.oracle, self.noise, self.image, self.rng)
        if is_local and is_single:
            found = self._filters_at(pixel)
            if found is not None and self._all_recur(*found):
                single = (found[0], None, found[1])
                return Corner(is_local, (single,), n_answers=self._n_answers(*single))
        below = self._below(pixel, is_local=is_local) if is_stacked else None
        if below is not None:
            return Corner(is_local, ((below.conv, None, below.pool),), is_stacked=True)
        leaky = tuple(self._leaky_at(pixel)) if is_local else ()
        return Corner(is_local, leaky, n_answers=self._n_answers(*leaky[0]) if leaky else None)

    def _all_recur(self, conv: Convolution, pool: Pooling | None) -> bool:
        """Whether every filter is at other places: rows of neurons above filters are at one."""
        kernels, biases = conv.kernels, conv.biases
        # Dilated kernels are looked at with their zeros.
        full = np.zeros((*kernels.shape[:2], *conv.extent))
        full[:, :, :: conv.dilations[0], :: conv.dilations[1]] = kernels
        places = Places(self.oracle, self.noise, self.image, full, biases, self.rng)
        ring = 1 if pool is None or pool.kind != "max" else max(pool.size) - 1
        n = int(np.prod(conv.places))
        for f in range(len(kernels)):
            drawn = self.rng.permutation(np.arange(1, n))[: self.method.n_places]
            at = np.column_stack(np.unravel_index(drawn, conv.places))
            origins = at * np.array(conv.strides) - np.array(conv.pads[:2])
            where = [(int(i), int(j)) for i, j in origins]
            if not places.columns(f, where, conv.strides, ring=ring)[1].any():
                self.why_not.append("some neurons' weights do not recur")
                return False
        return True

    def _single(self, *pixels: int) -> LayeredNetwork | None:
        """Layers of a single convolution, if what a pixel shows of them explains fresh answers."""
        for pixel in pixels:
            self.shown = self._filters_at(pixel)
            if self.shown is not None:
                conv, pool = self.shown
                network = self._explained(*self._fitted(conv, None, pool))
                if network is not None:
                    return network
        return None

    def _leaky(self, pixel: int) -> LayeredNetwork | None:
        """As :meth:`_single`, of leaky units."""
        for found in self._leaky_at(pixel):
            network = self._explained(*self._fitted(*found))
            if network is not None:
                return network
        return None

    def _leaky_at(self, pixel: int) -> Sequence[Layers]:
        """Filters of leaky units that a pixel shows, their slopes, and what may pool them."""
        if not self.noise.is_exact:
            return ()
        method, rtol = self.method, self.method.digits * self.noise.half_digits
        lines = PixelLines(self.oracle, self.noise, self.image, self.rng, method.lines, pixel)
        return method.leaky.find(lines, method.geometry, rtol, self.last_line)

    def _stacked(self, pixel: int, *, is_local: bool) -> LayeredNetwork | None:
        """A convolution and a hidden layer above, if they explain fresh answers."""
        below = self._below(pixel, is_local=is_local)
        if below is None:
            return None
        method, rtol = self.method, self.method.digits * self.noise.half_digits
        lines = self.lines_below
        self.is_stacked = True
        log.info("filters below others: %s, %s", below.conv.kernels.shape, below.pool)
        self.tell("looking for neurons above the filters")
        for self.below, units in method.units.search(lines, below, rtol, is_local=is_local):
            for conv, pool in layouts(units, self.below.shape):
                network = self._explained(*self._fitted(conv, None, pool))
                if network is not None:
                    return network
        self.below = None
        self.why_not.append("neurons above the filters are not understood")
        return None

    def _below(self, pixel: int, *, is_local: bool) -> KnownFilters | None:
        """Filters below other neurons, as the lines along a pixel show them."""
        if not self.noise.is_exact:
            return None
        self.tell("looking for filters below other neurons")
        method, rtol = self.method, self.method.digits * self.noise.half_digits
        for _ in range(method.max_lines):
            lines = PixelLines(self.oracle, self.noise, self.image, self.rng, method.lines, pixel)
            self.lines_below = lines
            below = method.lowest.find(lines, method.geometry, rtol, is_local=is_local)
            if below is not None or not lines.has_filters:
                return below
        return None

    def _explained(self, network: LayeredNetwork, left: float) -> LayeredNetwork | None:
        """The network, if it leaves no more of the answers than their errors."""
        floor = self.method.floor if self.below is None else self.method.floor_above
        if left <= floor * self.noise.overall:
            return network
        self.why_not.append(f"filters leave {left:.1g} of the answers unexplained")
        return None

    def repair(self, seen: Disagreement) -> Candidate | None:
        """Fit to as many answers again where the network is wrong by little."""
        if self.n_repairs == self.method.max_repairs or seen.error > self.method.nearly:
            return None
        self.n_repairs += 1
        try:
            self.tell("fitting to more answers")
            self._ask(int(self.method.more * len(self.asked)))
            network, _ = self._fit(*self.found)
        except (LimitReachedError, SaturatedError) as error:
            return Candidate(None, Why.of(error), obstacles=(str(error),))
        return Candidate(network, Why.EXPLAINED)

    def _pixels(self) -> list[int]:
        """The first corner, its neighbours inwards, and the centre."""
        channels, height, width = self.image.shape
        steps = [0, 1, 2]
        found = [self.image.pixel(0, min(s, height - 1), min(s, width - 1)) for s in steps]
        found.append(self.image.pixel(channels - 1, height // 2, width // 2))
        return list(dict.fromkeys(found))

    def _filters_at(self, pixel: int) -> tuple[Convolution, Pooling | None] | None:
        """Filters that a pixel shows, and the layers around them; at a corner of a few lines."""
        best = None
        # Lines along other pixels show many places, and cost as much.
        n_lines = self.method.max_lines if pixel == self._pixels()[0] else 1
        for _ in range(n_lines):
            found = self._filters_on_line(pixel)
            if found is not None and (best is None or len(found[0].kernels) > len(best[0].kernels)):
                best = found
            # Kinks near each other have no rows, and of windows a line may tell some signs alone.
            if found is None or not self.n_left_open:
                break
        return best

    def _filters_on_line(self, pixel: int) -> tuple[Convolution, Pooling | None] | None:
        """As :meth:`_filters_at`, of one line."""
        method, oracle, noise, image = self.method, self.oracle, self.noise, self.image
        line = self._line(pixel)
        if line is None:
            return None
        self.last_line = seen, rows = line
        self.n_left_open = len(seen.kinks) - len(rows)
        rtol = method.digits * noise.half_digits
        filters = find_filters(rows, image, rtol)
        known = self._with_signs(seen, rows, filters, rtol)
        if known is None:
            return None
        kernels, biases, origin = in_one_frame(known[0], image, pixel)
        places = Places(oracle, noise, image, kernels, biases, self.rng)
        found = method.geometry.find(places, origin, known[1])
        if found is None:
            self.why_not.append("a neuron's weights do not recur at another place")
        else:
            log.info("filters: %s, %s", found[0].kernels.shape, found[1])
        return found

    def _line(self, pixel: int) -> tuple[Seen, list[Row]] | None:
        """A line along a pixel on which all kinks, or the most of a few lines, have rows."""
        lines, best = self.method.lines, None
        for _ in range(self.method.max_lines):
            seen = lines.scan(self.oracle, self.noise, pixel, self.rng)
            if seen is None or not len(seen.kinks):
                return None
            rows = lines.measure(self.oracle, self.noise, self.image, seen)
            if rows is None:
                self.why_not.append("neurons see most of the image")
                return None
            if best is None or len(rows) * len(best[0].kinks) > len(best[1]) * len(seen.kinks):
                best = seen, rows
            if len(rows) == len(seen.kinks):
                break
        if best is None or not best[1]:
            self.why_not.append("kinks are too near each other")
            return None
        return best

    def _with_signs(
        self, seen: Seen, rows: list[Row], filters: list[Filter], rtol: float
    ) -> tuple[list[Filter], int] | None:
        """Filters turned as they are, the strongest first, and how far windows reach, in places."""
        steps = window_steps(filters, self.image)
        signs = signs_of(seen, rows, filters, rtol)
        if signs is None:
            return self._told_by_ties(filters, rtol)
        turned = [one.turned(s) for s, one in zip(signs, filters, strict=True)]
        jumps = np.array([rows[one.copies[0][0]].jump for one in filters])
        if any(np.isnan(one.b) for one in turned):
            lines = self.method.lines
            asked, how = (self.oracle, self.noise, self.image), (self.rng, lines, rtol)
            found = self.method.biases.find(*asked, turned, jumps, seen.pixel, *how)
            if found is None:
                self.why_not.append("filters tie wherever they were seen")
                return None
            turned = found
        order = np.argsort(-np.linalg.norm(jumps, axis=1))
        reach = max((max(step) for step in steps), default=1)
        least = min((max(step) for step in steps), default=1)
        return [turned[f] for f in order], reach // least

    def _told_by_ties(self, filters: list[Filter], rtol: float) -> tuple[list[Filter], int] | None:
        """Filters whose own zeros were seen, where the largest of windows is taken."""
        found = []
        for one in filters:
            if np.isnan(one.b) or abs(one.b) <= rtol:
                continue
            sign = sign_by_ties(one, self.oracle, self.noise, self.image, self.rng)
            if sign:
                found.append(one.turned(sign))
        if not found:
            self.why_not.append("the signs of filters are left open")
            return None
        self.n_left_open += len(filters) - len(found)
        return found, 1

    def _fitted(
        self, conv: Convolution, slopes: FloatArray | None, pool: Pooling | None
    ) -> tuple[LayeredNetwork, float]:
        """Ask as many answers as there are features, and a few more, and fit all of it to them."""
        self.tell("fitting filters and the dense layer")
        self._ask(self._n_answers(conv, slopes, pool))
        self._show_all(conv, pool)
        return self._fit(conv, slopes, pool)

    def _n_answers(self, conv: Convolution, slopes: FloatArray | None, pool: Pooling | None) -> int:
        """As many answers as there are features, and a few more."""
        method, exact = self.method, self.noise.is_exact
        n_features = (conv.size_out if pool is None else pool.size_out) + 1
        n_shared = conv.kernels.size + len(conv.biases) + (0 if slopes is None else len(slopes))
        spare = method.spare if exact else method.spare_if_rounded
        equations = method.equations * n_shared / len(self.noise.scale)
        return n_features + int(np.ceil(max(spare * n_features, equations, method.fewest)))

    def _show_all(self, conv: Convolution, pool: Pooling | None) -> None:
        """Ask where features above known layers are on that hardly any answer shows."""
        if self.below is None:
            return
        below, method, above = self.below, self.method, KnownFilters(conv, pool)
        X = self._drawn(method.most_drawn)
        H, drawn = (
            above.features(below.features(Z).reshape(len(Z), -1)).reshape(len(Z), -1)
            for Z in (self.asked, X)
        )
        missing, is_on = method.fewest - np.count_nonzero(H, axis=0), drawn > 0.0
        chosen: set[int] = set()
        for j in np.flatnonzero(missing > 0):
            chosen.update(np.flatnonzero(is_on[:, j])[: missing[j]].tolist())
        self._answer(X[sorted(chosen)])

    def _ask(self, n: int) -> None:
        """Ask at random inputs of several sizes until there are ``n`` answers."""
        if n > len(self.asked):
            self._answer(self._drawn(n - len(self.asked)))

    def _drawn(self, n: int) -> FloatArray:
        """Inputs of several sizes, (n, d)."""
        least, most = np.log(self.method.sizes)
        size = np.exp(self.rng.uniform(least, most, (n, 1)))
        X = size * self.rng.standard_normal((n, self.oracle.dim_in))
        return self.oracle.in_float32(X)

    def _answer(self, X: FloatArray) -> None:
        """Keep the answers to inputs (n, d)."""
        if len(X):
            self.answers = np.concatenate([self.answers, self.oracle(X)])
            self.asked = np.concatenate([self.asked, X])

    def _fit(
        self, conv: Convolution, slopes: FloatArray | None, pool: Pooling | None
    ) -> tuple[LayeredNetwork, float]:
        """Fit all of it to what was asked; with the network, what that leaves of the answers."""
        weights, below = 1.0 / self.noise.growth(self.asked), self.below
        X = self.asked if below is None else below.features(self.asked).reshape(len(weights), -1)
        fit = JointFit(conv, slopes, pool, X, self.answers, weights, self.rng)
        own = self.noise.overall * self.method.settled
        # The errors of rounded answers hide the last ones of filters, and a step costs no query.
        enough = own if self.noise.is_exact else 0.0
        left = fit.run(enough)
        # A filter that adds less to the answers than their errors are is a kink of rounding.
        is_real = fit.shares() > own
        if left <= own and is_real.any() and not is_real.all():
            fewer = fit.only(is_real)
            left_then = fewer.run(enough)
            if left_then <= own:
                fit, left = fewer, left_then
        self.found = fit.conv, fit.slopes, fit.pool
        return LayeredNetwork([*(() if below is None else below.layers), *fit.layers()]), left


@dataclass(frozen=True)
class SharedWeights(Method):
    """A convolution, ReLU, pooling, and a dense layer, where inputs are an image."""

    name = "shared_weights"
    hidden = (1, 2)
    purpose = "convolutions, pooled or not, and dense layers above"
    answers = frozenset({Law.FLOAT64, Law.FLOAT32})
    cost = "about 1 a feature"
    of_images = True
    search = StructureSearch
    search_in_box = StructureInBox

    lines: PixelRows = PixelRows()  # noqa: RUF009 - frozen
    leaky: LeakyFilters = LeakyFilters()  # noqa: RUF009 - frozen
    """Of leaky units."""
    lowest: LowestFilters = LowestFilters()  # noqa: RUF009 - frozen
    """Where there are hidden layers above,"""
    units: UpperUnits = UpperUnits()  # noqa: RUF009 - frozen
    """and those."""
    geometry: Geometry = Geometry()  # noqa: RUF009 - frozen
    biases: MissingBiases = MissingBiases()  # noqa: RUF009 - frozen
    digits: float = 10.0
    """Errors of a row, in units of half of the answers' digits."""
    max_lines: int = 3
    """Along a pixel, until all kinks of one have rows."""
    spare: float = 0.02
    spare_if_rounded: float = 1.5
    """Answers beyond one a feature, as a share of those: of float64 answers, and of others."""
    equations: float = 1.5
    """Spare equations for each number of a filter, at least,"""
    fewest: int = 8
    """and spare answers."""
    sizes: tuple[float, float] = (0.5, 4.0)
    """Least and largest size of the inputs asked, relative to N(0, I): large biases need both."""
    settled: float = 3.0
    floor: float = 1e4
    """What is left of the answers, in units of their own errors, where the fit may end, and where
    filters explain them."""
    floor_above: float = 1e6
    """The latter where there are layers below: those are as exact as critical points."""
    most_drawn: int = 4096
    """Inputs among which those are looked for that show what is seldom on."""
    nearly: float = 1e-4
    """A network that is wrong by less, relative to the answers, lacks nothing but digits:"""
    more: float = 2.0
    """it is fitted to ``more`` times as many answers,"""
    max_repairs: int = 2
    """``max_repairs`` times."""
    n_places: int = 4
    """Places at which each filter is looked for where nothing is to be fitted."""
    density: Density = Density()  # noqa: RUF009 - frozen
    most_dense: int = 32_768
    """Where pixels act together with near ones alone and no filters are found, methods for dense
    networks are left to try if one of the same function has no more parameters."""

    def at_corner(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        rng: np.random.Generator,
        *,
        is_single: bool,
        is_stacked: bool,
    ) -> Corner:
        """As :meth:`StructureSearch.at_corner`, of a target that is an image's."""
        search = StructureSearch(self, oracle, noise, rng)
        return search.at_corner(is_single=is_single, is_stacked=is_stacked)

    def obstacle(self, oracle: Oracle, noise: NoiseFloor) -> str:
        """Inputs must be an image, and answers have no domain's coordinates."""
        del noise
        if oracle.pixels is None:
            return "the target's inputs are no image: say their shape (image=)"
        return ""
