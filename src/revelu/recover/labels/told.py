"""What labels tell places to, and how that error travels to facets and to neurons."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rounding:
    """How the noise of places is measured, and what is derived from it."""

    n_places: int = 24
    """Places looked at."""
    nearest: tuple[float, ...] = (1e-8, 1e-7, 1e-6)
    farther: float = 1e-5
    """How far around them, relative to an input's size: all borders are flat so near, but for less
    than ``off``; and where inputs are rounded alike, farther apart they are not."""
    off: float = 64.0
    """Noise that is ``off`` times as large as the precision of float64 is another one's."""
    normals: float = 1e-6
    """Normals are to be told to this, in radians,"""
    shortest: float = 4e-3
    longest: float = 0.1
    """by heights no nearer and no farther out than this, relative to an input's size: other bends
    lie farther out."""
    bend: float = 0.1
    """A bend as slight as this, in radians, is to tell its neuron."""
    largest: float = 1e-3
    """Neurons that would be told less precisely cannot be told from each other."""


@dataclass(frozen=True)
class Told:
    """To what labels tell, one from the other."""

    places: float
    """Of borders, relative to an input's size."""
    step: float
    """How far beside a place, relative to an input's size, heights tell its normal."""
    normals: float
    """Of facets, in radians: ``places / step``."""
    rows: float
    """Of neurons, by the two normals at a bend: ``2 normals / bend``."""
    bend: float
    """As of :class:`Rounding`."""

    @classmethod
    def to(cls, places: float, rounding: Rounding) -> "Told":
        """What follows where labels tell ``places``."""
        step = min(max(places / rounding.normals, rounding.shortest), rounding.longest)
        normals = places / step
        return cls(places, step, normals, 2.0 * normals / rounding.bend, rounding.bend)
