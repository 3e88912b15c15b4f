"""A look into a journal, even one that a run is writing."""

import shutil
import tempfile
import time
from pathlib import Path

from revelu.errors import FormatError, InputError
from revelu.oracle.journal import Journal, Summary


def summary_of(path: Path) -> Summary:
    """Summarise what is in a journal at one moment, even while a run is writing it.

    Raises
    ------
    FormatError, InputError, MissingExtraError
        As :class:`Journal` does; InputError if it is written too fast to be copied.
    """
    try:
        return _summary(Journal(path))
    except InputError:
        # The writer holds the lock, but what is committed can be copied.
        with tempfile.TemporaryDirectory() as folder:
            copy = _copied(path, Path(folder))
            try:
                return _summary(Journal(copy))
            except FormatError as error:
                # What is the matter with the copy is the matter with the file.
                raise FormatError(f"{error}".replace(f"{copy}", f"{path}")) from None


def _summary(journal: Journal) -> Summary:
    try:
        return journal.summary()
    finally:
        journal.close()


def _copied(path: Path, folder: Path, attempts: int = 20, pause: float = 0.05) -> Path:
    """The file and its log, both as they were at one moment.

    What changes while it is copied is copied again, after ``pause`` seconds.
    """
    files = [path, Path(f"{path}-wal")]
    for _ in range(attempts):
        before = [(p.stat().st_size, p.stat().st_mtime_ns) for p in files if p.exists()]
        for source in (p for p in files if p.exists()):
            shutil.copyfile(source, folder / source.name)
        if before == [(p.stat().st_size, p.stat().st_mtime_ns) for p in files if p.exists()]:
            return folder / path.name
        time.sleep(pause)
    raise InputError(f"{path}: a run writes it too fast to be looked into; try again")
