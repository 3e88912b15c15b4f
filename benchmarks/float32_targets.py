"""A thousand targets that compute in float32: none silently wrong, none over 60 CPU seconds.

    python benchmarks/float32_targets.py --results runs.jsonl --seconds 600   # a slice
    python benchmarks/float32_targets.py --results runs.jsonl --write   # the rest, the table

The targets of benchmarks/many_targets.py, of seeds of their own.  Networks compute in float32
throughout, in the units drawn; of other functions the inputs and the answers are rounded to it.
"""

from dataclasses import replace

import numpy as np
from deep_targets import in_float32
from many_targets import Function, draw, judged, table_of
from runner import main

from revelu import Network
from revelu.network import zoo
from revelu.types import FloatArray

# Beyond 60 CPU seconds a target counts as one that takes too long.
MAX_CPU = 60.0
SLOW = "over 60 CPU s"


def one(seed: int) -> dict[str, object]:
    """Extract one target that computes in float32, and judge what came back."""
    target = draw(seed)
    if isinstance(target.function, Network):
        scaled = zoo.scaled(target.function, target.input_scale, target.output_scale)
        function, scales = in_float32(scaled, np.random.default_rng(seed)), (1.0, 1.0)
        dim_in = scaled.dim_in
    else:
        function, scales = rounded(target.function), (target.input_scale, target.output_scale)
        dim_in = target.widths[0]
    widths = (dim_in, *target.widths[1:])
    wanted = replace(
        target, widths=widths, function=function, input_scale=scales[0], output_scale=scales[1]
    )
    run = judged(wanted, seed)
    if run["verdict"] in ("", "hung") and float(str(run["cpu"])) > MAX_CPU:
        run["verdict"] = SLOW
    return run


def rounded(function: Function) -> Function:
    """A function of float32 inputs whose answers are float32."""

    def answer(X: FloatArray) -> FloatArray:
        Y = np.asarray(function(X.astype(np.float32).astype(np.float64)))
        return Y.astype(np.float32).astype(np.float64)

    return answer


TABLE = table_of(
    "float32_targets", __doc__, 1_000, one, 48_500_000, ("wrong and silent", SLOW, "crashed")
)

if __name__ == "__main__":
    main(TABLE)
