"""Samples of answers behind a head: what is behind the link is learned."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from revelu.errors import InputError
from revelu.formats.samples import CheckedChunk
from revelu.numerics.links import Link
from revelu.types import FloatArray


def named_link(name: str) -> Link | None:
    """Return the link of a name; None of ``auto``, which looks for probabilities of all classes.

    Raises
    ------
    InputError
        If there is no such link, or samples do not take it.
    """
    link = None if name == "auto" else Link.named(name)
    if link is not None and link.name == "log-softmax":
        raise InputError(f"learn takes probabilities by --link softmax, not link {link}")
    return link


def undone(y: Any, link: Link, where: str = "") -> FloatArray:
    """Return what is behind answers ``(n,)`` or ``(n, k)``, same shape.

    Raises
    ------
    InputError
        If an answer is outside of the link's range, or at an end of it, where nothing is known of
        what is behind; the message names its row.
    """
    Y = np.asarray(y)
    if Y.dtype.kind not in "fiu":
        return Y  # whoever reads it says what it is
    Y = Y.astype(np.float64)
    Z = link.each(Y)
    bad = np.isnan(Z) & ~np.isnan(Y)
    if bad.any():
        row = int(np.flatnonzero(bad.reshape(len(Y), -1).any(axis=1))[0])
        low, high = (link.scale * end for end in (link.form.low, link.form.high))
        answer = Y[bad][0]
        raise InputError(
            f"link {link}: {where}row {row} answers {answer:g}, and what lies between {low:g} and "
            f"{high:g} alone says what is behind it ({int(bad.sum()):,} such answers)"
        )
    return Z


@dataclass(frozen=True)
class Behind:
    """Chunks of samples, as :func:`revelu.learn` takes them, whose answers a link has undone."""

    chunks: Callable[[], Iterable[Any]]
    link: Link

    def __call__(self) -> Iterator[CheckedChunk]:
        """Yield them."""
        for i, chunk in enumerate(self.chunks()):
            name = chunk.name if isinstance(chunk, CheckedChunk) else f"chunk {i}"
            yield CheckedChunk(name, partial(_read, chunk, self.link, f"{name}: "))


def _read(chunk: Any, link: Link, where: str) -> tuple[Any, FloatArray]:
    read = chunk.read if isinstance(chunk, CheckedChunk) else chunk
    X, y = read() if callable(read) else read
    return X, undone(y, link, where)
