"""A recovered network: how commands write it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revelu.errors import InputError

if TYPE_CHECKING:
    from revelu.formats import Frame
    from revelu.network import Network
    from revelu.numerics.links import Link
    from revelu.types import FloatArray


def save_network(
    network: "Network",
    head: "Link | None" = None,
    frame: "Frame | None" = None,
    errors: "list[tuple[FloatArray, FloatArray]] | None" = None,
    box: tuple[float, float] | None = None,
) -> Callable[[Path], None]:
    """Return what writes a network; its head goes with it where a file has one.

    Parameters
    ----------
    head : Link, optional
        What stands between the network and its target's answers.
    frame : Frame, optional
        Names, shapes and types that an ONNX file is to have.
    errors : list of (ndarray, ndarray), optional
        Standard errors, which an .npz keeps.
    box : (lo, hi), optional
        Where it was recovered, which an ONNX file keeps.
    """

    def save(path: Path) -> None:
        import numpy as np

        from revelu import formats
        from revelu.network import LayeredNetwork
        from revelu.numerics.links import NONE

        is_onnx, kept = path.suffix.lower() == ".onnx", formats.Kept(box=box)
        if isinstance(network, LayeredNetwork) and is_onnx:
            network.save(path, head=head or NONE, frame=frame, kept=kept)
        elif is_onnx:
            formats.save_arrays(
                path,
                list(network.weights),
                list(network.biases),
                network.skip,
                np.dtype(np.float64),
                head or NONE,
                frame,
                network.certified,
                kept=kept,
            )
        elif errors is None:
            network.save(path)
        else:
            network.save(path, standard_errors=errors)

    return save


def box_of(oracle: Any) -> tuple[float, float] | None:
    """Return the box that all inputs asked lie in; None without one, or of a domain."""
    domain, box = (getattr(oracle, name, None) for name in ("domain", "box"))
    return box if domain is None else None


def frame_of(target: Any, name: str) -> "Frame":
    """Return names, shapes and types of the input and the output that a target has.

    Raises
    ------
    InputError
        If it has, or says, none of its own, or has several inputs.
    """
    from revelu.formats import Frame

    frame = getattr(target, "frame", None)
    if not isinstance(frame, Frame):
        raise InputError(
            "--like-input is for ONNX files of one input, and for served models whose metadata "
            f"have names, shapes and types, which {name} is not"
        )
    return frame
