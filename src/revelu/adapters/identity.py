"""What tells a target from others of its name: the digest of its file, a model's version."""

import hashlib
from pathlib import Path
from typing import Any

from revelu.adapters.demos import named_path

# What targets without a file say of themselves, of what decides their answers.
_TELLING = ("weights", "module", "model")


def identity_of(name: str, target: Any) -> dict[str, str]:
    """Return what tells a target from others of its name, by what it is called.

    Parameters
    ----------
    name : str
        As it was given: an address, ``demo:NAME``, a path, or another name.
    target : callable
        As it was opened.
    """
    said = getattr(target, "identity", None)
    if isinstance(said, dict):
        return dict(said)
    if "://" in name:
        return {}
    path = named_path(name)
    try:
        if path.is_file() and path.suffix.lower() != ".toml":
            return {"file": path.name, "sha256": _digest(path)}
    except OSError:
        return {}
    facts = getattr(target, "facts", None)
    known = facts if isinstance(facts, dict) else {}
    return {part: f"{known[part]}" for part in _TELLING if part in known}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
