"""The journal: answers on disk before they are used, and replayed when a run is resumed.

One SQLite file, in which every commit is one answered batch (write-ahead log,
``synchronous=FULL``): what a killed process had acknowledged is there when it starts
again.  A run asks the same questions in the same order as the run before it, so replay
goes by content: a batch whose digest is known gets the answer that it got, the second
of two equal batches the second answer.  An answer belongs to its batch, for a row may
be summed in another order beside other rows.
"""

import hashlib
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from revelu._version import __version__
from revelu.errors import FormatError, InputError
from revelu.extras import import_extra
from revelu.types import FloatArray

SCHEMA = 1

# "rvlu" tells journals from other databases.
# Facts that are names of classes begin so, before the code.
_NAME = "class "

_APPLICATION = 0x7276_6C75

_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    digest BLOB,
    phase TEXT NOT NULL,
    n_rows INTEGER NOT NULL,
    n_outputs INTEGER NOT NULL,
    answer BLOB NOT NULL,
    answered_at REAL NOT NULL,
    checksum BLOB
);
CREATE INDEX by_digest ON batches (digest) WHERE digest IS NOT NULL;
"""

_Digest = Callable[[memoryview | bytes], bytes]


@dataclass(frozen=True)
class Summary:
    """What a journal says of itself.

    Attributes
    ----------
    facts : mapping of str to str
        What decides the questions: target, seed, versions and so on.
    n_queries : int
        Rows that were answered, whatever became of the answer.
    n_batches : int
    by_phase : mapping of str to int
    first, last : float or None
        When the first and the last batch were answered, seconds since 1970.
    n_bytes : int
        Size of the file.
    """

    facts: Mapping[str, str]
    n_queries: int
    n_batches: int
    by_phase: Mapping[str, int]
    first: float | None
    last: float | None
    n_bytes: int


class Journal:
    """The answers of one run, kept across its interruptions.

    The file is locked for as long as it is open; a killed process leaves no lock.

    Parameters
    ----------
    path : path
        Made where it does not exist.
    patience : float
        Seconds that another process which holds the file is given to end.

    Raises
    ------
    FormatError
        If it cannot be opened or written, or is no journal.
    InputError
        If another process has it open.
    MissingExtraError
        If it was written with xxhash, and that is not installed.
    """

    def __init__(self, path: str | os.PathLike[str], patience: float = 1.0) -> None:
        self.path = Path(path)
        with self._naming_failures():
            self._db = sqlite3.connect(
                self.path,
                timeout=patience,
                isolation_level=None,
                check_same_thread=False,
            )
        # The last reference closes the file, too: the lock must not outlive the run.
        self._finalizer = weakref.finalize(self, self._db.close)
        try:
            with self._naming_failures():
                self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file and give up its lock."""
        self._finalizer()

    @property
    def n_queries(self) -> int:
        """Rows answered so far, by all runs together."""
        return self._n_queries

    @property
    def n_waiting(self) -> int:
        """Rows of earlier runs that this one has not asked again yet."""
        return self._n_waiting

    def kept_apart(self) -> dict[str, int]:
        """Rows by phase that were paid for and are never replayed."""
        return self._sums("digest IS NULL")

    def bind(self, facts: Mapping[str, object]) -> None:
        """Hold the run to the facts that the journal was made with, compared as text; note others.

        Raises
        ------
        InputError
            If a fact differs: the answers are those to other questions.
        """
        # Other versions may ask other queries, or differ in the last bits.
        versions = {"version of revelu": __version__, "version of numpy": np.__version__}
        given = {**{name: str(value) for name, value in facts.items()}, **versions}
        known = self.facts()
        for name in (name for name in given if known.get(name, given[name]) != given[name]):
            raise InputError(
                f"{self.path}: is the journal of a run whose {name.replace('_', ' ')} was "
                f"{known[name]}, not {given[name]}: resume that run, or name another journal"
            )
        new = [(name, value) for name, value in given.items() if name not in known]
        with self._naming_failures(), self._transaction():
            self._db.executemany("INSERT INTO facts VALUES (?, ?)", new)

    def note_names(self, names: Mapping[float, str]) -> None:
        """Write down names of classes, which answers have by their codes."""
        rows = [(f"{_NAME}{code:.0f}", name) for code, name in names.items()]
        with self._naming_failures(), self._transaction():
            self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", rows)

    def names(self) -> dict[float, str]:
        """Return the names of classes by their codes."""
        found = self.facts().items()
        return {float(k.removeprefix(_NAME)): v for k, v in found if k.startswith(_NAME)}

    def facts(self) -> dict[str, str]:
        """Return what decides the questions, by name."""
        with self._naming_failures():
            return dict(self._db.execute("SELECT name, value FROM facts ORDER BY name"))

    def find(self, batch: FloatArray) -> FloatArray | None:
        """Return the answer (n, k) of an earlier run to this batch (n, d), and use it up.

        It is None where the batch has to be asked.

        Raises
        ------
        FormatError
            If the file is damaged.
        """
        if not self._n_waiting:
            self._used.clear()
            return None
        digest = self._digest(_bytes(batch))
        with self._naming_failures():
            found = self._db.execute(
                "SELECT id, n_rows, n_outputs, answer, checksum FROM batches "
                "WHERE digest = ? AND id > ? AND id <= ? ORDER BY id LIMIT 1",
                (digest, self._used.get(digest, 0), self._last),
            ).fetchone()
        if found is None:
            return None
        self._used[digest], n_rows, n_outputs, answer, checksum = found
        # Journals of earlier versions have none.
        if checksum is not None and checksum != self._digest(digest + answer):
            raise FormatError(f"{self.path}: is damaged: an answer is not what was written")
        if n_rows != len(batch) or len(answer) != 8 * n_rows * n_outputs:
            raise FormatError(f"{self.path}: is damaged: an answer is not as long as its batch")
        self._n_waiting -= n_rows
        self._n_replayed += n_rows
        Y = np.frombuffer(answer, dtype="<f8").astype(np.float64)
        if np.isnan(Y).any():
            raise FormatError(f"{self.path}: is damaged: an answer holds what was never written")
        return Y.reshape(n_rows, n_outputs)

    def add(
        self, batch: FloatArray, phase: str, answer: FloatArray, *, replayed: bool = True
    ) -> None:
        """Write an answer to disk; it is there when this returns.

        Parameters
        ----------
        batch : ndarray, shape (n, d)
        answer : ndarray, shape (n, k)
            (n, 0) where it was nonsense, which counts but is no answer.
        replayed : bool
            Whether a later run may have it for the same question.

        Raises
        ------
        FormatError
            If it cannot be written.
        """
        digest = self._digest(_bytes(batch)) if replayed else None
        bytes_ = answer.astype("<f8").tobytes()
        checksum = None if digest is None else self._digest(digest + bytes_)
        row = (digest, phase, len(batch), answer.shape[1], bytes_, time.time(), checksum)
        with self._naming_failures():
            self._db.execute(
                "INSERT INTO batches "
                "(digest, phase, n_rows, n_outputs, answer, answered_at, checksum) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        self._n_queries += len(batch)
        self._n_added += len(batch)

    def notes(self) -> tuple[str, ...]:
        """Return what a report on a run has to say of its journal."""
        notes = []
        if self._n_waiting:
            notes.append(
                f"the journal has {self._n_waiting:,} more queries, which this run did not need"
            )
        if self._n_replayed and self._n_added:
            notes.append(
                f"{self._n_replayed:,} of the queries were answered before, and are from the "
                f"journal {self.path}; {self._n_added:,} were asked now"
            )
        if self._n_queries and not self._n_added:
            last = shown_date(self.summary().last)
            notes.append(
                f"every answer is from the journal {self.path}, the last of {last}; the target "
                "itself was asked nothing now, and may have become another one"
            )
        return tuple(notes)

    def summary(self) -> Summary:
        """Return counts and dates."""
        with self._naming_failures():
            n, first, last = self._db.execute(
                "SELECT COUNT(*), MIN(answered_at), MAX(answered_at) FROM batches"
            ).fetchone()
        size = sum(p.stat().st_size for p in (self.path, Path(f"{self.path}-wal")) if p.exists())
        return Summary(self.facts(), self.n_queries, n, self._sums("1"), first, last, size)

    def _open(self) -> None:
        """Take the lock, make the tables of a new file, count what is there."""
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        is_new = not self._number("SELECT COUNT(*) FROM sqlite_master")
        # Another program's database is left as it is.
        if not is_new and self._number("PRAGMA application_id") != _APPLICATION:
            raise FormatError(f"{self.path}: is no journal of revelu")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            if is_new:
                self._make_tables()
        schema = self._number("PRAGMA user_version")
        if schema != SCHEMA:
            raise FormatError(f"{self.path}: has schema {schema}; this version reads {SCHEMA}")
        columns = [row[1] for row in self._db.execute("PRAGMA table_info(batches)")]
        if "checksum" not in columns:
            self._db.execute("ALTER TABLE batches ADD COLUMN checksum BLOB")
        self._digest = _digest(self.path, self.facts()["digest"])
        self._last = self._number("SELECT COALESCE(MAX(id), 0) FROM batches")
        self._n_queries = sum(self._sums("1").values())
        self._n_waiting = sum(self._sums("digest IS NOT NULL").values())
        self._n_added = self._n_replayed = 0
        self._used: dict[bytes, int] = {}

    def _make_tables(self) -> None:
        for statement in _TABLES.split(";\n"):
            self._db.execute(statement)
        facts = {"digest": _fastest()}
        self._db.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
        self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
        self._db.execute(f"PRAGMA user_version = {SCHEMA}")

    def _number(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def _sums(self, which: str) -> dict[str, int]:
        """Rows by phase of the batches for which a condition of ours holds."""
        query = f"SELECT phase, SUM(n_rows) FROM batches WHERE {which} GROUP BY phase"  # noqa: S608
        with self._naming_failures():
            return dict(self._db.execute(query))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of it, or nothing."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    @contextmanager
    def _naming_failures(self) -> Iterator[None]:
        """Say which file it was, and what is the matter with it."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
                raise InputError(
                    f"{self.path}: another process has this journal open, or "
                    "this one, in an oracle that was not closed"
                ) from None
            if code == sqlite3.SQLITE_NOTADB:
                raise FormatError(f"{self.path}: is no journal of revelu") from None
            if code == sqlite3.SQLITE_CORRUPT:
                raise FormatError(
                    f"{self.path}: is damaged ({error}): begin again with a new journal"
                ) from None
            # Extended codes, as of a failed write, have the primary one in their low byte.
            if (code or 0) & 0xFF in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}:
                raise FormatError(
                    f"{self.path}: cannot be written ({error}); with room on the disk the same "
                    "command goes on from the answers that are there"
                ) from None
            raise FormatError(f"{self.path}: {error}") from None


def shown_date(seconds: float | None) -> str:
    """Return a time since 1970 as text."""
    if seconds is None:
        return "none"
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _bytes(batch: FloatArray) -> memoryview:
    return np.ascontiguousarray(batch).data.cast("B")


def _fastest() -> str:
    """Name the fastest digest that is installed."""
    try:
        import xxhash  # noqa: F401, PLC0415 - optional
    except ImportError:
        return "blake2b"
    return "xxh3"


def _digest(path: Path, name: str) -> _Digest:
    """The function from bytes to 16 bytes that a journal was written with."""
    if name == "xxh3":
        xxhash = import_extra("xxhash", f"{path}: was written with xxhash", "http")
        digest: _Digest = xxhash.xxh3_128_digest
        return digest
    if name != "blake2b":
        raise FormatError(f"{path}: has digests of an unknown kind, {name}")
    return lambda data: hashlib.blake2b(data, digest_size=16).digest()
