"""How many samples a search needs, and how many neurons samples can carry."""

from dataclasses import dataclass

import numpy as np

from revelu.recover.refine.network_fit import AUTOMATIC


@dataclass(frozen=True)
class Sizes:
    """What sizes follow from inputs and outputs, counted in equations a parameter."""

    d: int
    k: int
    """Inputs and outputs."""
    grown: float = 1.6
    at_once: float = 2.6
    """Equations a parameter that a search needs, neuron by neuron or all at once."""
    slow: float = 3e11
    """Multiplications of all fits up to which neuron by neuron is worth its time."""
    several: int = 3
    """From ``several`` outputs on there is no want of equations."""
    short_width: int = 22
    """Searches for fewer neurons than this are short, and repeated ``short_searches`` times;"""
    short_searches: int = 8
    long_searches: int = 2
    """others ``long_searches`` times."""
    more_short: float = 1.08
    more_long: float = 1.2
    more_at_once: float = 1.3
    """Factors by which samples are made more."""
    steps_each: float = 11.0
    steps_at_once: float = 200.0
    steps_iterated: float = 450.0
    """Steps of a search, about: for each neuron that is added, of all at once, and where they are
    solved by iterations,"""
    products: float = 100.0
    """with ``products`` multiplications for each number of the derivative, or as many as normal
    equations take."""
    checked: float = 0.03
    """Share of fresh samples, beside ``fewest_checked``, that tell an explanation from an
    interpolation: a neuron that fires on a few of the samples can be invented."""
    fewest_checked: int = 8

    def n_parameters(self, width: int) -> int:
        """Degrees of freedom of a network, an affine rest included, and the neurons' scales."""
        return width * (self.d + 1 + self.k) + self.k * (self.d + 1)

    def n_samples(self, width: int) -> int:
        """How many samples determine a network of this width."""
        n_parameters = self.n_parameters(width)
        grown = int(np.ceil(self.grown * n_parameters / self.k))
        if self._is_quick(grown, width):
            return grown
        return int(np.ceil(self.at_once * n_parameters / self.k))

    def widest(self, n_samples: int, equations: float) -> int:
        """The most neurons that have at least a number of equations a parameter."""
        left = n_samples * self.k / equations - self.k * (self.d + 1)
        return max(int(left / (self.d + 1 + self.k)), 0)

    def width(self, n_samples: int) -> int:
        """The widest network that a number of samples determines."""
        return max(self.widest(n_samples, self.grown if self.grows(n_samples) else self.at_once), 1)

    def grows(self, n_samples: int) -> bool:
        """Whether growing neuron by neuron is worth its time.

        It needs fewer answers a parameter; where every query has several, there is no
        want of them.
        """
        width = n_samples * self.k / self.grown / (self.d + 1 + self.k)
        return self._is_quick(n_samples, max(int(width), 1))

    def n_searches(self, n_samples: int) -> int:
        """How many searches a number of samples is worth."""
        return self.short_searches if self.is_short(n_samples) else self.long_searches

    def work(self, n_samples: int) -> float:
        """How many multiplications all searches of a number of samples take, about."""
        width, n = self.width(n_samples), n_samples * self.k
        p = width * (self.d + 1 + self.k)
        if not AUTOMATIC.is_dense(n, self.n_parameters(width)):
            each = self.steps_iterated * self.products * n_samples * p
        else:
            steps = self.steps_each * width if self.grows(n_samples) else self.steps_at_once
            each = steps * n * float(p) ** 2
        return self.n_searches(n_samples) * each

    def is_short(self, n_samples: int) -> bool:
        """Whether a search takes next to no time."""
        return self.grows(n_samples) and self.width(n_samples) < self.short_width

    def more(self, n_samples: int) -> int:
        """How many samples to try next."""
        factor = self.more_short if self.is_short(n_samples) else self.more_long
        factor = factor if self.grows(n_samples) else self.more_at_once
        return int(np.ceil(factor * n_samples))

    def n_held_out(self, n_samples: int) -> int:
        """How many fresh samples tell an explanation from an interpolation."""
        return int(np.ceil(self.checked * n_samples)) + self.fewest_checked

    def _is_quick(self, n_samples: int, width: int) -> bool:
        n = n_samples * self.k
        work = n * (width * (self.d + 1 + self.k)) ** 2 * width
        is_dense = AUTOMATIC.is_dense(n, self.n_parameters(width))
        return self.k < self.several and is_dense and work < self.slow
