"""State dicts of other programs, read as a chain of linear layers.

Nothing in a state dict says what is between its layers, nor in which order they run.  Names and
shapes do where they make one chain: ``fc1.weight (k, d)``, ``fc1.bias``, ``fc2.weight``, ..., with
batch normalisation, whose ``running_mean`` and ``running_var`` make it an affine map, folded into
the layer before it, or behind it where an activation stands between the two.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import Arrays
from revelu.types import FloatArray

_NORM = {"running_mean", "running_var"}
_COUNT = "num_batches_tracked"

_NUMBERED = re.compile(r"(.*?)(\d+)")


@dataclass(frozen=True)
class Chain:
    """Layers in the order in which they run, an activation between any two.

    Attributes
    ----------
    arrays : Arrays
    words : str
        The chain, for people.
    """

    arrays: Arrays
    words: str


@dataclass(frozen=True, eq=False)
class _Part:
    """A layer or a normalisation of a state dict.

    Attributes
    ----------
    name : str
    W : ndarray, shape (k, d) or (k,)
        Weights of a layer; the factors of a normalisation.
    b : ndarray, shape (k,)
    """

    name: str
    W: FloatArray
    b: FloatArray

    @property
    def is_layer(self) -> bool:
        return self.W.ndim == 2

    @property
    def words(self) -> str:
        if self.is_layer:
            return f"{self.name} ({self.W.shape[1]} to {self.W.shape[0]})"
        return f"{self.name} (batch norm of {len(self.b)})"

    @property
    def numbered(self) -> tuple[str, int]:
        """The name without its number, and the number; -1 where there is none."""
        found = _NUMBERED.fullmatch(self.name)
        return (self.name, -1) if found is None else (found[1], int(found[2]))


def read_chain(path: Path, named: Mapping[str, np.ndarray], *, in_order: bool) -> Chain:
    """Read a chain of layers.

    Parameters
    ----------
    path : pathlib.Path
        Begins every message.
    named : mapping of str to ndarray
        The arrays of a state dict.
    in_order : bool
        Whether they come in the order in which their module has them.

    Raises
    ------
    FormatError
        If they are no such chain, or may be several; the message shows what was read.
    """
    parts = _parts(path, named)
    parts = _ordered(path, parts, in_order=in_order)
    words = ", ".join(part.words for part in parts)
    layers: list[tuple[FloatArray, FloatArray]] = []
    behind: _Part | None = None
    for i, part in enumerate(parts):
        if part.is_layer:
            W, b = part.W, part.b
            if behind is not None:
                W, b = W * behind.W, b + W @ behind.b
                behind = None
            layers.append((W, b))
        elif _is_behind_activation(path, parts, i, words):
            behind = part
        else:
            W, b = layers[-1]
            layers[-1] = (part.W[:, None] * W, part.W * b + part.b)
    _check_activations(path, parts, words)
    return Chain(Arrays([W for W, _ in layers], [b for _, b in layers], None), words)


def shown(named: Mapping[str, np.ndarray], most: int = 8) -> str:
    """Say which arrays there are."""
    listed = [f"{name} {list(a.shape)}" for name, a in named.items() if a.ndim]
    return ", ".join(listed[:most]) + (", ..." if len(listed) > most else "")


def _parts(path: Path, named: Mapping[str, np.ndarray]) -> list[_Part]:
    """Layers and normalisations, in the order of the file."""
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, array in named.items():
        prefix, _, leaf = name.rpartition(".")
        groups.setdefault(prefix, {})[leaf] = array
    parts: list[_Part] = []
    for name, arrays in groups.items():
        part = _part(name, arrays)
        if part is None:
            so_far = ", ".join(part.words for part in parts) or "nothing"
            what = shown({f"{name}.{leaf}".strip("."): array for leaf, array in arrays.items()})
            raise FormatError(
                f"{path}: no chain of linear layers: {what} is none; read before it: {so_far}"
            )
        parts.append(part)
    return parts


def _part(name: str, arrays: Mapping[str, np.ndarray], epsilon: float = 1e-5) -> _Part | None:
    """A layer or a normalisation, or None of what is neither.

    A state dict does not say what is added to a variance: ``epsilon`` is what torch adds.
    """
    if any(array.dtype.kind != "f" for leaf, array in arrays.items() if leaf != _COUNT):
        return None
    real = {leaf: a.astype(np.float64) for leaf, a in arrays.items() if leaf != _COUNT}
    W = real.get("weight")
    if set(real) <= {"weight", "bias"} and W is not None and W.ndim == 2 and W.size:
        b = real.get("bias", np.zeros(len(W)))
        return _Part(name, W, b) if b.shape == (len(W),) else None
    if not _NORM <= set(real) <= _NORM | {"weight", "bias"}:
        return None
    mean, variance = real["running_mean"], real["running_var"]
    ones = np.ones_like(mean)
    shapes = {array.shape for array in real.values()}
    if len(shapes) != 1 or mean.ndim != 1 or not (variance >= 0).all():
        return None
    factor = real.get("weight", ones) / np.sqrt(variance + epsilon)
    return _Part(name, factor, real.get("bias", 0.0 * ones) - factor * mean)


def _ordered(path: Path, parts: list[_Part], *, in_order: bool) -> list[_Part]:
    """The parts as they run: as they come where that is known, by number, or by their shapes."""
    layers = [part for part in parts if part.is_layer]
    if not layers:
        raise FormatError(f"{path}: no chain of linear layers: it has none")
    by_number = sorted(parts, key=lambda part: (part.numbered[1], not part.is_layer))
    stems = {part.numbered[0] for part in layers}
    numbers = [part.numbered[1] for part in layers]
    is_numbered = len(stems) == 1 and min(numbers) >= 0 and len(set(numbers)) == len(numbers)
    said = [order for known, order in ((in_order, parts), (is_numbered, by_number)) if known]
    orders = [order for order in said if _fits(order)]
    # Lists of layers and of normalisations stand one after the other where they do not run so.
    if orders and all(order == orders[0] for order in orders[1:]):
        return orders[0]
    if not orders:
        orders = list(_orders_by_shape(layers))
    if len(orders) == 1 and len(layers) == len(parts):
        return orders[0]
    read = ", ".join(part.words for part in parts)
    why = "names and shapes allow several orders" if len(orders) > 1 else "their shapes make none"
    raise FormatError(f"{path}: no chain of layers: {why}: {read}")


def _fits(parts: Sequence[_Part]) -> bool:
    """Whether each part takes what the one before it gives."""
    width = None
    for part in parts:
        takes = part.W.shape[1] if part.is_layer else len(part.b)
        if width not in {None, takes} or (width is None and not part.is_layer):
            return False
        width = len(part.b)
    return True


def _orders_by_shape(layers: Sequence[_Part], most: int = 2) -> Iterator[list[_Part]]:
    """Orders in which each layer takes what the one before it gives, ``most`` of them at most."""
    found = 0
    waiting: list[tuple[list[_Part], list[_Part]]] = [([], list(layers))]
    steps = 0
    while waiting and found < most and steps < 10_000:
        steps += 1
        done, left = waiting.pop()
        if not left:
            found += 1
            yield done
        for i, part in enumerate(left):
            if not done or part.W.shape[1] == len(done[-1].b):
                waiting.append(([*done, part], left[:i] + left[i + 1 :]))


def _is_behind_activation(path: Path, parts: Sequence[_Part], i: int, words: str) -> bool:
    """Whether an activation is between a layer and its normalisation.

    In a numbered sequence it has a number of its own; under names of their own, normalisation is
    taken to follow its layer, as it commonly does.
    """
    stems = {part.numbered[0] for part in parts}
    if len(stems) > 1 or parts[i].numbered[1] < 0:
        return False
    number = parts[i].numbered[1]
    before = parts[i - 1].numbered[1]
    after = parts[i + 1].numbered[1] if i + 1 < len(parts) else None
    if number == before + 1 and after != number + 1:
        return False
    if number > before + 1 and after == number + 1:
        return True
    raise FormatError(
        f"{path}: nothing says whether an activation is before {parts[i].name} or after it: {words}"
    )


def _check_activations(path: Path, parts: Sequence[_Part], words: str) -> None:
    """Refuse a sequence in which some layers follow each other at once and others do not."""
    stems = {part.numbered[0] for part in parts}
    if len(stems) > 1 or not all(part.is_layer for part in parts):
        return
    gaps = {b.numbered[1] - a.numbered[1] for a, b in pairwise(parts)}
    if 1 in gaps and len(gaps) > 1:
        raise FormatError(
            f"{path}: nothing says whether an activation is between layers whose numbers follow "
            f"each other: {words}"
        )
