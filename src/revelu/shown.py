"""What people look at: a line, a card in a notebook, a picture, a page.

The room ``report`` draws them.  It stands above what it shows, so it is found by name, and when
somebody looks: nothing below depends on it.
"""

import importlib
import math
from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar

SCHEMA = 1


class Shown:
    """Base of results: what there is to look at follows from their account.

    Attributes
    ----------
    told_by : str
        The command whose account a result has, and whose words its verdict.
    """

    told_by: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the account as values that JSON has, as ``--json`` prints them.

        Raises
        ------
        NotImplementedError
            Where a subclass has none.
        """
        raise NotImplementedError

    def report(self, path: str | PathLike[str]) -> None:
        """Write the account as a page, with pictures.

        Parameters
        ----------
        path : path ending in ``.html``

        Raises
        ------
        FormatError
            If it cannot be written.
        MissingExtraError
            If matplotlib or Jinja2 is not installed.
        """
        _views().write_page(self, path)

    def plot(self) -> Any:
        """Draw what tells most of it; a notebook shows the picture, and ``.save(path)`` writes it.

        Raises
        ------
        InputError
            If there is nothing to draw.
        MissingExtraError
            If matplotlib is not installed.
        """
        return _views().plot(self)

    def __str__(self) -> str:
        """Return the verdict, the statement and the advice, as a command prints them."""
        return str(_views().lines(self))

    def _repr_html_(self) -> str:
        return str(_views().card(self))


def plain(value: Any) -> Any:
    """Replace what JSON has no word for: arrays and tuples are lists, NaN and infinity None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # of NumPy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _views() -> Any:
    return importlib.import_module("revelu.report.views")
