"""The table of methods: which there are, which a target is given, and which comes after which."""

import warnings
from collections.abc import Mapping

from revelu.errors import InputError
from revelu.oracle import NoiseFloor, Oracle
from revelu.recover.close import NearDuplicates
from revelu.recover.deep import Deep, Leaky, TwoHidden
from revelu.recover.fit import Fit
from revelu.recover.labels import FromLabels
from revelu.recover.method import Law, Method, Why
from revelu.recover.shallow import OneHidden
from revelu.recover.structured import SharedWeights

__all__ = ["AFTER", "METHODS", "named_method", "select_methods"]

METHODS: tuple[Method, ...] = (
    SharedWeights(),
    OneHidden(),
    NearDuplicates(),
    Fit(),
    TwoHidden(),
    Leaky(),
    Deep(),
    FromLabels(),
)
"""Every method, in the order in which ``auto`` prefers them."""

AFTER: Mapping[tuple[str, Why], str] = {
    ("shared_weights", Why.NOT_SHARED): "one_hidden",
    ("one_hidden", Why.NOT_SHARED): "fit",
    ("one_hidden", Why.HYPERPLANES_END): "two_hidden",
    ("fit", Why.HYPERPLANES_END): "two_hidden",
    ("one_hidden", Why.UNRESOLVED): "near_duplicates",
    ("near_duplicates", Why.UNRESOLVED): "two_hidden",
    ("near_duplicates", Why.CURVED): "two_hidden",
    ("near_duplicates", Why.DISCONTINUOUS): "two_hidden",
    ("near_duplicates", Why.SATURATED): "two_hidden",
    ("two_hidden", Why.BOTH_SIDES): "leaky",
    ("leaky", Why.HYPERPLANES_END): "deep",
    ("leaky", Why.UNRESOLVED): "deep",
    ("leaky", Why.SATURATED): "deep",
    ("two_hidden", Why.HYPERPLANES_END): "deep",
    ("two_hidden", Why.UNRESOLVED): "deep",
    ("two_hidden", Why.SATURATED): "deep",
}
"""Which method takes over where one has ended without a certified network, and why it ended.

A network that fresh answers contradict to the end is ``UNRESOLVED``, whatever its method said.
"""

_FORMER = {
    "two_layer": "one_hidden",
    "any_two_layer": "near_duplicates",
    "three_layer": "two_hidden",
    "least_squares": "fit",
}


def select_methods(noise: NoiseFloor, oracle: Oracle, method: str = "auto") -> tuple[Method, ...]:
    """Return the methods that a target is given: the first to start with, others to go on to.

    ===========  ==========================  ================================================
    asked        answers                     methods
    ===========  ==========================  ================================================
    anywhere     float64, with their digits  ``one_hidden``; as :data:`AFTER` says,
                                             ``near_duplicates``, ``two_hidden``, ``leaky``,
                                             ``deep``
    of an image  float64 and float32         ``shared_weights`` before all others
    anywhere     float32                     ``fit``; as :data:`AFTER` says, ``two_hidden``,
                                             ``deep``
    anywhere     rounded, random             ``fit``
    anywhere     labels                      ``labels``
    in a box     float64, with their digits  ``one_hidden``, then ``two_hidden``, ``deep``
    in a box     float32, rounded, random    ``fit``
    ===========  ==========================  ================================================

    Parameters
    ----------
    noise : NoiseFloor
        As :func:`revelu.oracle.measure_noise` gives it.
    oracle : Oracle
    method : str
        ``auto``, or the name of the only method to use, whatever the answers are.

    Raises
    ------
    InputError
        If there is no such method, or it cannot stay in the oracle's box.
    """
    if method != "auto":
        return (named_method(method, box=oracle.box is not None),)
    law = Law.of(noise)
    image = oracle.image if oracle.box is None else oracle.pixels
    known = tuple(m for m in METHODS if image is not None or not m.of_images)
    if oracle.box is not None:
        able = tuple(m for m in known if m.box)
        return tuple(m for m in able if law in m.answers) or able
    return tuple(m for m in known if law in m.answers)


def named_method(name: str, *, box: bool = False) -> Method:
    """Return the method of a name, today's or a former one.

    Parameters
    ----------
    box : bool
        Whether it has to stay in one.

    Raises
    ------
    InputError
        If there is no such method, or it cannot stay in a box.
    """
    known = {m.name: m for m in METHODS}
    now = _FORMER.get(name, name) if isinstance(name, str) else None
    if now not in known:
        raise InputError(f"unknown method {name!r}; known: auto, {', '.join(known)}")
    if now != name:
        warnings.warn(f"method {name} is now called {now}", FutureWarning, stacklevel=3)
    found = known[now]
    if box and not found.box:
        able = ", ".join(m.name for m in METHODS if m.box)
        raise InputError(f"method {name} asks everywhere; inside a box use auto or {able}")
    return found
