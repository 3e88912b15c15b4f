"""What ``revelu learn`` says of a network: samples instead of queries, error bars, signs."""

from typing import Any

from revelu.cli import networks
from revelu.recovery import Recovery


def fields_of(recovery: Recovery) -> dict[str, Any]:
    """Return what an account says of what was learned.

    The fields of an extraction, and ``samples``, ``exact``, ``noise``, ``standard_errors``
    (``W``, ``b``, ``A``, ``c`` and, with a skip, ``V``) and ``sign_patterns``.
    """
    details = recovery.details
    errors = details.get("standard_errors")
    bars = None
    if errors is not None:
        bars = {name: value.tolist() for name, value in vars(errors).items() if value is not None}
    return {
        **networks.fields_of(recovery),
        "samples": details.get("n_samples"),
        "exact": details.get("exact"),
        "noise": details.get("noise"),
        "standard_errors": bars,
        "sign_patterns": [signs.tolist() for signs in details.get("sign_patterns", [])],
    }


def rows_of(recovery: Recovery) -> list[tuple[str, str]]:
    """Return what people are told of what was learned."""
    details = recovery.details
    rows = [*networks.rows_of(recovery), ("samples", f"{details.get('n_samples', 0):,}")]
    if not details.get("exact", True):
        rows.append(("noise", f"{details['noise']:.2g}"))
    errors = details.get("standard_errors")
    if errors is not None and errors.b.size:
        rows.append(("error bars", f"weights {errors.W.max():.1g}, biases {errors.b.max():.1g}"))
    return rows
