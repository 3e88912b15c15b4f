"""Files of a recovered network, as commands write them."""

from pathlib import Path

import numpy as np

from revelu.errors import FormatError
from revelu.recovery import Recovery


def write(recovery: Recovery, paths: list[Path]) -> tuple[list[str], list[str]]:
    """Write what was found, certified or not; one file that fails spares the others.

    Returns
    -------
    written : list of str
        Paths.
    unwritten : list of str
        Why others were not.
    """
    written: list[str] = []
    unwritten: list[str] = []
    for path in paths if recovery.network is not None else ():
        try:
            _write_one(recovery, path)
            written.append(str(path))
        except FormatError as error:
            unwritten.append(f"{error}")
    return written, unwritten


def _write_one(recovery: Recovery, path: Path) -> None:
    """Write one file; a classifier's softmax goes with it where the format can hold it."""
    from revelu import formats

    network = recovery.network
    if network is None:
        return
    if recovery.details.get("probabilities") and path.suffix.lower() == ".onnx":
        weights, biases = list(network.weights), list(network.biases)
        formats.save_arrays(path, weights, biases, network.skip, np.dtype(np.float64), softmax=True)
    else:
        network.save(path)
