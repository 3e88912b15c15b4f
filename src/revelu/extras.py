"""Optional packages, each imported where it is used."""

import importlib
from typing import Any

from revelu.errors import MissingExtraError


def import_extra(module: str, need: str, extra: str) -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    need : str
        What needs it, in words: begins the message.
    extra : str
        The extra of revelu that installs it.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(f'{need}: pip install "revelu[{extra}]"') from None
