"""Links: what stands between a network and its answers, as in generalised linear models.

A target answers ``y = scale * head(z)`` of a network ``z``; the link ``z = g(y / scale)`` undoes
the head.  Each is a strictly increasing function of one answer, ``g``; of probabilities of all
classes, and of their logarithms, only differences to the last class are known, their *contrast*.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import expit, logit

from revelu.errors import InputError
from revelu.types import BoolArray, FloatArray

_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Elementwise:
    """The function of one answer that a link is made of.

    Attributes
    ----------
    inverse : callable
        ``g``, of an answer over the scale.
    slope : callable
        Its derivative.
    head : callable
        The inverse of ``g``.
    low, high : float
        Between which answers over the scale lie.
    given, behind : str
        What answers are, and what the network gives, for people.
    steps : tuple of str
        The operators of ONNX that compute the head.
    contrast : bool
        Whether only differences to the last output are known.
    steepest : float
        The most that an answer over the scale changes, over what the network's output does; of a
        contrast, over the range of what all outputs do.
    """

    inverse: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    head: Callable[[FloatArray], FloatArray]
    low: float
    high: float
    given: str
    behind: str
    steps: tuple[str, ...] = ()
    contrast: bool = False
    steepest: float = np.inf


def _one(Y: FloatArray) -> FloatArray:
    return np.ones(np.shape(Y))


def _same(Y: FloatArray) -> FloatArray:
    return Y


FORMS: dict[str, Elementwise] = {
    "none": Elementwise(_same, _one, _same, -np.inf, np.inf, "numbers", "numbers", steepest=1.0),
    "softmax": Elementwise(
        np.log,
        lambda Y: 1.0 / Y,
        np.exp,
        0.0,
        1.0,
        "probabilities",
        "logits",
        ("Softmax",),
        contrast=True,
        # An answer p changes by p (1 - p) times what its output does beside the mean of others.
        steepest=0.25,
    ),
    "log-softmax": Elementwise(
        _same,
        _one,
        _same,
        -np.inf,
        0.0,
        "logarithms of probabilities",
        "logits",
        ("LogSoftmax",),
        contrast=True,
        steepest=1.0,
    ),
    "logit": Elementwise(
        logit,
        lambda Y: 1.0 / (Y * (1.0 - Y)),
        expit,
        0.0,
        1.0,
        "a sigmoid's",
        "logits",
        ("Sigmoid",),
        steepest=0.25,
    ),
    "log": Elementwise(
        np.log, lambda Y: 1.0 / Y, np.exp, 0.0, np.inf, "exponentials", "logarithms", ("Exp",)
    ),
    "log1p": Elementwise(
        np.log1p,
        lambda Y: 1.0 / (1.0 + Y),
        np.expm1,
        -1.0,
        np.inf,
        "exponentials less 1",
        "logarithms",
        ("Exp", "Sub"),
    ),
    "atanh": Elementwise(
        np.arctanh,
        lambda Y: 1.0 / (1.0 - Y**2),
        np.tanh,
        -1.0,
        1.0,
        "a tanh's",
        "their atanh",
        ("Tanh",),
        steepest=1.0,
    ),
}
"""The links that are known, from the simplest on."""


@dataclass(frozen=True)
class Link:
    """What undoes a target's head.

    Attributes
    ----------
    name : str
        One of :data:`FORMS`.
    scale : float
        By which the head is multiplied: 100 of per cent.
    low, high : float or ndarray, shape (k,)
        Answers over the scale outside of these have no digits: the target is saturated there.
        Without a head they are caps, which answers do not leave.
    """

    name: str = "none"
    scale: float = 1.0
    low: FloatArray | float = -np.inf
    high: FloatArray | float = np.inf

    @classmethod
    def named(cls, text: str) -> Self:
        """Return the link of a name, with its scale where it has one: ``"logit*100"``.

        Raises
        ------
        InputError
            If there is no such link, or the scale is no positive number.
        """
        name, star, written = text.partition("*")
        if name not in FORMS:
            raise InputError(f"unknown link {text!r}; known: auto, {', '.join(FORMS)}")
        try:
            scale = float(written) if star else 1.0
        except ValueError:
            scale = np.nan
        if not (np.isfinite(scale) and scale > 0.0) or (star and name in {"none", "log-softmax"}):
            raise InputError(f"link {text!r}: behind * stands a positive number, as in logit*100")
        return cls(name, scale, FORMS[name].low, FORMS[name].high)

    def __str__(self) -> str:
        return self.name if self.scale == 1.0 else f"{self.name}*{self.scale:g}"

    @property
    def form(self) -> Elementwise:
        """Its function of one answer."""
        return FORMS[self.name]

    @property
    def has_head(self) -> bool:
        """Whether anything stands between the network and its answers."""
        return self.name != "none"

    @property
    def clips(self) -> bool:
        """Whether answers are the network's own but for caps, at which they say nothing."""
        return not self.has_head and bool(
            np.isfinite(self.low).any() | np.isfinite(self.high).any()
        )

    @property
    def saturates(self) -> bool:
        """Whether some answers say nothing of what is behind them."""
        return self.has_head or self.clips

    @property
    def overflows(self) -> bool:
        """Whether answers have no largest size, and are infinite where it is beyond a number's."""
        return np.isfinite(self.form.low) and not np.isfinite(self.form.high)

    @property
    def contrast(self) -> bool:
        """Whether outputs are known up to a common shift: there is one fewer of them."""
        return self.form.contrast

    def said(self, done: str) -> str:
        """Say what answers are, and of what the network is: ``done`` is recovered, or compared."""
        scale = "" if self.scale == 1.0 else f" times {self.scale:g}"
        shift = " up to a common shift" if self.contrast else ""
        return f"the answers are {self.form.given}{scale}: {self.form.behind} are {done}{shift}"

    def within(self, low: FloatArray | float, high: FloatArray | float) -> Self:
        """Return the same link, saturated where answers over the scale are outside of these."""
        return replace(self, low=low, high=high)

    def shrunk(self, margin: float) -> Self:
        """Return the same link, whose answers have digits by ``margin`` farther inside.

        From an end of the range it is that share of the distance.
        """
        low, high = np.asarray(self.low, dtype=float), np.asarray(self.high, dtype=float)
        if np.isfinite(self.form.low):
            low = self.form.low + (low - self.form.low) * (1.0 + margin)
        if np.isfinite(self.form.high):
            high = self.form.high - (self.form.high - high) * (1.0 + margin)
        elif np.isfinite(high):
            high = high * (1.0 - margin)
        return replace(self, low=low, high=high)

    def holds(self, Y: FloatArray) -> BoolArray:
        """Tell which answers ``(n, k)`` the head can give, by row, shape (n,)."""
        U = Y / self.scale
        return np.asarray(((self.form.low <= U) & (self.form.high >= U)).all(axis=1))

    def has_digits(self, Y: FloatArray) -> BoolArray:
        """Tell which rows of answers ``(n, k)`` are not saturated, shape (n,)."""
        return np.asarray(np.isfinite(self.each(Y)).all(axis=1))

    def each(self, Y: FloatArray) -> FloatArray:
        """Undo the head of each answer, same shape; NaN of those that have no digits."""
        U = Y / self.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            Z = self.form.inverse(U)
        inside = (self.low <= U) & (self.high >= U)
        if self.clips:
            inside = (self.low < U) & (self.high > U)
        return np.where(np.isfinite(Z) & inside, Z, np.nan)

    def inverse(self, Y: FloatArray) -> FloatArray:
        """Undo the head, (n, k) -> (n, k), or (n, k - 1) of a contrast.

        A row with an answer that has no digits is infinite: the target is saturated there.
        """
        if not (self.has_head or self.clips):
            return Y
        Z = self.each(Y)
        Z = Z[:, :-1] - Z[:, -1:] if self.contrast else Z
        Z[~np.isfinite(Z).all(axis=1)] = np.inf
        return np.asarray(Z, dtype=np.float64)

    def errors(self, Y: FloatArray, sigma: FloatArray) -> FloatArray:
        """Standard errors of what :meth:`inverse` gives, of those of answers, both (n, k).

        Those of a saturated row are infinite.
        """
        seen = self.has_digits(Y)
        U = np.where(seen[:, None], Y / self.scale, self._inside)
        own = np.broadcast_to(sigma, Y.shape) / self.scale * self.form.slope(U)
        own = np.hypot(own[:, :-1], own[:, -1:]) if self.contrast else own
        return np.where(seen[:, None], own, np.inf)

    def head(self, Z: FloatArray) -> FloatArray:
        """What the target answers where the network gives ``Z``; of a contrast one column more."""
        if self.clips:
            return np.clip(Z, self.low, self.high)
        if not self.contrast:
            return np.asarray(self.scale * self.form.head(Z))
        full = np.column_stack([Z, np.zeros(len(Z))])
        with np.errstate(invalid="ignore"):  # an infinite logit has no probability: NaN
            shifted = full - full.max(axis=1, keepdims=True)
            L = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return np.asarray(self.scale * self.form.head(L))

    def derivative(self, Z: FloatArray) -> FloatArray:
        """Of the answers by what is behind the head, at ``Z (n, k)``, shape (n, K, k)."""
        P = self.head(Z)
        n, k = Z.shape
        if not self.contrast:
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = self.scale / self.form.slope(P / self.scale)
            return np.asarray(np.where(np.isfinite(slope), slope, 0.0)[:, :, None] * np.eye(k))
        own = np.broadcast_to(np.eye(k + 1)[:, :k], (n, k + 1, k))
        if self.name == "log-softmax":
            return np.asarray(own - np.exp(P)[:, None, :k])
        U = P / self.scale
        return np.asarray(P[:, :, None] * (own - U[:, None, :k]))

    def answers(self, Y: FloatArray) -> FloatArray:
        """What the target answers where a recovered network gives ``Y (n, k)``.

        Of a contrast the network has an output for each answer, known up to a common shift.
        """
        return self.head(Y[:, :-1] - Y[:, -1:] if self.contrast else Y)

    @property
    def _inside(self) -> float:
        """An answer over the scale where the inverse is finite."""
        return 0.5 if self.form.low == 0.0 else -0.5 if self.form.high == 0.0 else 0.0


NONE = Link()
"""No link: the answers are the network's own."""

SOFTMAX = Link.named("softmax")
"""Of probabilities of all classes."""
