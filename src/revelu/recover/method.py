"""What a method of recovery takes, and what it says.

A :class:`Method` is a value: which depths and answers it takes, whether it can stay inside a
box, and, as fields, what tunes it.  Started on a target it is a :class:`Search`, which proposes
a :class:`Candidate` and repairs it where fresh answers disagree.  A candidate says *why* its
search ended; whether the network is certified is for those to say who verify it.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

import numpy as np

from revelu.errors import CurvedError, LimitReachedError, SaturatedError
from revelu.network import Network
from revelu.numerics.interruption import interruptible
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.paid import NOTHING, Paid
from revelu.types import FloatArray

log = logging.getLogger(__name__)

Layer = tuple[FloatArray, FloatArray]
"""Weights ``W (k, d)`` and biases ``b (k,)``."""


Tell = Callable[[str], None]
"""Takes what is being done, in words."""


class Law(StrEnum):
    """How the answers of a target err."""

    FLOAT64 = "float64"
    """Rounded to float64, and what varies has nearly all of its digits."""
    FLOAT32 = "float32"
    """Computed in float32."""
    HALF_PRECISION = "half-precision"
    """Computed in float16 or bfloat16."""
    ROUNDED = "rounded"
    """Rounded to a grid, or float64 with few digits left of what varies."""
    RANDOM = "random"
    """Drawn anew for every answer."""
    LABELS = "labels"
    """No numbers, but the names of classes."""

    @classmethod
    def of(cls, noise: NoiseFloor) -> "Law":
        """Return the law that a method has to reckon with.

        A constant that hides what varies takes its digits: then float64 is as good as rounded.
        """
        if noise.of_labels:
            return cls.LABELS
        law = cls(noise.law)
        has_digits = noise.has_all_digits(noise.spread).all()
        return cls.ROUNDED if law is cls.FLOAT64 and not has_digits else law


class Why(StrEnum):
    """Why a search ended."""

    EXPLAINED = "explained"
    """The network explains all that was asked."""
    UNRESOLVED = "unresolved"
    """Some of what was asked is left unexplained; another start may do better."""
    NEARLY = "nearly"
    """All but very little of what was asked is explained; another start is not worth its price."""
    HYPERPLANES_END = "hyperplanes_end"
    """Hyperplanes end or bend: there are more hidden layers than the method takes."""
    BOTH_SIDES = "both_sides"
    """Neurons pass a signal on at both sides of their hyperplanes: they are no ReLUs."""
    NOT_SHARED = "not_shared"
    """No weights are shared that the method could find: others know nothing of that."""
    REFUTED = "refuted"
    """What was asked speaks against any network of the method's kind; starts anew are in vain."""
    CURVED = "curved"
    """The target has no affine pieces."""
    DISCONTINUOUS = "discontinuous"
    """Its answers jump."""
    CONTRADICTED = "contradicted"
    """The same rows are answered otherwise when they are asked again."""
    STEPS = "steps"
    """Its answers are constant but for jumps, which no rounding makes."""
    SATURATED = "saturated"
    """The target gives no usable numbers where the method has to ask."""
    LIMIT = "limit"
    """Queries or seconds ran out."""

    @classmethod
    def of(cls, error: LimitReachedError | SaturatedError | CurvedError) -> "Why":
        """Return why a search ended that met an error."""
        if isinstance(error, CurvedError):
            return cls.CURVED
        return cls.LIMIT if isinstance(error, LimitReachedError) else cls.SATURATED


