"""Read: the network of a file in which its weights lie open, for which nothing is asked."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from revelu.adapters.open_models import OpenTarget
from revelu.errors import InputError
from revelu.formats.reading import is_read, suffixes
from revelu.oracle import Ledger
from revelu.recovery import READ, Certificate, Recovery, Status

__all__ = ["as_read", "is_to_be_read", "read_recovery"]

_READ = ", ".join(suffixes())


def is_to_be_read(target: Any, method: str, *, trust: bool, labels: bool) -> bool:
    """Whether an extraction reads a file, and asks nothing.

    Raises
    ------
    InputError
        If the method is ``read``, and the target no such file.
    """
    is_named = isinstance(target, str | PathLike) and is_read(Path(target))
    if method == READ and not is_named:
        raise InputError(f"{target}: no file whose weights are read; those end in {_READ}")
    return is_named and (method == READ or (method == "auto" and not (trust or labels)))


def read_recovery(target: OpenTarget) -> Recovery:
    """Return what a file says, which is no finding: no query vouches for it."""
    statement = "read from the file: the weights lie open in it, and nothing was asked"
    certificate = Certificate(
        n_checks=0,
        max_abs_error=0.0,
        nrmse=0.0,
        fraction_within=1.0,
        tolerance=0.0,
        confidence=1.0,
        statement=statement,
        passed=True,
    )
    found = Recovery(
        Status.RECOVERED,
        target.network,
        certificate,
        ledger=Ledger(0, 0, {}),
        method=READ,
        domain="of any kind",
    )
    return as_read(found, target)


def as_read(recovery: Recovery, target: OpenTarget) -> Recovery:
    """Return a recovery with what the file says: its head, its classes, what it was read as."""
    names = tuple(f"{name}" for name in target.model.classes)
    return replace(
        recovery,
        method=READ,
        link=target.link,
        class_names=names,
        evidence=(f"read as {target.model.words}", *recovery.evidence),
        warnings=(*target.model.notes, *recovery.warnings),
        details={**recovery.details, "probabilities": target.link.name == "softmax"},
    )
