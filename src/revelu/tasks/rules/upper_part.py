"""What stands above a recovered layer, as an oracle.

GP18, Appendix E: a cut in a network makes two smaller problems.  With the lower one solved,
inputs can be chosen for any outputs of the layer, and what is above is asked as if alone.
"""

import numpy as np

from revelu.errors import InputError
from revelu.oracle import Oracle
from revelu.recovery import LayerRecovery
from revelu.types import FloatArray


def upper_oracle(
    oracle: Oracle,
    layer: LayerRecovery,
    most: float,
    *,
    rtol: float = 1e-10,
    below: float = 1.0,
) -> Oracle:
    """Give what is above a ReLU layer as an oracle of the layer's outputs.

    Parameters
    ----------
    oracle : Oracle
        Of the whole.
    layer : LayerRecovery
        Its lowest layer, of ReLUs with independent directions.
    most : float
        Outputs are asked for in the box ``[0, most]``.
    rtol : float
        Directions with a smaller singular value, relative to the largest, are dependent:
        inputs would be ``1 / rtol`` times as large as the outputs, and lose their digits.
    below : float
        How far below its threshold a ReLU is put that is to give 0.

    Returns
    -------
    Oracle
        Of k inputs, in a box, for :func:`revelu.extract` to continue on.  Its
        queries are counted by both oracles.

    Raises
    ------
    InputError
        If the directions are dependent: then not every output can be had.
    """
    W, t = layer.directions, layer.thresholds
    sizes = np.linalg.svd(W, compute_uv=False)
    if not len(W) or len(W) > W.shape[1] or sizes[-1] < rtol * sizes[0]:
        raise InputError("the layer's directions are dependent: its outputs cannot be chosen")
    inverse = np.linalg.pinv(W)

    def ask(H: FloatArray) -> FloatArray:
        z = np.where(H > 0, H, -below)
        return oracle((z + t) @ inverse.T)

    return Oracle(ask, len(W), name=f"above {oracle.name}", box=(0.0, most))
