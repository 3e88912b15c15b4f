"""A network and its target, compared on fresh inputs."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from revelu.certify.borders import border_inputs
from revelu.certify.checks import (
    corner_inputs,
    crossing_inputs,
    heavy_tailed_inputs,
    hyperplane_inputs,
)
from revelu.certify.tolerances import Agreement
from revelu.network import Network
from revelu.numerics.links import NONE, Link
from revelu.oracle import NoiseFloor, Oracle
from revelu.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Examination:
    """Answers and predictions on fresh inputs.

    Attributes
    ----------
    X : ndarray, shape (n, d)
    answered : ndarray, shape (n, k)
        As the target gives them; of probabilities ``k`` is one more than below.
    predicted : ndarray, shape (n, k)
        What is compared with the answers behind their link: by the network, or by its ``head``.
    is_drawn : ndarray of bool, shape (n,)
        Drawn from the inputs that the certificate speaks of: N(0, I), or uniform in the box.
        The others are structural: hyperplanes, and tails or corners.
    head : Link
        By which the network's outputs become answers, where those are compared as they are.
    n_skipped : int
        Checks that the budget did not allow.
    box : (lo, hi), optional
    words : str
        What a domain is called, of which the inputs are coordinates.
    agreement : Agreement
        How far a prediction may be off.
    has_classes : bool
        Whether the largest output may be a choice: of a regressor it is not.
    requests : ndarray of int, shape (n,), optional
        Which request has carried each row; of a remote target they are counted in the statement.
    is_remote : bool
        Whether the target is elsewhere, where another may answer in its place.
    rows : ndarray, shape (n, m), optional
        The target's inputs, where these were given.
    source : str
        What those are called.
    names : tuple of str
        What their columns are called.
    """

    X: FloatArray
    answered: FloatArray
    predicted: FloatArray
    is_drawn: BoolArray
    noise: NoiseFloor
    head: Link = NONE
    n_skipped: int = 0
    box: tuple[float, float] | None = None
    words: str = ""
    agreement: Agreement = Agreement()  # noqa: RUF009 - frozen
    has_classes: bool = True
    requests: IntArray | None = None
    is_remote: bool = False
    rows: FloatArray | None = None
    source: str = ""
    names: tuple[str, ...] = ()

    @property
    def n_requests(self) -> int:
        """Requests that carried the inputs drawn; where they are not known, one."""
        if self.requests is None:
            return int(self.is_drawn.any())
        return len(np.unique(self.requests[self.is_drawn]))

    @property
    def inputs(self) -> str:
        """What the certificate speaks of, in words."""
        if self.words:
            return f"inputs {self.words}"
        if self.box is None:
            return "N(0, I) inputs"
        return f"uniform inputs of [{self.box[0]:g}, {self.box[1]:g}]^{self.X.shape[1]}"

    @cached_property
    def Y(self) -> FloatArray:  # noqa: N802
        """Answers to compare, shape (n, k); infinite where the target is saturated."""
        return self.noise.link.inverse(self.answered)

    @cached_property
    def is_seen(self) -> BoolArray:
        """Where the target is not saturated, shape (n,)."""
        return np.asarray(np.isfinite(self.Y).all(axis=1))

    @cached_property
    def errors(self) -> FloatArray:
        """Answers less predictions, shape (n, k); NaN where the target is saturated.

        Infinite where the network overflows and the target does not.
        """
        seen, finite = self.is_seen[:, None], np.isfinite(self.predicted)
        apart = np.where(seen, self.Y, 0.0) - np.where(finite, self.predicted, 0.0)
        return np.where(seen, np.where(finite, apart, np.inf), np.nan)

    @cached_property
    def spread(self) -> FloatArray:
        """Standard deviation of the answers over the inputs drawn, shape (k,)."""
        Y = self.Y[self.is_seen & self.is_drawn]
        if len(Y) < 2:
            return np.zeros(self.Y.shape[1])
        return np.asarray(np.where(np.ptp(Y, axis=0) > 0, Y.std(axis=0, ddof=1), 0.0))

    @cached_property
    def own_errors(self) -> FloatArray:
        """Standard errors of the answers over the inputs drawn, root mean square, shape (k,)."""
        Y = self.Y[self.is_seen & self.is_drawn]
        sigma = np.broadcast_to(self.noise.sigma(Y), Y.shape)
        return np.asarray(np.sqrt((sigma**2).sum(axis=0) / max(len(Y), 1)))

    @cached_property
    def tolerance(self) -> FloatArray:
        """The largest |error| that counts as agreement, shape (n, k)."""
        # The terms of an answer, and its errors, grow with |x| beyond the radius of N(0, I).
        growth = np.maximum(np.sqrt((1.0 + (self.X**2).mean(axis=1)) / 2.0), 1.0)
        # Noise that is added to shares does not.
        is_flat = self.box is not None or (self.noise.are_shares and self.noise.law == "random")
        growth[self.is_drawn | is_flat] = 1.0
        spread = np.maximum(self.spread, self.noise.spread)
        own = self.agreement.of_answers(self.noise, np.where(np.isfinite(self.Y), self.Y, 0.0))
        typical = self.agreement.tolerances(self.noise, spread)
        if self.noise.grid is not None:
            chosen = self.is_drawn if self.is_drawn.any() else np.ones(len(own), dtype=bool)
            typical = self.agreement.no_tail(typical, own[chosen & self.is_seen])
        return np.asarray(np.maximum(typical * growth[:, None], own))

    @cached_property
    def is_foreign(self) -> BoolArray:
        """Where the answer is of another kind than those that measured the noise, shape (n,)."""
        numbers = self.noise.numbers
        known = numbers.hold(self.answered)
        if self.noise.link.name == "softmax":
            # Agreeing log-ratios mean agreeing probabilities only if these sum to 1.
            known &= numbers.are_probabilities(self.answered / self.noise.link.scale)
        return np.asarray(~known)

    @cached_property
    def ratio(self) -> FloatArray:
        """Largest error of a row over its tolerance, shape (n,); at most 1 where they agree.

        Infinite where the answer is foreign.  NaN where target and network are saturated
        alike: their logits cannot be compared.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(self.errors) / self.tolerance
        ratio = np.where(self.errors == 0.0, 0.0, ratio).max(axis=1)
        unseen = ~self.is_seen
        if unseen.any():
            ratio[unseen] = self._saturated_ratio(unseen)
        return np.where(self.is_foreign, np.inf, ratio)

    def _saturated_ratio(self, rows: BoolArray, margin: float = 0.1) -> FloatArray:
        """NaN where the network is saturated as the target is, and answers alike, else infinite.

        A target that is saturated where the network's answer has digits is another function.
        Heads are flat there: answers change by less than what is behind them does, so that its
        tolerance is more than enough.

        Parameters
        ----------
        rows : ndarray of bool, shape (n,)
            Where the target is saturated.
        margin : float
            By which share an answer with digits may be above the smallest one, or nearer to an
            end of the range.
        """
        link, answered, predicted = self.noise.link, self.answered[rows], self.predicted[rows]
        tolerance = self.tolerance[rows].max(axis=1)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            expected = link.head(predicted)
            alike = (np.abs(expected - answered) <= tolerance * link.scale) | (expected == answered)
            if link.overflows:
                edge = (1.0 - margin) * link.high * link.scale
                alike |= (expected > edge) & (answered > edge)
            # What overflows a target's numbers is infinite there, and not where it is predicted.
            largest = (1.0 - margin) * self.noise.numbers.largest
            overflows = np.isinf(answered) & (np.sign(answered) * expected > largest)
            alike |= overflows
            if not link.contrast:
                # Outputs beside the saturated one have their digits.
                alike |= np.abs(link.each(answered) - predicted) <= tolerance
            lost = overflows.any(axis=1) | ~link.shrunk(margin).has_digits(expected)
            alike_saturated = alike.all(axis=1) & lost
        return np.where(alike_saturated, np.nan, np.inf)

    @property
    def is_compared(self) -> BoolArray:
        """Where there is something to compare, shape (n,)."""
        return ~np.isnan(self.ratio)

    @property
    def passed(self) -> bool:
        """Whether every row that could be compared agrees."""
        compared = self.ratio[self.is_compared]
        return bool(len(compared) and (compared <= 1.0).all())

    @property
    def worst_point(self) -> FloatArray:
        """The input with the largest error, shape (d,); a Gaussian one where one is wrong.

        One where the target is not saturated, if any: a line through the others says
        nothing.
        """
        ratio = np.nan_to_num(self.ratio, nan=0.0)
        finite = np.where(np.isfinite(ratio), ratio, 0.0)
        ratio = finite if finite.max(initial=0.0) > 1.0 else ratio
        gaussian = np.where(self.is_drawn, ratio, 0.0)
        chosen = gaussian if gaussian.max(initial=0.0) > 1.0 else ratio
        return np.asarray(self.X[int(np.argmax(chosen))])

    def by(self, network: Network) -> "Examination":
        """Return the same answers, held against another network's predictions."""
        return replace(self, predicted=predictions(network, self.X, self.head))

    def only(self, chosen: BoolArray) -> "Examination":
        """Return the rows chosen."""
        return replace(
            self,
            X=self.X[chosen],
            answered=self.answered[chosen],
            predicted=self.predicted[chosen],
            is_drawn=self.is_drawn[chosen],
            requests=None if self.requests is None else self.requests[chosen],
            rows=None if self.rows is None else self.rows[chosen],
        )

    def sought(self) -> "Examination":
        """Return the same rows as such that were not drawn."""
        return replace(self, is_drawn=np.zeros(len(self.X), dtype=bool), n_skipped=0)

    def __add__(self, other: "Examination") -> "Examination":
        requests = None
        if self.requests is not None and other.requests is not None:
            later = other.requests + self.requests.max(initial=-1) + 1
            requests = np.concatenate([self.requests, later])
        return replace(
            self,
            requests=requests,
            X=np.vstack([self.X, other.X]),
            answered=np.vstack([self.answered, other.answered]),
            predicted=np.vstack([self.predicted, other.predicted]),
            is_drawn=np.concatenate([self.is_drawn, other.is_drawn]),
            n_skipped=self.n_skipped + other.n_skipped,
            rows=None
            if self.rows is None or other.rows is None
            else np.vstack([self.rows, other.rows]),
            source=" and ".join(dict.fromkeys(filter(None, [self.source, other.source]))),
        )


