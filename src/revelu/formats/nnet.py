"""``.nnet`` files, in which verifiers keep dense ReLU networks with their scaling, as text.

Behind comments (``//``) stand, by commas: numbers of layers, inputs, outputs; the widths; a flag
that nobody uses; the least and the largest inputs; means and ranges, of the inputs and then one of
all outputs; and, layer by layer, the rows of its weights and a bias a line.
"""

from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import MAX_BYTES, check_is_file, naming_damage
from revelu.formats.open_model import LayerChain, OpenModel
from revelu.types import FloatArray

__all__ = ["read"]

_RANGE = "the original moves inputs outside of {} to {} to these ends; the network does not"


def read(path: Path, activation: str | None = None) -> OpenModel:  # noqa: ARG001 - it says its own
    """Read a network in units of its inputs, its scaling folded.

    Raises
    ------
    FormatError
        If it is no such file.
    """
    check_is_file(path)
    with naming_damage(path, ".nnet file"):
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
        text = path.read_text(encoding="utf-8").splitlines()
        lines = [line for line in text if line.strip() and not line.lstrip().startswith("//")]
        n_layers, d, k, *_ = (int(part) for part in _parts(lines[0]))
        widths = [int(part) for part in _parts(lines[1])]
        if len(widths) != n_layers + 1 or (widths[0], widths[-1]) != (d, k):
            raise FormatError(f"{path}: widths {widths[:12]} are not those of {n_layers} layers")
        low, high, means, ranges = (_numbers(line) for line in lines[3:7])
        if not (len(low) == len(high) == d and len(means) == len(ranges) == d + 1):
            raise FormatError(f"{path}: a scaling of another number of inputs")
        chain = LayerChain.of_file(path, (d,))
        if not (chain.numbers(ranges) != 0.0).all():
            chain.refuse("a range of 0")
        chain.scale(1.0 / ranges[:d], -chain.numbers(means)[:d] / ranges[:d])
        _read_layers(chain, lines[7:], widths)
        chain.scale(np.full(k, ranges[d]), np.full(k, means[d]))
        clips = (np.isfinite(low) & np.isfinite(high)).any()
        note = (_RANGE.format(f"{low.min():g}", f"{high.max():g}"),) if clips else ()
        nodes = chain.end()
        return OpenModel(".nnet", chain.row, nodes, chain.scaling, notes=note)


def _read_layers(chain: LayerChain, lines: list[str], widths: list[int]) -> None:
    at = 0
    for i, k in enumerate(widths[1:]):
        rows = [_numbers(line) for line in lines[at : at + k]]
        biases = [_numbers(line) for line in lines[at + k : at + 2 * k]]
        if len(rows) != k or len(biases) != k or any(len(b) != 1 for b in biases):
            chain.refuse(f"layer {i} is cut short")
        if i:
            chain.unit("Relu")
        chain.dense(chain.numbers(np.array(rows), 2), chain.numbers(np.concatenate(biases)))
        at += 2 * k


def _parts(line: str) -> list[str]:
    return [part for part in line.strip().split(",") if part.strip()]


def _numbers(line: str) -> FloatArray:
    return np.array([float(part) for part in _parts(line)])
