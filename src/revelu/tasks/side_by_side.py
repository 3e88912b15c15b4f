"""Side by side: what two models answer to the rows of a table, the worst rows first."""

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revelu.adapters import open_oracle
from revelu.adapters.open_models import OpenTarget
from revelu.adapters.ports import image_of_row
from revelu.certify.certificate import Standard
from revelu.errors import InputError
from revelu.formats.arrays import replace_file
from revelu.formats.inputs import read_inputs
from revelu.formats.tables import read_rows
from revelu.network import Network
from revelu.numerics.confidence import CONFIDENCE, at_most, upper_bound
from revelu.numerics.links import Link
from revelu.oracle import Domain, Oracle
from revelu.oracle.column_names import NamedRows, in_order_of
from revelu.oracle.labels import as_labels
from revelu.tasks.job import random_seeds
from revelu.types import FloatArray, IntArray

__all__ = ["SideBySide", "side_by_side"]


@dataclass(frozen=True, eq=False)
class SideBySide:
    """The answers of two models to the same rows.

    Attributes
    ----------
    names : (str, str)
        Of the models.
    first, second : ndarray, shape (n, k)
        Their answers.
    tolerance : float
        The largest difference that counts as agreement, over the largest answer.
    outputs : tuple of str
        What the answers are called: names of classes, or numbers.
    are_classes : bool
        Whether the largest answer of a row chooses its class.
    digests : mapping of str to str
        Of the files of both models and of the table, by their names: SHA-256.
    where : str
        What the rows are, in words that follow their number; empty of those of a table.
    notes : tuple of str
        How the rows were read, where that leaves a choice.
    """

    names: tuple[str, str]
    first: FloatArray
    second: FloatArray
    tolerance: float
    outputs: tuple[str, ...]
    are_classes: bool
    digests: dict[str, str]
    where: str = ""
    notes: tuple[str, ...] = ()

    @property
    def differences(self) -> FloatArray:
        """The largest difference of an answer, row by row, (n,)."""
        return np.asarray(np.abs(self.first - self.second).max(axis=1))

    @property
    def worst_first(self) -> IntArray:
        """The rows, those that differ most first, those of different classes before others."""
        others = ~self.is_other_class
        return np.lexsort((np.arange(len(self.first)), -self.differences, others))

    @property
    def is_other_class(self) -> np.ndarray:
        """Whether the class of a row is another one, (n,); never without classes."""
        if not self.are_classes:
            return np.zeros(len(self.first), dtype=bool)
        return np.asarray(self.first.argmax(axis=1) != self.second.argmax(axis=1))

    @property
    def relative(self) -> float:
        """The largest difference, over the largest answer."""
        size = max(float(np.abs(self.first).max()), float(np.abs(self.second).max()))
        return float(self.differences.max()) / (size or 1.0)

    @property
    def agree(self) -> bool:
        """Whether every answer is within the tolerance."""
        return self.relative <= self.tolerance

    @property
    def _agree_up_to_shift(self) -> bool:
        """Whether answers that differ are within the tolerance less what a row's have in common."""
        if self.agree or not self.are_classes:
            return False
        D = self.first - self.second
        left = float(np.abs(D - D.mean(axis=1, keepdims=True)).max())
        return left * self.relative <= self.tolerance * float(self.differences.max())

    @property
    def statement(self) -> str:
        """What a reviewer may sign: a sentence with the figures it rests on."""
        n, largest = len(self.first), float(self.differences.max())
        rows = f"{n:,} row{'s' * (n != 1)}" if not self.where else f"{n:,} {self.where}"
        said = f"on {rows} no answer differs by more than {largest:.2g}"
        said += f" ({self.relative:.2g} of the largest answer)"
        if self._agree_up_to_shift:
            said += "; they agree up to what is added to all answers of a row, as below a softmax"
        if self.are_classes:
            n_other = int(self.is_other_class.sum())
            at_most_other = at_most(100.0 * upper_bound(n_other, n))
            said += (
                f"; the classes of {n - n_other:,} are equal, {(n - n_other) / n:.2%}: of rows "
                f"drawn as these less than {at_most_other}% differ at {CONFIDENCE:.0%} confidence"
            )
        return said

    def to_dict(self, most: int = 10) -> dict[str, Any]:
        """Return the figures as JSON has them, with the first of the worst rows."""
        n_other = int(self.is_other_class.sum())
        share = 1.0 - n_other / len(self.first) if self.are_classes else None
        return {
            "rows": len(self.first),
            "max_abs_difference": float(self.differences.max()),
            "max_relative_difference": self.relative,
            "mean_abs_difference": float(np.abs(self.first - self.second).mean()),
            "equal_classes": share,
            "worst_rows": (self.worst_first[:most] + 1).tolist(),
            "statement": self.statement,
            "sha256": dict(self.digests),
        }

    def save(self, path: Path) -> None:
        """Write a ``.csv``: a line a row, the worst first, with its number in the table from 1.

        Raises
        ------
        FormatError
            If it cannot be written.
        """
        a, b = self.names
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        heads = [f"{name} {output}" for name in (a, b) for output in self.outputs]
        classes = [f"{a} class", f"{b} class", "equal"] if self.are_classes else []
        writer.writerow(["row", "difference", *classes, *heads])
        differences, is_other = self.differences, self.is_other_class
        chosen = [[self.outputs[i] for i in Y.argmax(axis=1)] for Y in (self.first, self.second)]
        for i in self.worst_first.tolist():
            own = [chosen[0][i], chosen[1][i], "no" if is_other[i] else "yes"]
            answers = [*self.first[i].tolist(), *self.second[i].tolist()]
            row = [i + 1, float(differences[i]), *(own if self.are_classes else []), *answers]
            writer.writerow(row)
        replace_file(path, text.getvalue().encode("utf-8"))


