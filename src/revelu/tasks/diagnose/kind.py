"""Which kind of function a target is, from few of its answers, before anything is spent on it.

What the answers do not tell is ``unknown``: nothing is guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network.layers import ImageShape
from revelu.numerics.subset_sum import expected_coincidences, find_binary_solutions
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.kinks import KinkSearch
from revelu.probe.line import Line, random_line
from revelu.probe.planes import Followed, Planes, end_slopes_and_jumps, parallel_pairs
from revelu.probe.scan import LineScan
from revelu.probe.smoothness import Smoothness
from revelu.probe.steps import Steps
from revelu.recover.method import Law
from revelu.recover.shallow.lines import reach
from revelu.recover.structured import Image, PixelNoise, SharedWeights
from revelu.recover.structured.seen import Corner, Layers
from revelu.tasks.images import found_image, in_words
from revelu.types import FloatArray

UNKNOWN = "unknown"

_SMOOTH = "on short segments the answers bend along all of each, and nowhere at once"
_MAXIMA = (
    "; that is so of several hidden layers, and of the largest of three values or more in a single "
    "one"
)


@dataclass(frozen=True)
class Kind:
    """What a target is, as far as a few answers tell.

    Attributes
    ----------
    function : str
        ``piecewise linear``, ``smooth``, ``steps``, ``affine`` or ``unknown``.
    hidden_layers : str
        ``one``, ``several`` or ``unknown``.
    units : str
        ``relu``, ``absolute`` (|z|), ``clipped`` (such as ReLU6 and hard tanh), ``leaky`` (filters
        show their slopes), ``both sides`` (units pass a signal at both sides of their hyperplanes:
        leaky ones, maxima of two, or ReLUs beside an affine map, which one hidden layer does not
        tell apart) or ``unknown``.
    structure : str
        ``convolution``, ``dense`` or ``unknown``.
    steps : str
        Of a step function: ``trees``, whose jumps lie at values of single inputs, ``others``, such
        as nearest neighbours, or ``unknown``.
    image : (int, int, int) or None
        Channels, height and width of inputs that are images, told or seen.
    filters : mapping or None
        Of a convolution ``number`` (a lower bound: those that a corner's pixel shows, none
        whose weight there is 0), ``window`` (height, width), ``strides``, ``slopes`` of leaky
        units or None, ``pooling`` (``max``, ``average``, or None where there is none) and
        ``pooling_window``; strides and windows are None where answers leave them open.
    extract_queries : int or None
        About what recovery takes, more where a corner does not show all filters, the certificate
        not counted; None where that is not known before.
    extract_with : str or None
        Options of ``revelu extract`` that such a target takes, empty where it takes none; None
        where no method recovers it.
    evidence : tuple of str
        What was seen, and what was not.
    n_queries : int
        What all this has cost.
    """

    function: str = UNKNOWN
    hidden_layers: str = UNKNOWN
    units: str = UNKNOWN
    structure: str = UNKNOWN
    steps: str = UNKNOWN
    image: ImageShape | None = None
    filters: Mapping[str, Any] | None = None
    extract_queries: int | None = None
    extract_with: str | None = ""
    evidence: tuple[str, ...] = ()
    n_queries: int = 0

    @property
    def text(self) -> str:
        """The same in a phrase."""
        named = {
            "one": "one hidden layer",
            "several": "several hidden layers",
            "relu": "ReLU",
            "absolute": "absolute values",
            "clipped": "clipped units",
            "both sides": "units that pass both sides",
            "leaky": "leaky units",
            "trees": "as of trees",
            "others": "as of nearest neighbours",
        }
        parts = (self.function, self.steps, self.structure, self.hidden_layers, self.units)
        known = [named.get(part, part) for part in parts if part != UNKNOWN]
        return ", ".join(known) or "of an unknown kind"

    def fields(self) -> dict[str, Any]:
        """Return what an account says of it."""
        return {
            "function": self.function,
            "hidden_layers": self.hidden_layers,
            "units": self.units,
            "structure": self.structure,
            "steps": self.steps,
            "image": None if self.image is None else list(self.image),
            "filters": None if self.filters is None else dict(self.filters),
            "extract_queries": self.extract_queries,
            "extract_with": self.extract_with,
            "evidence": list(self.evidence),
            "queries": self.n_queries,
        }


@dataclass
class KindSearch:
    """A few answers, and what they say.

    Attributes
    ----------
    oracle : Oracle
    noise : NoiseFloor
    rng : numpy.random.Generator
    smoothness : Smoothness
    steps : Steps
    planes : Planes
    intervals : tuple of float
        How far a line is followed to both sides, in its own length: the first of them where it has
        no more than ``max_pieces`` pieces.
    max_pieces : int
    fewest : int
        Kinks that have to be followed before they tell how many layers there are.
    changed : float
        The share of points at which the function has to bend otherwise where there are several
        layers: in one, another hyperplane may lie beside a point in five hundred.
    max_bits : int
        Kinks of a line of which all subsets are tried out.
    chance : float
        The most subsets that may be expected to sum to a slope by chance.
    n_segments : int
        Short segments on all of which an affine map leaves nothing but noise
    affine, short : int, float
        where answers have too few digits for lines, and half of their length.
    sigmas, plain : float
        In standard errors of an answer, what an affine map of a segment may leave; and by how many
        times that the answers have to change along it, to say anything.
    far : float
        From where on, in its own length, the ends of a line are what they are at infinity.
    n_lines : int
        More lines along a corner's pixel, until one has kinks.
    of_function : bool
        Whether the function alone is wanted: jumps are looked for before a line is followed, which
        does not tell those of trees from others, and those of votes, too; filters, which take
        long, are not.
    """

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    smoothness: Smoothness = field(default_factory=Smoothness)
    steps: Steps = field(default_factory=Steps)
    planes: Planes = field(default_factory=Planes)
    intervals: tuple[float, ...] = (np.inf, 0.1, 0.005, 2e-4)
    max_pieces: int = 128
    fewest: int = 2
    changed: float = 0.1
    max_bits: int = 36
    chance: float = 1e-3
    n_segments: int = 8
    affine: int = 3
    short: float = 0.01
    sigmas: float = 8.0
    plain: float = 50.0
    far: float = 1e3
    n_lines: int = 2
    of_function: bool = False

    def __post_init__(self) -> None:
        self.kind: dict[str, Any] = {}
        self.evidence: list[str] = []
        self.may_be_maxima = False
        self.n_for_grid = 0
        self.is_cut = False

    def run(self) -> Kind:
        """Ask until the target's kind is known, or as far as answers tell it."""
        before = self.oracle.n_queries
        try:
            self._look()
        except (LimitReachedError, SaturatedError) as error:
            self.evidence.append(str(error))
        n = self.oracle.n_queries - before
        return Kind(**self.kind, evidence=tuple(self.evidence), n_queries=n)

    def _look(self) -> None:
        if self.oracle.image is not None:
            self._along_pixels(self.oracle.image)
        law = Law.of(self.noise)
        if law is Law.LABELS:
            self.kind |= {"function": "steps", "extract_with": "--labels"}
            self.evidence.append("the answers are labels")
        elif self.oracle.box is not None:
            self._look_in_box()
        elif self.smoothness.is_smooth(self.oracle, self.noise, self.oracle.dim_in, self.rng):
            self.kind |= {"function": "smooth", "extract_with": None}
            self.evidence.append(_SMOOTH)
        else:
            self._look_for_pieces()

    def _look_in_box(self) -> None:
        """What needs no line that leaves the box."""
        if self.noise.is_smooth:
            self.kind |= {"function": "smooth", "extract_with": None}
            self.evidence.append(f"the answers curve at {self.noise.curved:.0%} of the places seen")
        elif not self._are_steps():
            self._on_segments()

    def _look_for_pieces(self) -> None:
        """What the pieces of a function that is not smooth tell."""
        law = Law.of(self.noise)
        # A line shows jumps of exact answers for fewer queries.
        if (law is not Law.FLOAT64 or self.of_function) and self._are_steps():
            return
        before = self.oracle.n_queries
        shape = None if self.of_function else found_image(self.oracle, self.noise, self.rng)
        self.n_for_grid = self.oracle.n_queries - before
        if shape is not None:
            self.oracle.take_for_images(shape)
            self.evidence.append(in_words(shape))
            self._along_pixels(shape)
        self.kind["image"] = self.oracle.image
        match law:
            case Law.FLOAT64:
                self._along_a_line()
                if "function" not in self.kind:
                    self._are_steps()
            case Law.FLOAT32:
                self._on_segments()
            case _:
                said = self.noise.law
                self.evidence.append(f"answers that are {said} have too few digits to tell")

    def _are_steps(self) -> bool:
        """Whether answers are constant but for jumps, which lines miss where they are many."""
        if not self.steps.may_be(self.noise):
            return False
        grid = self.noise.numbers.grid
        seen = self.steps.look(self.oracle, grid, self.rng, votes=self.of_function)
        if not any(seen):
            return False
        self.kind |= {"function": "steps", "steps": "trees" if seen.along else "others"}
        if seen.jumps:
            self.kind["extract_with"] = None
        self.evidence += [said for said in seen if said]
        return True

    def _along_pixels(self, shape: ImageShape) -> None:
        """Measure the floor where few neurons see: many hide it from general directions."""
        is_hidden = self.noise.law == "float64" and not self.noise.is_exact
        if is_hidden and not self.noise.link.has_head:
            self.noise = PixelNoise().measured(self.oracle, self.noise, Image(shape), self.rng)

    def _on_segments(self) -> None:
        """Whether answers of few digits belong to affine pieces."""
        t = np.array([-1.0, -0.4, 0.0, 0.4, 1.0])
        centres, V = self._segments()
        X = (centres + self.short * t[:, None] * V).reshape(-1, self.oracle.dim_in)
        Y = (self.oracle(X) / self.noise.unit).reshape(self.n_segments, len(t), -1)
        basis = np.linalg.qr(np.vander(t, 2))[0]
        left = np.abs(Y - np.einsum("ij,sjk->sik", basis @ basis.T, Y)).max(axis=(1, 2))
        change = np.abs(Y[:, -1] - Y[:, 0]).max(axis=1)
        limit = self.sigmas * self.noise.relative * self.noise.growth(centres[:, 0])
        n = int(((left <= limit) & (change > self.plain * limit)).sum())
        if n >= self.affine:
            self.kind["function"] = "piecewise linear"
        box = self.oracle.box
        why = "inside a box no line is followed that tells layers and units"
        if box is None:
            why = "float32 answers have too few digits to tell layers and units"
        self.evidence.append(f"{n} of {self.n_segments} short segments are affine; {why}")
        if self.oracle.image is not None and box is None:
            self._tell_structure()

    def _segments(self) -> tuple[FloatArray, FloatArray]:
        """Middles of short segments and their directions, (n, 1, d) each; inside the box."""
        shape = 2, self.n_segments, 1, self.oracle.dim_in
        if self.oracle.box is None:
            centres, V = self.rng.standard_normal(shape)
            return centres, V
        lo, hi = self.oracle.box
        centres, V = self.rng.uniform(-1.0, 1.0, shape)
        half = (hi - lo) / 2.0
        return (lo + hi) / 2.0 + (1.0 - self.short) * half * centres, half * V

    def _along_a_line(self) -> None:
        scan = self._scan(self._line())
        if self.oracle.image is not None:
            for _ in range(self.n_lines):
                if scan is None or len(scan.kinks):
                    break
                # What reads a corner's filters may be off along all of its pixel's line.
                scan = self._scan(self._line())
            if scan is not None and not len(scan.kinks):
                scan = self._scan(random_line(self.rng, self.oracle.dim_in))
        if scan is None:
            return
        if not len(scan.kinks):
            if scan.reach >= self.far:
                self.kind |= {"function": "affine", "structure": UNKNOWN}
            self.evidence.append("a line has no kink")
            return
        self.kind["function"] = "piecewise linear"
        self.evidence.append(f"a line has {len(scan.kinks)} kinks and is straight between them")
        if self.is_cut:
            # Kinks so near each other are taken for one another where they are followed.
            self.evidence.append("neurons are too many to follow any of them, and to tell layers")
        else:
            followed = self.planes.follow(self.oracle, self.noise, scan, self.rng)
            self._count_layers(followed)
            self._tell_units(scan, followed)
        self._tell_structure()

    def _scan(self, line: Line) -> LineScan | None:
        """A line as far as it has few pieces; None where that shows none."""
        lo, hi = reach(self.oracle, line)
        for bound in self.intervals:
            search = KinkSearch(
                self.oracle,
                line,
                float(self.noise.nu.max()),
                self.noise.scale,
                self.rng,
                (max(lo, -bound), min(hi, bound)),
                through=False,
                max_pieces=self.max_pieces,
            )
            scan = search.run()
            if scan.complete:
                self.is_cut = bool(np.isfinite(bound))
                return scan.without_faint_kinks(self.noise.faint_slope)
            if scan.contradicts:
                self.evidence.append(scan.message)
                return None
            if scan.is_torn:
                self.kind |= {"function": "steps", "extract_with": None}
                self.evidence.append(scan.message)
                return None
        self.evidence.append(scan.message)
        return None

    def _line(self) -> Line:
        """A random line; of an image one along a corner's pixel, which few filters see."""
        d, image = self.oracle.dim_in, self.oracle.image
        if image is None:
            return random_line(self.rng, d)
        x0, v, pixel = self.rng.standard_normal(d), np.zeros(d), Image(image).pixel(0, 0, 0)
        x0[pixel], v[pixel] = 0.0, SharedWeights().lines.reach
        return Line(x0, v)

    def _count_layers(self, found: Followed) -> None:
        """One hidden layer bends the function by the same all along a hyperplane."""
        m, n = len(found.kinks), int((found.same + found.other + found.gone).sum())
        n_other, n_gone = int(found.other.sum()), int(found.gone.sum())
        where = f"of {n} points of {m} hyperplanes"
        if m < self.fewest:
            self.evidence.append(f"{m} hyperplanes were followed: too few to tell layers")
        elif n_other + n_gone == 0:
            self.kind["hidden_layers"] = "one"
            self.evidence.append(f"at all {where} the function bends as it does on the line")
        elif n_other > self.changed * n:
            self.kind["hidden_layers"] = "several"
            self.evidence.append(
                f"at {n_other} {where} the function bends by another amount than on the line, and "
                f"at {n_gone} not at all"
            )
        else:
            self.may_be_maxima = n_gone > 0
            self.evidence.append(
                f"at {n_gone} {where} the function goes straight on, and at {n_other} it bends by "
                "another amount than on the line" + (_MAXIMA if n_gone else "")
            )

    def _tell_units(self, scan: LineScan, found: Followed) -> None:
        """What units make of large sums, from the ends of the line."""
        is_whole = scan.reach >= self.far and bool(scan.is_single.all()) and not scan.n_faint
        if not is_whole:
            self.evidence.append("the line's ends do not show what units make of large sums")
            return
        first, last, jumps = end_slopes_and_jumps(scan)
        size = float(np.linalg.norm(jumps))
        alike = self.noise.half_digits * size
        is_one = self.kind.get("hidden_layers") == "one"
        is_flat = max(np.linalg.norm(first), np.linalg.norm(last)) <= alike
        if is_flat:
            n = int(parallel_pairs(found, jumps).sum())
            if is_one and n:
                self.kind["units"] = "clipped"
            self.evidence.append(
                f"both ends of the line are flat, and {n} of the hyperplanes followed are parallel "
                "to another one that bends the function back"
            )
        elif np.linalg.norm(first + last) <= alike:
            self.kind["units"] = "absolute"
            self.evidence.append("the slopes at the ends of the line are opposite")
        elif is_one:
            self._tell_sides(last, jumps, alike)
        else:
            self.evidence.append("of several layers a line does not tell ReLUs from leaky units")
        if self.oracle.image is not None and "units" in self.kind:
            n = len(jumps)
            self.evidence.append(
                f"the units are those of the {n} neuron{'s' * (n != 1)} that a pixel at a corner "
                "moves; at other places none was looked at, where slopes may be others"
            )

    def _tell_sides(self, last: FloatArray, jumps: FloatArray, atol: float) -> None:
        """Whether the last slope is the sum of some jumps, those of the neurons that are on there.

        A ReLU that is off passes nothing on.
        """
        if len(jumps) > self.max_bits:
            self.evidence.append("too many kinks to try out which ReLUs are on at the line's end")
            return
        atol *= self.noise.half_digits**0.5
        if expected_coincidences(jumps.T, atol) > self.chance:
            self.evidence.append("the line's kinks are too many to tell ReLUs from other units")
            return
        found = find_binary_solutions(jumps.T, last, atol, max_bits=self.max_bits)
        if found.found:
            self.kind["units"] = "relu"
            self.evidence.append(
                "the slope at the end of the line is a sum of changes at its kinks: neurons that "
                "are off pass nothing on"
            )
        elif found.complete:
            self.kind["units"] = "both sides"
            self.evidence.append(
                "the slope at the end of the line is no sum of changes at its kinks: neurons pass "
                "something on at both sides, or there is an affine map beside ReLUs"
            )

    def _tell_structure(self) -> None:
        """Whether weights are shared, of inputs that are an image."""
        oracle, image = self.oracle, self.oracle.image
        if self.of_function:
            return
        if image is None:
            self.evidence.append(
                "weights that are shared are looked for where inputs are an image (--image HxWxC)"
            )
            return
        channels, height, width = image
        before, layers = oracle.n_queries, self.kind.get("hidden_layers")
        # In float32 answers neurons above filters pass for filters.
        is_exact = self.noise.is_exact
        corner = SharedWeights().at_corner(
            oracle,
            self.noise,
            self.rng,
            is_single=is_exact and layers != "several",
            is_stacked=is_exact,
        )
        found = [one for one in corner.layers if self._may_be(one, corner)]
        if not found and corner.is_local and layers == "one":
            # Few of its neurons were followed, and all of them alike.
            del self.kind["hidden_layers"]
            self.kind.pop("units", None)
        if corner.is_local or found:
            self.kind["extract_with"] = f"--image {height}x{width}x{channels}"
        if found:
            spent = self.n_for_grid + oracle.n_queries - before
            self._tell_filters(found, spent, corner)
        elif corner.is_local:
            self.evidence.append("no neuron sees pixels that are far apart: there may be filters")
            if is_exact:
                self._tell_price()
        elif layers == "one":
            self.kind["structure"] = "dense"
            self.evidence.append("neurons of the only hidden layer see pixels that are far apart")
        else:
            self.evidence.append("neurons see pixels that are far apart, in some layer")

    def _may_be(self, layers: Layers, corner: Corner) -> bool:
        """Whether what else was seen allows layers.

        One hidden layer that goes straight on somewhere takes the largest of something; of leaky
        units it may bend by another amount there, too.
        """
        _, slopes, pool = layers
        is_max = pool is not None and pool.kind == "max"
        if corner.is_stacked or (is_max and slopes is not None):
            return True
        is_several = self.kind.get("hidden_layers") == "several"
        return not is_several and (is_max or not self.may_be_maxima)

    def _tell_filters(self, found: list[Layers], spent: int, corner: Corner) -> None:
        """Which filters there are, and what extracting them takes."""
        (conv, slopes, pool), strides = found[0], {one[0].strides for one in found}
        windows = {None if one[2] is None else one[2].size for one in found}
        self.kind["structure"] = "convolution"
        self.kind["filters"] = {
            "number": len(conv.kernels),
            "window": list(conv.kernels.shape[2:]),
            "strides": list(conv.strides) if len(strides) == 1 else None,
            "slopes": None if slopes is None else [float(slope) for slope in slopes],
            "pooling": None if pool is None else pool.kind,
            "pooling_window": list(pool.size) if pool is not None and len(windows) == 1 else None,
        }
        if slopes is not None:
            self.kind |= {"units": "leaky", "hidden_layers": "one"}
            self.evidence.append("the filters pass both sides, with a slope each")
        self.evidence.append(
            "a corner's neurons recur at the other places that were looked at; whether they do at "
            "all places, extract tells"
        )
        if corner.is_stacked:
            # A filter that was missed at other places looks like a neuron above the others.
            is_open = self.kind.get("hidden_layers") == "one"
            self.kind["hidden_layers"] = UNKNOWN if is_open else "several"
            self.kind.pop("units", None)
            self.evidence.append(
                "neurons that see more seem to lie above the filters; what finding them takes is "
                "not known before"
            )
        elif corner.n_answers is not None:
            self.kind["extract_queries"] = spent + corner.n_answers

    def _tell_price(self) -> None:
        """How large a dense network would be, where no filters were seen."""
        method = SharedWeights()
        n = method.density.n_parameters(self.oracle, self.noise, self.rng)
        then = "come next" if n <= method.most_dense else "are not tried"
        self.evidence.append(
            f"a dense network of the same function has some {n:,} parameters or more; where no "
            f"filters are found, methods for dense ones, a query or more for each, {then}"
        )
