"""Where results are written: never over a better file, and elsewhere where there is no room."""

import base64
import sys
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from revelu.errors import FormatError, InputError

Save = Callable[[Path], object]

_PICTURES = {".png", ".svg"}


class Files:
    """What a command writes.

    Attributes
    ----------
    written, unwritten : list of str
        Files, and why others are not where they were to be.
    moved : list of str
        Which are beside a file that they were to replace.
    taken : set of Path
        Files that are read, resolved: nothing is written there.
    printed : mapping of str to bytes
        What no folder takes, by the names of the files.
    """

    def __init__(self) -> None:
        self.written: list[str] = []
        self.unwritten: list[str] = []
        self.moved: list[str] = []
        self.taken: set[Path] = set()
        self.printed: dict[str, bytes] = {}

    def write(
        self, paths: Iterable[Path | None], save: Save, *, certified: bool, force: bool
    ) -> None:
        """Write files; one that fails is kept elsewhere, and spares the others.

        Parameters
        ----------
        certified : bool
            What is not replaces no file that is there already, and goes beside it.
        force : bool
            Replace it all the same.
        """
        for path in filter(None, paths):
            place = path if certified or force else place_of(path, self.taken)
            if place != path:
                self.moved.append(
                    f"{path}: is there already, and what was found is not certified: it is in "
                    f"{place} (--force replaces)"
                )
            try:
                save(place)
            except FormatError as error:
                other = save_elsewhere(place, save)
                kept = f"it is in {other}"
                if other is None:
                    kept = "no other folder takes it"
                    if content := content_of(place, save):
                        self.printed[place.name] = content
                        kept += ", and it is printed"
                self.unwritten.append(f"{error}; {kept}")
                self.written += [] if other is None else [f"{other}"]
            else:
                self.written.append(f"{place}")

    def tell(self) -> None:
        """Say on standard error what is not where it was to be."""
        if sys.stderr is not None:
            sys.stderr.writelines(f"revelu: {text}\n" for text in (*self.moved, *self.unwritten))

    def print_rest(self) -> None:
        """Print on standard error, as text, what no folder takes."""
        if sys.stderr is None:
            return
        for name, content in self.printed.items():
            sys.stderr.write(f"revelu: {name}, for base64 -d:\n")
            sys.stderr.write(base64.encodebytes(content).decode())


def place_of(path: Path, taken: Container[Path]) -> Path:
    """Return where something goes that is not certified: beside a file that is there already.

    Parameters
    ----------
    path : Path
        Where it was to be written.
    taken : container of Path
        Files that are read, resolved: these are no place either.

    Returns
    -------
    Path
        ``path`` where nothing is, or else ``NAME.partial.SUFFIX``, ``NAME.partial-2.SUFFIX`` and
        so on: what one of these holds is not replaced either.
    """
    return next(place for place in _places(path) if _is_free(place, taken))


def save_elsewhere(path: Path, save: Save) -> Path | None:
    """Write to another folder what could not be written to ``path``.

    Returns
    -------
    Path or None
        Where it is: in the folder for temporary files, the working folder or the home; None where
        none of these takes it.
    """
    folders = (_temporary, Path.cwd, Path.home)
    for folder in folders:
        try:
            place = place_of(folder() / path.name, ())
            save(place)
        except (FormatError, OSError, RuntimeError):  # no such folder, or no room there either
            continue
        return place
    return None


def content_of(path: Path, save: Save) -> bytes:
    """Return what would be written to a file; nothing where that cannot be made, or drawn anew."""
    from revelu.formats.arrays import in_memory

    with in_memory() as kept, suppress(FormatError):
        save(path)
    return b"" if path.suffix.lower() in _PICTURES else next(iter(kept.values()), b"")


def check_report(path: Path, taken: Iterable[Path]) -> None:
    """Refuse what is no place for a page.

    Raises
    ------
    FormatError
        If it ends otherwise, or its folder is not there.
    InputError
        If the file is in use.
    """
    from revelu.report.page import check_installed

    if path.suffix.lower() not in {".html", ".htm"}:
        raise FormatError(f"{path}: a report ends in .html")
    if not path.parent.is_dir():
        raise FormatError(f"{path}: the folder {path.parent} does not exist")
    if path.resolve() in taken:
        raise InputError(f"{path}: is in use already; write the report to another file")
    check_installed()


def _temporary() -> Path:
    return Path(tempfile.gettempdir())


def _places(path: Path) -> Iterator[Path]:
    yield path
    yield path.with_name(f"{path.stem}.partial{path.suffix}")
    n = 2
    while True:
        yield path.with_name(f"{path.stem}.partial-{n}{path.suffix}")
        n += 1


def _is_free(path: Path, taken: Container[Path]) -> bool:
    return not path.exists() and path.resolve() not in taken