@dataclass(frozen=True)
class Candidate:
    """What a method says."""

    network: Network | None
    """The best so far, however the search ended."""
    why: Why
    """How it ended."""
    layers: tuple[Layer, ...] = ()
    """The lowest hidden layers, as far as they are exact whatever lies above them; of a network
    that is explained they may be left out."""
    notes: tuple[str, ...] = ()
    """What is to be told of the network, certified or not."""
    obstacles: tuple[str, ...] = ()
    """What kept the search from more; of no interest once the network is certified."""
    warnings: tuple[str, ...] = ()
    """What holds of any network from such answers."""
    worst_error: float = 0.0
    """Largest error at the inputs that the search asked, where it is known to be wrong at some:
    no certificate covers up an error that was seen."""
    paid: Paid = NOTHING
    """What is handed to the method that comes after."""
    merged_l2: float | None = None
    """What neurons merged into one have changed of the function in L2 under N(0, I), at most;
    None of a method that merges none."""
    n_searched: int = 0
    """Points of N(0, I) that were searched for what the network leaves unexplained."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """For reports: nothing reads them to decide."""


@dataclass(frozen=True)
class Disagreement:
    """What fresh answers say against a candidate."""

    X: FloatArray
    """Shape (n, d).  Inputs at which they disagree; of N(0, I) alone, where some of those are
    among them."""
    worst: FloatArray
    """Shape (d,).  The one of the largest error."""
    share: float
    """Share of all inputs asked at which they agree."""
    agrees: Callable[[Network], bool]
    """Network -> bool.  Whether another network agrees with all that was asked."""
    error: float = np.inf
    """The largest error at inputs of N(0, I), relative to the size of the answers."""


_Said = TypeVar("_Said", Candidate, Candidate | None)


@dataclass
class Search(ABC):
    """A method at work on one target.

    Neither function raises :class:`revelu.LimitReachedError` or
    :class:`revelu.errors.SaturatedError`: both are reasons to end, with what was found.
    """

    method: "Method"
    """What tunes it."""
    oracle: Oracle
    noise: NoiseFloor
    """Every tolerance comes from it."""
    rng: np.random.Generator
    """Decides every random choice."""
    tell: Tell = log.debug
    """Called with what is being done."""
    paid: Paid = NOTHING
    """What the method before has handed over."""
    n_repairs: int = field(default=0, init=False)
    """Repairs so far."""

    @abstractmethod
    def propose(self) -> Candidate:
        """Search until a network explains all that was asked, or there is a reason to end."""

    @abstractmethod
    def repair(self, seen: Disagreement) -> Candidate | None:
        """Go on where fresh answers disagree; None where the method gives up."""

    def cut_short(self, why: Why, said: str) -> Candidate:
        """What was found, where queries, time or answers have ended the search."""
        return Candidate(None, why, obstacles=(said,))

    def until_limit(self, go_on: Callable[[], _Said]) -> _Said | Candidate:
        """Go on until that ends, or queries, time or answers end it; fits look at the clock."""
        try:
            with interruptible(self.oracle.check_time):
                return go_on()
        except (LimitReachedError, SaturatedError, CurvedError) as error:
            return self.cut_short(Why.of(error), str(error))


@dataclass(frozen=True)
class Method:
    """One way to recover a network; what tunes it are its fields."""

    name: ClassVar[str]
    """As in ``revelu.extract(method=)``."""
    purpose: ClassVar[str] = ""
    """What it is for, in a phrase."""
    hidden: ClassVar[tuple[int, int | None]]
    """Fewest and most hidden layers; None where there is no limit."""
    answers: ClassVar[frozenset[Law]] = frozenset({Law.FLOAT64})
    """The laws of noise that it takes."""
    cost: ClassVar[str]
    """Queries a parameter, in words."""
    spends: ClassVar[tuple[float, float] | None] = None
    """Fewest and most queries that each parameter of one output has taken where one hidden layer
    was recovered at the first attempt,"""
    spends_fewer: ClassVar[bool] = False
    """and whether several outputs, which one query answers all, make them fewer for certain:
    they do make the fewest."""
    max_starts: ClassVar[int] = 3
    """Starts afresh, the first included, that may find what one has missed."""
    most_work: ClassVar[float] = np.inf
    """Multiplications from which nothing is started afresh where answers are float32: they show
    what they can to the first start, and where that has taken a minute another takes as long."""
    search: ClassVar[type[Search]]
    """What it is at work.  Searches know their method and not the reverse: where they are in
    other files, the package binds them."""
    search_in_box: ClassVar[type[Search] | None] = None
    """What it is inside a box, where it can keep its queries there."""
    of_images: ClassVar[bool] = False
    """It is for targets whose inputs are images, and for those alone."""

    @property
    def box(self) -> bool:
        """Whether it can keep its queries inside a box."""
        return self.search_in_box is not None

    def obstacle(self, oracle: Oracle, noise: NoiseFloor) -> str:
        """Say why the method cannot be used on a target, before a query is spent on it.

        An empty string where nothing is known to stand against it.
        """
        del oracle, noise
        return ""

    def start(
        self,
        oracle: Oracle,
        noise: NoiseFloor,
        rng: np.random.Generator,
        tell: Tell = log.debug,
        paid: Paid = NOTHING,
    ) -> Search:
        """Begin on a target; the arguments are the attributes of :class:`Search`."""
        return self.search_of(oracle, noise)(self, oracle, noise, rng, tell, paid)

    def search_of(self, oracle: Oracle, noise: NoiseFloor) -> Callable[..., Search]:
        """The search that a target's answers allow."""
        del noise
        return (None if oracle.box is None else self.search_in_box) or self.search
