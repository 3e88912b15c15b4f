"""What a target says whose weights lie open to us; nothing of it is used to recover."""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from revelu.adapters.demos import named_path
from revelu.errors import FormatError, UntrustedError
from revelu.formats import suffixes
from revelu.network import LayeredNetwork, Network, load
from revelu.network.layers import Convolution, Dense, Layer, Pooling, Prelu, Relu
from revelu.oracle import Oracle

log = logging.getLogger(__name__)


def weights_of(target: Any) -> Network | None:
    """Return the weights behind a target, where they are at hand."""
    if isinstance(target, Oracle):
        target = target.name
    if isinstance(target, Network):
        return target
    if not isinstance(target, str | os.PathLike):
        return None
    path = named_path(target)
    if path.suffix.lower() not in suffixes():
        return None
    try:
        return load(path)
    except (FormatError, UntrustedError) as error:
        log.info("weights not read: %s", error)
        return None


def beyond_methods(
    layers: Sequence[Layer], *, is_float64: bool = True, in_box: bool = False
) -> list[str]:
    """Return what of the layers of an image model is not found, however much is asked.

    Parameters
    ----------
    layers : sequence of Layer
        Those of a target, the first one first.
    is_float64 : bool
        Whether answers have the digits of float64.
    in_box : bool
        Whether queries have to stay in a box.

    Returns
    -------
    list of str
        In words that follow "no method here finds"; empty where nothing is known to be out of
        reach, and of layers without images.
    """
    convolutions = [layer for layer in layers if isinstance(layer, Convolution)]
    if not convolutions:
        return []
    pools = [layer for layer in layers if isinstance(layer, Pooling)]
    n_hidden = sum(isinstance(layer, Relu | Prelu) for layer in layers)
    n_dense = sum(isinstance(layer, Dense) for layer in layers)
    first, *others = convolutions
    is_padded_max = any(first.pads) and any(p.kind == "max" for p in pools[:1])
    overlap = any(s < k for p in pools for s, k in zip(p.strides, p.size, strict=True))
    is_leaky = any(isinstance(layer, Prelu) for layer in layers)
    found = {
        f"{len(convolutions)} convolutions": len(others) > 1,
        "pads of a second convolution": any(any(conv.pads) for conv in others),
        "a hidden layer above two convolutions": len(others) == 1 and n_dense > 1,
        "layers above leaky filters": is_leaky and n_hidden > 1,
        "windows that overlap": overlap and not in_box,
        "the largest of windows of a padded convolution": is_padded_max,
        "layers above filters from answers of fewer digits than float64 has": not is_float64
        and n_hidden > 1,
        "layers above filters inside a box": in_box and n_hidden > 1,
    }
    return [words for words, is_so in found.items() if is_so]


def shown_layers(oracle: Oracle) -> LayeredNetwork | None:
    """Return the layers of an image model, where its file or its module shows them."""
    network = weights_of(oracle)
    write = getattr(oracle.target, "write_onnx", None)
    if network is None and write is not None and oracle.image is not None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "module.onnx"
            try:
                write(path)
                network = load(path)
            except Exception as error:  # noqa: BLE001 - what torch raises is its own affair
                log.info("layers not read: %s", error)
    return network if isinstance(network, LayeredNetwork) else None


@dataclass(frozen=True)
class OutOfReach:
    """Why an image model is not found, as its own file says.

    Attributes
    ----------
    words : str
        Its layers, and which of them no method finds; empty where none is known to be such.
    in_float64 : bool
        Whether they would be out of reach of answers in float64, too.
    """

    words: str = ""
    in_float64: bool = False

    @classmethod
    def of(cls, oracle: Oracle, law: str | None) -> "OutOfReach":
        """Read the file of a target, or its module, where it has one.

        Parameters
        ----------
        law : str, optional
            How its answers err.
        """
        network = shown_layers(oracle)
        if network is None:
            return cls()
        in_box = oracle.box is not None
        said = beyond_methods(network.layers, is_float64=law == "float64", in_box=in_box)
        if not said:
            return cls()
        ever = beyond_methods(network.layers, in_box=in_box)
        words = f"the target holds {network.describe()}: no method here finds {', or '.join(said)}"
        return cls(words, bool(ever))
