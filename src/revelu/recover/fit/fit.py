"""The method for answers of few digits, and what tunes it."""

from dataclasses import dataclass, field

from revelu.probe.smoothness import Smoothness
from revelu.probe.steps import Steps
from revelu.recover.fit.as_served import AsServed
from revelu.recover.fit.ending import Ending
from revelu.recover.fit.exchange import NeuronExchange
from revelu.recover.fit.far_out import FarOut
from revelu.recover.fit.from_chords import FromChords
from revelu.recover.fit.from_lines import FromLines
from revelu.recover.fit.where_wrong import WhereWrong
from revelu.recover.method import Law, Method


@dataclass(frozen=True)
class Fit(Method):
    """One hidden layer from answers of few digits, by least squares."""

    name = "fit"
    purpose = "one hidden layer, from answers of few digits or with noise"
    hidden = (1, 1)
    answers = frozenset({Law.FLOAT32, Law.HALF_PRECISION, Law.ROUNDED, Law.RANDOM})
    cost = "2 to 6"
    spends = (2.0, 6.0)
    spends_fewer = True
    max_starts = 2
    most_work = 2e11

    many_inputs: int = 128
    n_slice: int = 32
    """Inputs from which on a slice of ``n_slice`` coordinates is worth its queries."""
    fine: float = 4e-5
    """Above this noise neither slopes nor the kinks of a line are to be had."""
    limit: float = 1.5
    grid_limit: float = 1.2
    """The reduced cost that noise alone may leave: its floor is an estimate, but for the grid of
    rounded answers, whose error is known."""
    min_answered: float = 0.25
    min_told: float = 0.05
    """The search ends where a smaller share of answers is not saturated, and where a smaller share
    of noisy probabilities is told from their noise."""
    tempered: float = 0.1
    """The share of the even error that is added to that of each log-ratio in searches: errors that
    differ by orders of magnitude make more minima."""
    first_width: int = 4
    first_width_behind_head: int = 12
    """Neurons that the first samples could determine, or a quarter of the inputs; those of rounded
    answers behind a head, where searches for too few are lost at once."""
    span_margin: float = 1.25
    """Inside a span, so much more than its dimension."""
    no_interpolation: float = 2.0
    """Equations a parameter from which a network that explains all samples is no accident: it is
    right but for neurons that fire on few of them."""
    line_margin: float = 1.1
    """Neurons looked for, over the kinks of a line."""
    ending: Ending = field(default_factory=Ending)
    far_out: FarOut = field(default_factory=FarOut)
    exchange: NeuronExchange = field(default_factory=NeuronExchange)
    """What ends a search that explains nothing, and what is tried before: on a grid of one step far
    out, else where answers are plenty."""
    equations: float = 1.8
    slope_equations: float = 1.25
    """Equations a parameter for the last fit of a network known in a span only, and beside those of
    slopes, where there are hardly more equations than queries."""
    coarse_equations: float = 3.4
    coarse_equations_many_outputs: float = 6.0
    """Those for coarser answers, whose errors the fit is to average."""
    coarse: float = 4e-6
    coarse_lines: float = 1.2e-5
    coarse_log_ratios: float = 1e-4
    """The noise from which answers count as coarse, and from which answers, and log-ratios of
    probabilities, are not asked along lines: these show many neurons in seconds where random starts
    take minutes, which ask a third less of small networks; of log-ratios these take many seconds
    for several outputs, and mostly find nothing."""
    line_equations_behind_head: float = 3.0
    equations_behind_head: float = 5.0
    """Equations a parameter of fits to rows of lines behind a head, where many answers have few
    digits, and of searches from random starts: of 20 neurons and 30 inputs 30 are fitted with four
    and more, and end beside the truth with three."""
    as_served: AsServed = field(default_factory=AsServed)
    """How rounded answers behind a head are fitted in the end."""
    n_foretold: int = 32
    """Of ``n_foretold`` places one is asked, that where the answer is foretold to round least."""
    from_lines: FromLines = field(default_factory=FromLines)
    from_chords: FromChords = field(default_factory=FromChords)
    """How neurons are found where lines show them, and inside a box."""
    few_outputs: int = 30
    """With more outputs searches begin at random: on lines they are untried."""
    many_kinks: int = 20
    few_kinks: int = 5
    endless_kinks: int = 100
    """Kinks of a line without rows, from which random starts find none either; ``few_kinks`` are
    enough where none is a single neuron's.  Of ``endless_kinks`` another start finds none."""
    n_before_line: int = 2
    n_before_smooth: int = 3
    n_before_steps: int = 8
    n_before_lines: int = 3
    """Searches that fail before a line, or short segments, tell smooth functions apart, jumps tell
    step functions from rounded answers, and lines tell more hidden layers."""
    before_steps: int = 4000
    before_lines: float = 5e11
    """So do answers to which looking for jumps adds a fifth at most, and multiplications of the
    next step."""
    n_last_lines: int = 5
    """Lines that tell more layers where no sample has been explained."""
    smoothness: Smoothness = field(default_factory=Smoothness)
    steps: Steps = field(default_factory=Steps)
    """What tells smooth functions on short segments, and step functions."""
    max_repairs: int = 4
    max_large_repairs: int = 2
    """How often a network from lines is fitted to more answers, or one that iterations fit."""
    more_answers: float = 0.25
    where_wrong: WhereWrong = field(default_factory=WhereWrong)
    """Those are this share of what it was fitted to, and what shows neurons that it lacks."""
    rest_errors: float = 30.0
    rest_rtol: float = 0.05
    """The affine rest that noise leaves is this many errors of the answers, and this share of the
    neurons' affine maps at most."""
    sign_rounding: float = 0.3
    rest_cost: float = 1.2
    """An unknown sign, 0 or 1, may be this far off, and a refit without the rest decides, by a cost
    that grows by no more than this."""