def side_by_side(
    first: str,
    second: str,
    table: Path | None = None,
    tolerance: float = 1e-6,
    *,
    domain: Domain | None = None,
    box: tuple[float, float] | None = None,
    link: str = "auto",
    labels: bool = False,
    columns: Sequence[str] = (),
    n_drawn: int = Standard.checks,
) -> SideBySide:
    """Ask two models for the rows of a table, or for inputs drawn.

    Parameters
    ----------
    first, second : str
        Targets that open without trust: files, ``demo:NAME``, addresses.
    table : pathlib.Path, optional
        Columns by name where both a model and the table have names, else in the model's order.  An
        ``.npy`` of images has four axes: their channels are the second, or the last.
    tolerance : float
    domain, box : optional
        Where inputs are drawn without a table, as of :func:`revelu.extract`; always the same ones.
    link : str
        What undoes the last step of both; ``auto`` compares answers as they are.
    labels : bool
        Compare which answer is the largest, or the sign of a single one.
    columns : sequence of str
        Of the table that are inputs, by name or number; all where it has no others.
    n_drawn : int
        Inputs drawn.

    Raises
    ------
    InputError
        If one cannot be opened, or they differ in inputs or outputs.
    TargetError
        If one fails.
    """
    with open_oracle(first) as a, open_oracle(second) as b:
        image = _image_of(a, b)
        if table is None:
            rows, where = _drawn(a, n_drawn, domain, box)
        else:
            rows, where = _rows_of(table, image, columns), ""
        answers = [_answers(oracle, rows, other) for oracle, other in ((a, b), (b, a))]
        one, two = answers
        if one.shape != two.shape:
            raise InputError(f"{first} has {one.shape[1]} outputs, {second} {two.shape[1]}")
        if link != "auto":
            one, two = _undone(Link.named(link), one, two)
        k = one.shape[1]
        outputs = _classes(a) or _classes(b) or tuple(f"{i}" for i in range(k))
        quantities = any(getattr(oracle.target, "is_regressor", False) for oracle in (a, b))
    found = {name: _digest(Path(name)) for name in (first, second, rows.file) if name}
    outputs = outputs if len(outputs) == k else tuple(f"{i}" for i in range(k))
    if labels:
        one, two, outputs = _chosen(one, two, outputs)
    return SideBySide(
        _names_of(first, second),
        one,
        two,
        tolerance,
        outputs,
        are_classes=labels or (k > 1 and not quantities),
        digests={name: digest for name, digest in found.items() if digest},
        where=where,
        notes=() if table is None or image is None else (_as_images(image, rows),),
    )


def _undone(link: Link, *answers: FloatArray) -> list[FloatArray]:
    """What is behind a last step; of a contrast the last output is 0.

    Raises
    ------
    InputError
        Where an answer has no digits of it.
    """
    found = [link.inverse(Y) for Y in answers]
    if n := int((~np.isfinite(np.hstack(found)).all(axis=1)).sum()):
        raise InputError(f"{n:,} of {len(found[0]):,} rows have answers that {link} cannot undo")
    return [np.column_stack([Z, np.zeros(len(Z))]) if link.contrast else Z for Z in found]


