"""The method for networks that answer labels, and what tunes it."""

from dataclasses import dataclass, replace
from typing import ClassVar

from revelu.recover.labels.columns import Spectrum
from revelu.recover.labels.first_layer import Depth
from revelu.recover.labels.in_span import Slicing
from revelu.recover.labels.polish import Polish
from revelu.recover.labels.precision import Precision, Rounding, Told
from revelu.recover.labels.roughness import Roughness
from revelu.recover.labels.rows import Matching
from revelu.recover.labels.signs import Turning
from revelu.recover.labels.survey import Effort
from revelu.recover.labels.two_inputs import Planar
from revelu.recover.labels.walks import WalkPace
from revelu.recover.method import Law, Method


@dataclass(frozen=True)
class FromLabels(Method):
    """One hidden layer, or two, from labels alone."""

    n_starts: int = 24
    """Border points at which the survey begins."""
    max_generations: int = 200
    patience: int = 60
    """Of the survey, and how many in a row may find no neuron."""
    n_restarts: int = 6
    """Points that are farthest off, at which it goes on."""
    n_completions: int = 6
    """How often border points are added where too few tell, before the survey goes on."""
    n_wrong: int = 64
    """Segments on which borders were predicted wrongly that it learns from at once."""
    surplus: float = 1.6
    surplus_above: float = 3.0
    """Border points for each unknown of the output layer; and of one above two hidden layers, where
    some neurons are on at few borders only."""
    n_fresh: int = 6
    n_fresh_above: int = 12
    """Fresh border points at which the survey goes on, too; and above a first layer."""
    most_wrong: float = 0.02
    """Share of predicted borders that may be others while a network of many weights, or one of two
    hidden layers, is refined: fresh labels beside them tell then."""
    farther: float = 4.0
    n_farther: int = 4
    """Where all borders are explained and something is missing, walks go ``farther`` times as far,
    ``n_farther`` times."""
    faintest: float = 1e-5
    """A row whose column is a smaller share of the others is no neuron."""
    largest_rest: float = 1e-3
    """Border points are farther off a network that lacks a neuron, somewhere, beside what errors
    leave where labels tell few digits."""
    rough: float = 10.0
    least_bent: float = 0.5
    """Where labels tell few digits, rows known to ``rough`` times what normals are told to are
    measured again; they are neurons where such a share of borders bends at them."""
    max_denied: int = 12
    max_repairs: int = 6
    """Times that it goes on where borders that a network predicts are others, and where fresh
    labels disagree."""
    precision: Precision = Precision()  # noqa: RUF009 - frozen
    pace: WalkPace = WalkPace()  # noqa: RUF009
    matching: Matching = Matching()  # noqa: RUF009
    effort: Effort = Effort()  # noqa: RUF009
    roughness: Roughness = Roughness()  # noqa: RUF009
    rounding: Rounding = Rounding()  # noqa: RUF009
    spectrum: Spectrum = Spectrum()  # noqa: RUF009
    turning: Turning = Turning()  # noqa: RUF009
    polish: Polish = Polish()  # noqa: RUF009
    depth: Depth = Depth()  # noqa: RUF009
    two_inputs: Planar = Planar()  # noqa: RUF009
    slicing: Slicing = Slicing()  # noqa: RUF009
    """What tunes the steps."""

    def at(self, told: Told, d: int) -> "FromLabels":
        """Return what serves where labels of ``d`` inputs tell few digits."""
        return replace(
            self,
            precision=self.precision.at(told),
            pace=self.pace.at(told),
            matching=self.matching.at(told, d),
            effort=self.effort.at(told),
            spectrum=self.spectrum.at(told),
            turning=self.turning.at(told, self.spectrum.gap),
            polish=self.polish.at(told),
            depth=self.depth.at(told),
        )

    name: ClassVar[str] = "labels"
    purpose: ClassVar[str] = "one hidden layer or two, from class labels alone"
    hidden: ClassVar[tuple[int, int | None]] = (1, 2)
    answers: ClassVar[frozenset[Law]] = frozenset({Law.LABELS})
    cost: ClassVar[str] = "70 to 1,900"
