"""Which kind of function a target is, from few of its answers, before anything is spent on it.

What the answers do not tell is ``unknown``: nothing is guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from revelu.errors import LimitReachedError, SaturatedError
from revelu.network.layers import Pooling
from revelu.numerics.subset_sum import expected_coincidences, find_binary_solutions
from revelu.oracle import NoiseFloor, Oracle
from revelu.probe.kinks import KinkSearch
from revelu.probe.line import Line, random_line
from revelu.probe.planes import Followed, Planes, end_slopes_and_jumps, parallel_pairs
from revelu.probe.scan import LineScan
from revelu.probe.smoothness import Smoothness
from revelu.recover.method import Law
from revelu.recover.shallow.lines import reach
from revelu.recover.structured import Image, PixelNoise, SharedWeights
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
        ``relu``, ``absolute`` (|z|), ``clipped`` (such as ReLU6 and hard tanh), ``both sides``
        (units pass a signal at both sides of their hyperplanes: leaky ones, maxima of two, or ReLUs
        beside an affine map, which one hidden layer does not tell apart) or ``unknown``.
    structure : str
        ``convolution``, ``dense`` or ``unknown``.
    filters : mapping or None
        ``window`` (height, width), ``strides`` and ``pooling`` (``max``, ``average``, or None where
        there is none) of a convolution.
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
    filters: Mapping[str, Any] | None = None
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
        }
        parts = (self.function, self.structure, self.hidden_layers, self.units)
        known = [named.get(part, part) for part in parts if part != UNKNOWN]
        return ", ".join(known) or "of an unknown kind"

    def fields(self) -> dict[str, Any]:
        """Return what an account says of it."""
        return {
            "function": self.function,
            "hidden_layers": self.hidden_layers,
            "units": self.units,
            "structure": self.structure,
            "filters": None if self.filters is None else dict(self.filters),
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
        Short segments, of so many of which an affine map leaves nothing but noise
    affine, short : int, float
        where answers have too few digits for lines, and half of their length.
    sigmas, plain : float
        In standard errors of an answer, what an affine map of a segment may leave; and by how many
        times that the answers have to change along it, to say anything.
    far : float
        From where on, in its own length, the ends of a line are what they are at infinity.
    """

    oracle: Oracle
    noise: NoiseFloor
    rng: np.random.Generator
    smoothness: Smoothness = field(default_factory=Smoothness)
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

    def __post_init__(self) -> None:
        self.kind: dict[str, Any] = {}
        self.evidence: list[str] = []
        self.may_be_maxima = False
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
        is_hidden = self.noise.law == "float64" and not self.noise.is_exact
        if self.oracle.image is not None and is_hidden and not self.noise.of_log_ratios:
            # Many neurons hide the floor from general directions.
            image = Image(self.oracle.image)
            self.noise = PixelNoise().measured(self.oracle, self.noise, image, self.rng)
        law = Law.of(self.noise)
        if law is Law.LABELS:
            self.kind |= {"function": "steps", "extract_with": "--labels"}
            self.evidence.append("the answers are labels")
        elif self.smoothness.is_smooth(self.oracle, self.noise, self.oracle.dim_in, self.rng):
            self.kind |= {"function": "smooth", "extract_with": None}
            self.evidence.append(_SMOOTH)
        elif law is Law.FLOAT64:
            self._along_a_line()
        elif law is Law.FLOAT32:
            self._on_segments()
        else:
            self.evidence.append(f"answers that are {self.noise.law} have too few digits to tell")

    def _on_segments(self) -> None:
        """Whether answers of few digits belong to affine pieces."""
        d, t = self.oracle.dim_in, np.array([-1.0, -0.4, 0.0, 0.4, 1.0])
        centres, V = self.rng.standard_normal((2, self.n_segments, 1, d))
        X = (centres + self.short * t[:, None] * V).reshape(-1, d)
        Y = (self.oracle(X) / self.noise.unit).reshape(self.n_segments, len(t), -1)
        basis = np.linalg.qr(np.vander(t, 2))[0]
        left = np.abs(Y - np.einsum("ij,sjk->sik", basis @ basis.T, Y)).max(axis=(1, 2))
        change = np.abs(Y[:, -1] - Y[:, 0]).max(axis=1)
        limit = self.sigmas * self.noise.relative * self.noise.growth(centres[:, 0])
        n = int(((left <= limit) & (change > self.plain * limit)).sum())
        if n >= self.affine:
            self.kind["function"] = "piecewise linear"
        self.evidence.append(
            f"{n} of {self.n_segments} short segments are affine; float32 answers have too few "
            "digits to tell more"
        )

    def _along_a_line(self) -> None:
        scan = self._scan()
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

    def _scan(self) -> LineScan | None:
        """A line as far as it has few pieces; None where that shows none."""
        line = self._line()
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
        if image is None:
            self.evidence.append(
                "weights that are shared are looked for where inputs are an image (--image HxWxC)"
            )
            return
        channels, height, width = image
        is_local, found = SharedWeights().layers_at_corner(oracle, self.noise, self.rng)
        if is_local:
            self.kind["extract_with"] = f"--image {height}x{width}x{channels}"
        is_one = self.kind.get("hidden_layers") == "one"
        if found is not None and (is_one or (self.may_be_maxima and _takes_largest(found[1]))):
            conv, pool = found
            self.kind["structure"] = "convolution"
            self.kind["filters"] = {
                "window": list(conv.kernels.shape[2:]),
                "strides": list(conv.strides),
                "pooling": None if pool is None else pool.kind,
            }
            self.evidence.append("a corner's neurons recur at other places of the image")
        elif is_local:
            self.evidence.append("no neuron sees pixels that are far apart: there may be filters")
        elif is_one:
            self.kind["structure"] = "dense"
            self.evidence.append("neurons of the only hidden layer see pixels that are far apart")
        else:
            self.evidence.append("neurons see pixels that are far apart, in some layer")


def _takes_largest(pool: Pooling | None) -> bool:
    return pool is not None and pool.kind == "max"
