"""The method for answers of few digits, and what tunes it."""

from dataclasses import dataclass, field

from revelu.probe.smoothness import Smoothness
from revelu.probe.steps import Steps
from revelu.recover.fit.as_served import AsServed
from revelu.recover.fit.ending import Ending
from revelu.recover.fit.far_out import FarOut
from revelu.recover.fit.from_chords import FromChords
from revelu.recover.fit.from_lines import FromLines
from revelu.recover.fit.where_wrong import WhereWrong
from revelu.recover.method import Law, Method


@dataclass(frozen=True)
class Fit(Method):
    """One hidden layer from answers of few digits, by least squares.

    Attributes
    ----------
    many_inputs : int
        With fewer inputs fewer coordinates are not worth their queries.
    fine : float
        Above this noise neither slopes nor the kinks of a line are to be had.
    n_slice : int
        Coordinates of a slice.
    limit, grid_limit : float
        The reduced cost that noise alone may leave: its floor is an estimate, but for the grid
        of rounded answers, whose error is known.
    min_answered : float
        Saturated answers say nothing; where a smaller share is left, so is the search,
    min_told : float
        and where a smaller share of noisy probabilities is told from their noise.
    tempered : float
        The share of the even error that is added to that of each log-ratio in searches: errors
        that differ by orders of magnitude make more minima.
    first_width : int
        Neurons that the first samples could determine, or a quarter of the inputs;
    first_width_behind_head : int
        of rounded answers behind a head, where searches for too few are lost at once.
    span_margin : float
        Inside a span, so much more than its dimension.
    no_interpolation : float
        Equations a parameter from which a network that explains all samples is no accident: it
        is right but for neurons that fire on few of them.
    line_noise : float
        The noise of a line's answers is what differences of answers suggest, times what they
        hide and what rounding the queries adds.
    line_margin : float
        Neurons looked for, over the kinks of a line.
    ending : Ending
        What ends a search that explains nothing.
    far_out : FarOut
        What is tried before, where errors do not grow as answers do.
    equations : float
        Equations a parameter for the last fit of a network known in a span only,
    slope_equations : float
        beside those of slopes, where there are hardly more equations than queries,
    coarse_equations, coarse_equations_many_outputs : float
        and of coarser answers, whose errors the fit is to average.
    coarse : float
        The noise from which answers count as coarse,
    coarse_lines, coarse_log_ratios : float
        and that from which answers, and log-ratios of probabilities, are not asked along lines:
        they show neurons of many inputs in seconds where random starts take minutes, which ask a
        third less of small networks, whose answers are mostly coarser; of log-ratios random starts
        take many seconds for several outputs, and mostly find nothing.
    line_equations_behind_head, equations_behind_head : float
        Equations a parameter of fits to rows of lines behind a head, where many answers have few
        digits, and of searches from random starts: of 20 neurons and 30 inputs 30 are fitted with
        four and more, and end beside the truth with three.
    as_served : AsServed
        How rounded answers behind a head are fitted in the end.
    n_foretold : int
        Of ``n_foretold`` places one is asked, that where the answer is foretold to round least.
    from_lines : FromLines
        How neurons are found where lines show them.
    from_chords : FromChords
        How they are found inside a box.
    few_outputs : int
        With more outputs searches begin at random: on lines they are untried,
    many_kinks : int
        Kinks of a line that shows no row, from which random starts do not find one either,
    few_kinks : int
        or ``few_kinks``, none of which is a single neuron's,
    endless_kinks : int
        nor does another start where there are ``endless_kinks``.
    n_before_line : int
        A line tells smooth functions apart once ``n_before_line`` searches have failed,
    n_before_smooth : int
        short segments once ``n_before_smooth`` have,
    n_before_steps, before_steps : int, int
        and jumps tell step functions from rounded answers once ``n_before_steps`` have, or have
        asked so much that looking for jumps adds a fifth at most,
    n_before_lines : int
        and some tell more hidden layers once ``n_before_lines`` have,
    before_lines : float
        or a step of the next one takes ``before_lines`` multiplications;
    n_last_lines : int
        ``n_last_lines`` lines do where no sample has been explained.
    smoothness : Smoothness
        What tells smooth functions on short segments.
    steps : Steps
        What tells step functions.
    max_repairs, max_large_repairs : int
        How often a network from lines is fitted to more answers, or one that iterations fit,
    more_answers : float
        this share of those it was fitted to,
    where_wrong : WhereWrong
        and to those that show neurons it lacks.
    rest_errors : float
        The affine rest that noise leaves is this many errors of the answers,
    rest_rtol : float
        and this share of the neurons' affine maps at most;
    sign_rounding : float
        an unknown sign, 0 or 1, may be this far off,
    rest_cost : float
        and a refit without the rest decides, by a cost that grows by no more than this.
    """

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
    fine: float = 4e-5
    n_slice: int = 32
    limit: float = 1.5
    grid_limit: float = 1.2
    min_answered: float = 0.25
    min_told: float = 0.05
    tempered: float = 0.1
    first_width: int = 4
    first_width_behind_head: int = 12
    span_margin: float = 1.25
    no_interpolation: float = 2.0
    line_noise: float = 3.0
    line_margin: float = 1.1
    ending: Ending = field(default_factory=Ending)
    far_out: FarOut = field(default_factory=FarOut)
    equations: float = 1.8
    slope_equations: float = 1.25
    coarse_equations: float = 3.4
    coarse_equations_many_outputs: float = 6.0
    coarse: float = 4e-6
    coarse_lines: float = 1.2e-5
    coarse_log_ratios: float = 1e-4
    line_equations_behind_head: float = 3.0
    equations_behind_head: float = 5.0
    as_served: AsServed = field(default_factory=AsServed)
    n_foretold: int = 32
    from_lines: FromLines = field(default_factory=FromLines)
    from_chords: FromChords = field(default_factory=FromChords)
    few_outputs: int = 30
    many_kinks: int = 20
    endless_kinks: int = 100
    few_kinks: int = 5
    n_before_line: int = 2
    n_before_smooth: int = 3
    n_before_steps: int = 8
    before_steps: int = 4000
    n_before_lines: int = 3
    before_lines: float = 5e11
    n_last_lines: int = 5
    smoothness: Smoothness = field(default_factory=Smoothness)
    steps: Steps = field(default_factory=Steps)
    max_repairs: int = 4
    max_large_repairs: int = 2
    more_answers: float = 0.25
    where_wrong: WhereWrong = field(default_factory=WhereWrong)
    rest_errors: float = 30.0
    rest_rtol: float = 0.05
    sign_rounding: float = 0.3
    rest_cost: float = 1.2
