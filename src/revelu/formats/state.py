"""Names of a network's arrays in a state dict: those of ``ReluNetwork`` in torch.

``layers.0.weight (k, d)``, ``layers.0.bias (k,)``, ..., the output layer last; optional
are ``skip.weight`` and ``skip.bias``.  ``schema``, a whole number, tells these from the
state dicts of other modules, which do not say what is between their layers.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import Arrays

SCHEMA = 1

_LAYER = re.compile(r"layers\.(\d+)\.weight")


def to_state(path: Path, arrays: Arrays, dtype: np.dtype, softmax: bool) -> dict[str, np.ndarray]:
    """Name the arrays of a network.

    Raises
    ------
    FormatError
        If a softmax is asked for: a state dict holds logits.
    """
    if softmax:
        raise FormatError(f"{path}: a {path.suffix} file holds logits only, no softmax")
    pairs = {
        f"layers.{i}": p for i, p in enumerate(zip(arrays.weights, arrays.biases, strict=True))
    }
    if arrays.skip is not None:
        pairs["skip"] = arrays.skip
    named = {"schema": np.array(SCHEMA, dtype=np.int64)}
    for name, (W, b) in pairs.items():
        named[f"{name}.weight"] = np.ascontiguousarray(W, dtype)
        named[f"{name}.bias"] = np.ascontiguousarray(b, dtype)
    return named


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
    schema = named["schema"]
    if schema.shape != () or schema.dtype.kind not in "iu" or int(schema) != SCHEMA:
        raise FormatError(f"{path}: schema {schema!r} is not the one known, {SCHEMA}")
    n_layers = sum(_LAYER.fullmatch(name) is not None for name in named)
    has_skip = any(name.startswith("skip.") for name in named)
    parts = [f"layers.{i}" for i in range(n_layers)] + ["skip"] * has_skip
    wanted = {"schema", *(f"{part}.{kind}" for part in parts for kind in ("weight", "bias"))}
    missing, extra = sorted(wanted - set(named)), sorted(set(named) - wanted)
    if not n_layers or missing or extra:
        raise FormatError(f"{path}: not a network: missing {missing}, unexpected {extra}")
    for name in wanted - {"schema"}:
        if named[name].dtype not in (np.float64, np.float32):
            raise FormatError(f"{path}: {name} holds {named[name].dtype}, not float64 or float32")
    pairs = [(named[f"{part}.weight"], named[f"{part}.bias"]) for part in parts]
    layers = pairs[:n_layers]
    return Arrays([W for W, _ in layers], [b for _, b in layers], pairs[-1] if has_skip else None)
