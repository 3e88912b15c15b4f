"""What ``module:attribute`` names as a target."""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from revelu.errors import FormatError, InputError, ReveluError


@contextmanager
def running_what_it_says(failure: str, kind: type[ReveluError]) -> Iterator[None]:
    """Turn what foreign code raises, or where it ends the process, into our error."""
    try:
        yield
    except ReveluError:
        raise
    except (Exception, SystemExit) as error:
        raise kind(f"{failure}: {type(error).__name__}: {error}") from error


def unpickled(
    path: Path, reader: str, load: Callable[[Path], Any], kind: str, is_one: Callable[[Any], bool]
) -> Any:
    """Open a file by ``load``, of ``reader``, which executes whatever the file says.

    Raises
    ------
    FormatError
        If the file cannot be read, or holds something else than a ``kind``.
    """
    with running_what_it_says(f"{path}: cannot be opened by {reader}", FormatError):
        found = load(path)
    if not is_one(found):
        raise FormatError(f"{path}: holds a {type(found).__name__}, not a {kind}")
    return found


class ModuleTarget:
    """A target that a module holds: a callable, or what is made one as an object would be.

    All that the target says of itself, such as its number of inputs, is said of this one.

    What is imported is left behind when pickled, so that a process of an executor
    imports its own, from the folder that was the working one at opening.

    Parameters
    ----------
    name : str
        ``module:attribute``; importing the module executes it.
    wrapped : callable
        Makes a callable, ``(n, d) -> (n,)`` or ``(n, k)``, of an object.

    Raises
    ------
    InputError
        If it cannot be imported or is not callable.
    """

    def __init__(self, name: str, wrapped: Callable[[Any], Any]) -> None:
        self.name, self.folder, self._wrapped = name, str(Path.cwd()), wrapped
        self._found: Any = None
        if not callable(self.found):
            hint = f"; write {name}.predict" if hasattr(self.found, "predict") else ""
            raise InputError(f"{name} is not callable ({type(self.found).__name__}){hint}")

    @property
    def found(self) -> Any:
        """What the name stands for, imported on first use."""
        if self._found is None:
            self._found = self._wrapped(_import(self.name, self.folder))
        return self._found

    def __getattr__(self, name: str) -> Any:
        # What fails in ``found`` is asked for here, too.
        if name.startswith("_") or name == "found":
            raise AttributeError(name)
        return getattr(self.found, name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": None}

    def __call__(self, X: Any) -> Any:
        """Ask it for the rows of ``X``."""
        return self.found(X)


def _import(name: str, folder: str) -> Any:
    module_name, attribute = name.split(":")
    sys.path.insert(0, folder)
    try:
        with running_what_it_says(f"{name}: cannot be imported", InputError):
            found = importlib.import_module(module_name)
            for part in attribute.split("."):
                found = getattr(found, part)
    finally:
        with suppress(ValueError):  # the module may have removed it
            sys.path.remove(folder)
    return found
