"""Requests and answers of well-known servers, found by name or by address."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Preset:
    """How a kind of server is asked.

    Attributes
    ----------
    request : str or None
        A template; None for the Open Inference Protocol, which has an adapter of its own.
    answer : str or None
        JSONPath of the rows.
    path : str or None
        Regular expression of the end of its addresses' path, where that tells.
    """

    request: str | None
    answer: str | None
    path: str | None = None


_INSTANCES = '{"instances": $rows}'
_V1 = r"/v1/models/[^/]+(/(versions|labels)/[^/]+)?:predict"

PRESETS = {
    "v2": Preset(None, None, r"/v2/models/[^/]+(/versions/[^/]+)?"),
    "tfserving": Preset(_INSTANCES, "$.predictions", _V1),
    "kserve-v1": Preset(_INSTANCES, "$.predictions"),
    "vertex": Preset(_INSTANCES, "$.predictions", r"/endpoints/[^/]+:predict"),
    # SageMaker's path ends alike, and has the format of the container behind it.
    "mlflow": Preset(
        '{"inputs": $rows}', "$.predictions", r"^(?!.*/endpoints/[^/]+/).*/invocations"
    ),
    # By its JSON envelope, `service_envelope: json`.
    "torchserve": Preset(_INSTANCES, "$.predictions", r"/predictions/[^/]+(/[^/]+)?"),
    "bentoml": Preset('{"input_data": $rows}', None),
}


def preset_of(url: str) -> str | None:
    """Return the name of the preset that an address tells; None where it tells none."""
    try:
        path = urlsplit(url).path.rstrip("/")
    except ValueError:
        return None
    for name, preset in PRESETS.items():
        if preset.path is not None and re.search(f"{preset.path}$", path):
            return name
    return None
