"""How the arrays of a network are named in a file.

``schema``, a whole number, tells these files from those of other programs: a state dict of
another module does not say what is between its layers.  ``certified``, 1 or 0, says whether fresh
queries have vouched for the network; without it nobody has asked.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import Arrays
from revelu.numerics.links import Link

SCHEMA = 1

_MARK = "certified"


@dataclass(frozen=True)
class Names:
    """Names of weights and biases.

    Attributes
    ----------
    weights, biases : str
        ``{}`` is the number of the layer, from 0; the output layer is the last.
    skip : (str, str)
        Of ``V`` and ``c``, where there is a skip.
    """

    weights: str
    biases: str
    skip: tuple[str, str]

    def to_named(
        self, path: Path, arrays: Arrays, dtype: np.dtype, head: Link
    ) -> dict[str, np.ndarray]:
        """Name the arrays of a network.

        Raises
        ------
        FormatError
            If a head is asked for: such files hold what is before it.
        """
        if head.has_head:
            raise FormatError(
                f"{path}: a {path.suffix} file holds {head.form.behind} only, no {head.name}"
            )
        pairs = zip(arrays.weights, arrays.biases, strict=True)
        flat = chain(*pairs, arrays.skip or ())
        names = self._names(len(arrays.weights), has_skip=arrays.skip is not None)
        named = {n: np.ascontiguousarray(a, dtype) for n, a in zip(names, flat, strict=True)}
        if arrays.certified is not None:
            named[_MARK] = np.array(int(arrays.certified), dtype=np.int64)
        return named

    def from_named(self, path: Path, named: Mapping[str, np.ndarray]) -> Arrays:
        """Return the arrays of a network.

        Raises
        ------
        FormatError
            If one is missing, or there are others.
        """
        named = dict(named)
        certified = _certified(path, named.pop(_MARK, None))
        layer = re.compile(re.escape(self.weights).replace(r"\{\}", r"\d+"))
        n_layers = sum(layer.fullmatch(name) is not None for name in named)
        has_skip = any(name in named for name in self.skip)
        names = self._names(max(n_layers, 1), has_skip=has_skip)
        missing, extra = sorted(set(names) - set(named)), sorted(set(named) - set(names))
        if missing or extra:
            raise FormatError(f"{path}: not a network: missing {missing}, unexpected {extra}")
        arrays = [named[name] for name in names]
        skip = (arrays[-2], arrays[-1]) if has_skip else None
        return Arrays(arrays[: 2 * n_layers : 2], arrays[1 : 2 * n_layers : 2], skip, certified)

    def _names(self, n_layers: int, *, has_skip: bool) -> list[str]:
        pairs = [(self.weights.format(i), self.biases.format(i)) for i in range(n_layers)]
        return [*chain(*pairs), *(self.skip if has_skip else ())]


def _certified(path: Path, mark: np.ndarray | None) -> bool | None:
    """What a file says of whether its network is certified."""
    if mark is None:
        return None
    if mark.shape != () or mark.dtype.kind not in "iu" or int(mark) not in (0, 1):
        raise FormatError(f"{path}: {_MARK} is {mark!r}, neither 0 nor 1")
    return bool(mark)


def check_schema(path: Path, schema: np.ndarray) -> None:
    """Check the number that says how the arrays of a file are named.

    Raises
    ------
    FormatError
        If it is another than :data:`SCHEMA`.
    """
    if schema.shape != () or schema.dtype.kind not in "iu" or int(schema) != SCHEMA:
        raise FormatError(f"{path}: schema {schema!r} is not the one known, {SCHEMA}")


# State dicts of ``ReluNetwork`` in torch: ``layers.0.weight (k, d)``, ``layers.0.bias (k,)``, ...
_STATE = Names("layers.{}.weight", "layers.{}.bias", ("skip.weight", "skip.bias"))


def to_state(path: Path, arrays: Arrays, dtype: np.dtype, head: Link) -> dict[str, np.ndarray]:
    """Name the arrays of a network as a state dict does."""
    named = _STATE.to_named(path, arrays, dtype, head)
    return {"schema": np.array(SCHEMA, dtype=np.int64), **named}


def from_state(path: Path, named: Mapping[str, np.ndarray]) -> Arrays:
    """Return the arrays of a network from a state dict.

    Raises
    ------
    FormatError
        If it is of another module, of a later schema, or lacks an array.
    """
    if "schema" not in named:
        raise FormatError(
            f"{path}: not a network that revelu wrote: without a schema nothing says which "
            "activations are between the layers"
        )
    check_schema(path, named["schema"])
    rest = {name: array for name, array in named.items() if name != "schema"}
    arrays = _STATE.from_named(path, rest)
    for name, array in rest.items():
        if name != _MARK and array.dtype not in (np.float64, np.float32):
            raise FormatError(f"{path}: {name} holds {array.dtype}, not float64 or float32")
    return arrays