def _chosen(
    one: FloatArray, two: FloatArray, outputs: tuple[str, ...]
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """The classes of answers alone, as rows with a single 1, and what they are called."""
    labels = [as_labels(Y)[:, 0] for Y in (one, two)]
    known = np.arange(one.shape[1]) if one.shape[1] > 1 else np.unique(labels)
    names = outputs if one.shape[1] > 1 else tuple(f"{label:g}" for label in known)
    a, b = ((label[:, None] == known).astype(float) for label in labels)
    return a, b, names


def _rows_of(table: Path, image: tuple[int, int, int] | None, columns: Sequence[str]) -> NamedRows:
    """The rows of a table to ask for."""
    names, X = _images(table, image) or read_rows(table, columns)
    if not len(X):
        raise InputError(f"{table}: has no rows")
    return NamedRows(names, X, f"{table}")


def _drawn(
    oracle: Oracle, n: int, domain: Domain | None, box: tuple[float, float] | None
) -> tuple[NamedRows, str]:
    """Rows that are drawn, and where, in words."""
    given = Domain.box(*box) if box is not None else domain or Domain.gaussian()
    place = given.of(oracle.dim_in, oracle.name)
    rng, shape = np.random.default_rng(random_seeds("side", 0)), (n, place.dim_in)
    Z = rng.uniform(-1.0, 1.0, shape) if place.is_uniform else rng.standard_normal(shape)
    return NamedRows(list(place.names), place.to_target(Z), ""), f"inputs {place.words}"


def _image_of(*oracles: Oracle) -> tuple[int, int, int] | None:
    """Channels, height and width of what models take, where there are several channels."""
    images = [image_of_row(getattr(oracle.target, "row", None)) for oracle in oracles]
    return next((image for image in images if image is not None and image[0] > 1), None)


def _images(table: Path, image: tuple[int, int, int] | None) -> tuple[list[str], FloatArray] | None:
    """Rows of an ``.npy`` of images (n, height, width, channels) or (n, channels, height, width).

    None where it is a table.
    """
    if image is None or table.suffix.lower() != ".npy" or (X := read_inputs(table)).ndim != 4:
        return None
    channels, height, width = image
    if X.shape[1:] == (height, width, channels):
        X = X.transpose(0, 3, 1, 2)
    elif X.shape[1:] != image:
        raise InputError(
            f"{table}: images of shape {X.shape[1:]}; the models take {image}, or, with the "
            f"channels last, {(height, width, channels)}"
        )
    if X.dtype.kind not in "biuf":
        raise InputError(f"{table}: holds {X.dtype}, no numbers")
    rows = X.reshape(len(X), -1).astype(np.float64)
    return [f"{i}" for i in range(rows.shape[1])], rows


def _as_images(image: tuple[int, int, int], rows: NamedRows) -> str:
    """How rows that are images were taken."""
    channels, height, width = image
    return (
        f"{rows.file}: rows are taken channel by channel, {channels} of {height} x {width}; images "
        f"with their channels last go into an .npy of shape (n, {height}, {width}, {channels})"
    )


def _answers(oracle: Oracle, rows: NamedRows, other: Oracle) -> FloatArray:
    """What a model answers; of a bare network behind the head that the other one has."""
    wanted = getattr(oracle.target, "column_names", ()) or ()
    X = np.asarray(in_order_of(rows, wanted, rows.file), dtype=np.float64)
    if X.shape[1] != oracle.dim_in:
        raise InputError(f"{rows.file}: {X.shape[1]} columns for {oracle.dim_in} of {oracle.name}")
    Y = oracle(X)
    head = other.target.link if isinstance(other.target, OpenTarget) else None
    is_bare = isinstance(oracle.target, Network)
    return head.answers(Y) if is_bare and head is not None else Y


def _classes(oracle: Oracle) -> tuple[str, ...]:
    model = oracle.target.model if isinstance(oracle.target, OpenTarget) else None
    return () if model is None else tuple(f"{name}" for name in model.classes)


def _names_of(first: str, second: str) -> tuple[str, str]:
    """What both are called in a heading: the names of their files where those differ."""
    a, b = Path(first).name or first, Path(second).name or second
    return (a, b) if a != b else (f"A {a}", f"B {b}")


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    except OSError:
        return ""
