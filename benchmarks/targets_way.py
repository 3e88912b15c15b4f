"""A way in, and what is right of it; for benchmarks/targets.py."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from revelu import Network
from revelu.types import FloatArray

Rng = np.random.Generator

D, HIDDEN, CLASSES = 12, 6, 3

# Stands in commands for the address of a server that runs while they do.
HOST = "http://HOST"


@dataclass(frozen=True)
class Made:
    """A target, and what is right of it.

    Attributes
    ----------
    command : str
        What a user types after ``revelu``.
    truth : callable or None
        ``(n, d)`` to what the written network should answer; None of what is to be named.
    words : str
        What the line that names it has in it.
    inputs : ndarray, shape (n, d)
        Where it is judged.
    rounding : float
        By how much what was saved errs itself.
    rows : ndarray or None
        What the span of a first layer should be the span of.
    serve : callable or None
        The Python of an environment to a server, which gives its address.
    environment : mapping of str to str
        Variables that the user has set.
    """

    command: str
    truth: Callable[[FloatArray], Any] | None = None
    words: str = ""
    inputs: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    rounding: float = 0.0
    rows: FloatArray | None = None
    serve: Callable[[Path], AbstractContextManager[str]] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Way:
    """A way in.

    Attributes
    ----------
    name : str
    make : callable, Rng -> Made
    needs : tuple of str
        Packages that make it.
    seed : int
    program : str
        The environment of its server, of those that ``program_serving`` makes.
    """

    name: str
    make: Callable[[Rng], Made]
    needs: tuple[str, ...] = ()
    seed: int = 0
    program: str = ""


def points(rng: Rng, d: int = D) -> FloatArray:
    """Fresh inputs."""
    return rng.standard_normal((1_000, d))


def small_network(rng: Rng, d: int = D, k: int = CLASSES) -> Network:
    """A network whose kinks lie where inputs do."""
    weights = [rng.standard_normal((HIDDEN, d)) / np.sqrt(d), rng.standard_normal((k, HIDDEN))]
    return Network(weights, [0.3 * rng.standard_normal(HIDDEN), rng.standard_normal(k)])


def to_last(logits: FloatArray) -> FloatArray:
    """Logits of a classifier as they come back: the last one 0."""
    return logits - logits[:, -1:]
