"""Recover ReLU networks from what they answer: exactly, with a certificate and a ledger.

Names load on first use (PEP 562): ``import revelu`` alone reads no other package.
"""

import importlib
import logging
from typing import TYPE_CHECKING, Any

from revelu._version import __version__

if TYPE_CHECKING:
    from revelu.adapters import Endpoint, open_oracle
    from revelu.errors import (
        FormatError,
        InputError,
        LimitReachedError,
        MissingExtraError,
        ReveluError,
        TargetError,
        UntrustedError,
    )
    from revelu.network import Alignment, Network, align, load, zoo
    from revelu.network.span import Span
    from revelu.oracle import Domain, Ledger, Oracle
    from revelu.recover.table import METHODS, select_methods
    from revelu.recovery import (
        Certificate,
        HalfspaceRecovery,
        LayerRecovery,
        NullCertificate,
        Recovery,
        SpanRecovery,
        Status,
    )
    from revelu.tasks.audit.audit import audit
    from revelu.tasks.audit.rows import Audit, AuditRow
    from revelu.tasks.compare import Comparison, compare
    from revelu.tasks.diagnose.diagnose import diagnose
    from revelu.tasks.extract.extract import extract
    from revelu.tasks.learn.learn import learn
    from revelu.tasks.learn.regressor import HermiteRegressor
    from revelu.tasks.obfuscate import obfuscate
    from revelu.tasks.rules.halfspaces import recover_halfspaces
    from revelu.tasks.rules.lowest_layer import recover_lowest_layer
    from revelu.tasks.span import recover_span
    from revelu.tasks.verify import verify

__all__ = [
    "METHODS",
    "Alignment",
    "Audit",
    "AuditRow",
    "Certificate",
    "Comparison",
    "Domain",
    "Endpoint",
    "FormatError",
    "HalfspaceRecovery",
    "HermiteRegressor",
    "InputError",
    "LayerRecovery",
    "Ledger",
    "LimitReachedError",
    "MissingExtraError",
    "Network",
    "NullCertificate",
    "Oracle",
    "Recovery",
    "ReveluError",
    "Span",
    "SpanRecovery",
    "Status",
    "TargetError",
    "UntrustedError",
    "__version__",
    "align",
    "audit",
    "compare",
    "diagnose",
    "extract",
    "learn",
    "load",
    "obfuscate",
    "open_oracle",
    "recover_halfspaces",
    "recover_lowest_layer",
    "recover_span",
    "select_methods",
    "verify",
    "zoo",
]

_ROOMS = {
    "revelu.adapters": ("Endpoint", "open_oracle"),
    "revelu.errors": (
        "FormatError",
        "InputError",
        "LimitReachedError",
        "MissingExtraError",
        "ReveluError",
        "TargetError",
        "UntrustedError",
    ),
    "revelu.network": ("Alignment", "Network", "align", "load", "zoo"),
    "revelu.network.span": ("Span",),
    "revelu.oracle": ("Domain", "Ledger", "Oracle"),
    "revelu.recover.table": ("METHODS", "select_methods"),
    "revelu.recovery": (
        "Certificate",
        "HalfspaceRecovery",
        "LayerRecovery",
        "NullCertificate",
        "Recovery",
        "SpanRecovery",
        "Status",
    ),
    "revelu.tasks.audit.audit": ("audit",),
    "revelu.tasks.audit.rows": ("Audit", "AuditRow"),
    "revelu.tasks.compare": ("Comparison", "compare"),
    "revelu.tasks.diagnose.diagnose": ("diagnose",),
    "revelu.tasks.extract.extract": ("extract",),
    "revelu.tasks.rules.halfspaces": ("recover_halfspaces",),
    "revelu.tasks.learn.learn": ("learn",),
    "revelu.tasks.rules.lowest_layer": ("recover_lowest_layer",),
    "revelu.tasks.learn.regressor": ("HermiteRegressor",),
    "revelu.tasks.obfuscate": ("obfuscate",),
    "revelu.tasks.span": ("recover_span",),
    "revelu.tasks.verify": ("verify",),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}

logging.getLogger(__name__).addHandler(logging.NullHandler())


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
