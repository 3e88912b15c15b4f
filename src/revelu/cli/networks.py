"""A recovered network: how commands write it, and what they print of it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from revelu.errors import InputError
from revelu.status import Status

if TYPE_CHECKING:
    from revelu.formats import Frame
    from revelu.network import Network
    from revelu.recovery import Recovery


def save_network(
    network: "Network", softmax: bool = False, frame: "Frame | None" = None
) -> Callable[[Path], None]:
    """Return what writes a network; a classifier's softmax goes with it where a file has one.

    Parameters
    ----------
    softmax : bool
    frame : Frame, optional
        Names, shapes and types that an ONNX file is to have.
    """

    def save(path: Path) -> None:
        import numpy as np

        from revelu import formats
        from revelu.network import LayeredNetwork

        if isinstance(network, LayeredNetwork) and path.suffix.lower() == ".onnx":
            network.save(path, softmax=softmax, frame=frame)
        elif (softmax or frame is not None) and path.suffix.lower() == ".onnx":
            weights, biases = list(network.weights), list(network.biases)
            dtype, certified = np.dtype(np.float64), network.certified
            formats.save_arrays(
                path, weights, biases, network.skip, dtype, softmax, frame, certified
            )
        else:
            network.save(path)

    return save


def frame_of(target: Any, name: str) -> "Frame":
    """Return names, shapes and types of the input and the output that a target has.

    Raises
    ------
    InputError
        If it has none of its own, or several inputs.
    """
    from revelu.formats import Frame

    frame = getattr(target, "frame", None)
    if not isinstance(frame, Frame):
        raise InputError(f"--like-input is for ONNX files of one input, which {name} is not")
    return frame


def rows_of(recovery: "Recovery") -> list[tuple[str, str]]:
    """Return what people are told of a network and of its certificate."""
    rows = []
    if recovery.network is not None:
        rows.append(("network", _describe(recovery.network, recovery.status)))
    certificate = recovery.certificate
    if certificate is not None:
        rows.append(("certificate", certificate.statement))
    if recovery.classes:
        rows.append(("classes", ", ".join(f"{label:g}" for label in recovery.classes)))
    elif certificate is not None and certificate.n_checks and recovery.ledger.n_queries:
        on = "that fresh check" if certificate.n_checks == 1 else "those fresh checks"
        # Answers that lack digits err themselves.
        own = ", the target's own errors included" if recovery.method == "fit" else ""
        rows.append(("largest error", f"{certificate.max_abs_error:.2g} on {on}{own}"))
    return rows


def _describe(network: "Network", status: Status) -> str:
    """Widths, and whether there is a skip; in words where no neuron is hidden."""
    from revelu.network import LayeredNetwork

    if isinstance(network, LayeredNetwork):
        shape = network.describe()
    elif any(network.architecture[1:-1]):
        skip = " with an affine skip" if network.skip is not None else ""
        shape = "-".join(map(str, network.architecture)) + skip
    elif status is Status.RECOVERED:
        shape = "affine (0 hidden neurons)"
    else:
        yet = " yet" if status is Status.BUDGET_EXHAUSTED else ""
        return f"nothing recovered{yet}: an affine map without a hidden neuron"
    return f"{shape}, {network.n_parameters:,} parameters"