def examine(
    network: Network,
    oracle: Oracle,
    noise: NoiseFloor,
    n_drawn: int,
    rng: np.random.Generator,
    *,
    structural: bool = True,
) -> Examination:
    """Compare a network with its target on fresh inputs, in one round.

    Parameters
    ----------
    oracle : Oracle
        Queries are booked under ``verify``.
    n_drawn : int
        Points of N(0, I), or uniform in the oracle's box; fewer where the budget is smaller.
    structural : bool
        Also ask both sides of every neuron's hyperplane or border, and heavy tails or corners.
    """
    d, box = oracle.dim_in, oracle.box
    sides = _sides(rng, network, box) if structural else np.empty((0, d))
    n_tails = -(-n_drawn // 10) if structural else 0  # a tenth as many, rounded up
    wanted = n_drawn + len(sides) + n_tails
    room = wanted if oracle.remaining is None else min(wanted, oracle.remaining)
    # The points drawn, which the statement rests on, get at least half of a tight budget.
    n_extra = min(len(sides) + n_tails, max(room // 2, room - n_drawn))
    sides = sides[:n_extra]
    n_tails = n_extra - len(sides)
    if box is None:
        tails, X = heavy_tailed_inputs(rng, n_tails, d), rng.standard_normal((room - n_extra, d))
    else:
        tails, X = corner_inputs(rng, n_tails, d, box), rng.uniform(*box, (room - n_extra, d))
    examination = examine_given(np.vstack([X, sides, tails]), network, oracle, noise)
    is_drawn = np.arange(room) < len(X)
    return replace(examination, is_drawn=is_drawn, n_skipped=wanted - room)


def examine_given(
    X: FloatArray, network: Network, oracle: Oracle, noise: NoiseFloor
) -> Examination:
    """Compare a network with its target on given queries ``X (n, d)``, as :func:`examine` does.

    Raises
    ------
    LimitReachedError
        If the budget does not allow it.
    """
    if not noise.is_exact:
        # A float32 target must not lose any digits of its inputs.
        X = oracle.in_float32(X)
    with oracle.phase("verify"), oracle.as_answered():
        answered = oracle(X)
    return _compared(X, answered, network, oracle, noise)


def examine_rows(
    rows: FloatArray,
    network: Network,
    oracle: Oracle,
    noise: NoiseFloor,
    source: str = "inputs given",
) -> Examination:
    """Compare a network with its target on rows that somebody has, to their last bits.

    A target that tells a column's values apart by equality is another one beside them.

    Parameters
    ----------
    rows : ndarray, shape (n, m)
        The target's inputs, whatever the domain, none outside of it.
    network : Network
        In the domain's coordinates, as of :func:`examine`.
    source : str
        What they are called.

    Raises
    ------
    LimitReachedError
        If the budget does not allow it.
    """
    domain = oracle.domain
    if not noise.is_exact:
        near = rows.astype(np.float32).astype(np.float64)
        if domain is not None:
            near = np.where(domain.is_held, rows, near)
            near = near if domain.bounds is None else np.clip(near, *domain.bounds)
        rows = near if oracle.box is None or domain is not None else np.clip(near, *oracle.box)
    with oracle.phase("verify"), oracle.as_answered():
        answered = oracle.at(rows)
    X = rows if domain is None else domain.to_coordinates(rows)
    seen = _compared(X, answered, network, oracle, noise)
    names = () if domain is None else domain.names
    return replace(seen, rows=rows, source=source, names=names)


def _compared(
    X: FloatArray, answered: FloatArray, network: Network, oracle: Oracle, noise: NoiseFloor
) -> Examination:
    """Answers to queries ``X (n, d)`` beside predictions, none of them drawn yet."""
    sizes = oracle.request_sizes(len(X))
    head = noise.link if noise.compares_answers else NONE
    return Examination(
        X,
        answered,
        predictions(network, X, head),
        np.zeros(len(X), dtype=bool),
        noise.of_answers,
        head,
        box=oracle.box,
        words="" if oracle.domain is None else oracle.domain.words,
        has_classes=not getattr(oracle.target, "is_regressor", False),
        requests=np.repeat(np.arange(len(sizes)), sizes),
        is_remote=oracle.is_remote,
    )


def predictions(network: Network, X: FloatArray, head: Link = NONE) -> FloatArray:
    """Evaluate a network and its head; what overflows is infinite or NaN, which no check passes."""
    with np.errstate(over="ignore", invalid="ignore"):
        return head.head(network(X))


def _sides(
    rng: np.random.Generator, network: Network, box: tuple[float, float] | None
) -> FloatArray:
    """Both sides of every neuron's hyperplane or border."""
    if box is not None:
        return crossing_inputs(rng, network, box)
    return np.vstack([hyperplane_inputs(rng, network), border_inputs(rng, network)])
