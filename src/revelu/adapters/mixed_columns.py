"""Tables of which some columns are no numbers: those that vary, and where the others stay."""

import importlib
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from revelu.adapters.ports import Ports
from revelu.errors import InputError
from revelu.extras import import_extra
from revelu.types import FloatArray


@dataclass(frozen=True)
class MixedColumns:
    """The columns that a model was fitted on.

    Attributes
    ----------
    d : int
        How many there are.
    names : list of str or None
        Their names, where it was fitted on a DataFrame.
    held : mapping of int to object
        Columns that stay, and where.
    """

    d: int
    names: list[str] | None
    held: Mapping[int, Any]

    @property
    def varying(self) -> list[int]:
        """The columns that vary."""
        return [place for place in range(self.d) if place not in self.held]

    @property
    def words(self) -> str:
        """Which columns stay, and where."""
        said = [f"{self.name(place)} at {value!r}" for place, value in self.held.items()]
        return f"columns of no numbers stay: {', '.join(said)}"

    def name(self, place: int) -> str:
        """Return what a column is called."""
        return self.names[place] if self.names else f"{place}"

    def places(self, columns: Any) -> list[int]:
        """Return the numbers of columns, named in any of the ways in which transformers do."""
        if isinstance(columns, str | int | np.integer):
            columns = [columns]
        names = self.names or []
        if isinstance(columns, slice):
            if isinstance(columns.start, str):  # both ends are in it
                columns = slice(names.index(columns.start), names.index(columns.stop) + 1)
        elif any(isinstance(column, str) for column in columns):
            return [names.index(str(column)) for column in columns]
        elif not len(columns):
            return []
        return [int(place) for place in np.arange(self.d)[columns]]

    def rows(self, X: FloatArray) -> Any:
        """Return what the model is asked for rows of the varying columns."""
        if not self.held:
            table: Any = X
        else:
            table = np.empty((len(X), self.d), dtype=object)
            table[:, self.varying] = X
            for place, value in self.held.items():
                table[:, place] = value
        if self.names is None:
            return table
        pandas = _pandas(needed=bool(self.held))
        if pandas is None:
            return table
        columns = {
            place: table[:, place] if place in self.held else table[:, place].astype(np.float64)
            for place in range(self.d)
        }
        frame = pandas.DataFrame(columns)
        frame.columns = self.names
        return frame

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Hide that rows have no names, where nothing is there that could give them some."""
        with warnings.catch_warnings():
            if self.names is not None:
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
            yield


def _pandas(*, needed: bool) -> Any:
    """The library of DataFrames; None where it is absent and not needed."""
    if needed:
        return import_extra("pandas", "columns of words by name need pandas", "pandas")
    try:
        return importlib.import_module("pandas")
    except ImportError:
        return None


def columns_of(kind: str, model: Any, ports: Ports) -> MixedColumns:
    """Tell which columns of a fitted model vary.

    Parameters
    ----------
    kind : str
        Begins every message.
    ports : Ports
        Of which columns of a row, or of several, are fixed: at what is there most often.

    Raises
    ------
    InputError
        If none varies, or a value given is none that the model knows.
    """
    d, given = int(model.n_features_in_), ports.fixed
    found = getattr(model, "feature_names_in_", None)
    names = None if found is None else [str(name) for name in found]
    table = MixedColumns(d, names, {})
    held: dict[int, Any] = {}
    dropped: dict[int, Any] = {}
    for _, step, columns in getattr(first_step(model), "transformers_", ()):
        known = _known_values(step)
        for i, place in enumerate(table.places(columns)):
            if known is not None:
                held[place] = _value(kind, table.name(place), known[i], given)
            elif isinstance(step, str) and step == "drop":
                dropped[place] = 0.0
    read = [table.name(place) for place in held]
    held |= {place: value for place, value in dropped.items() if place not in held}
    if given and not {table.name(place) for place in held} & set(given):
        words = ", ".join(table.name(place) for place in held) or "none"
        raise InputError(f"{kind}: no column to be fixed is among those given; it has {words}")
    ports.check_columns(read)
    if len(held) == d:
        raise InputError(f"{kind} takes no column of numbers that could vary")
    return MixedColumns(d, names, dict(sorted(held.items())))


def first_step(model: Any) -> Any:
    """Return what a fitted model does first, inside pipelines, searches and calibration."""
    while True:
        if steps := getattr(model, "steps", None):
            model = steps[0][1]
        elif (inner := inner_model(model)) is not None:
            model = inner
        else:
            return model


def inner_model(model: Any) -> Any:
    """Return the model that a search or a calibration has fitted; None of any other."""
    for name in ("best_estimator_", "regressor_"):
        if (inner := getattr(model, name, None)) is not None:
            return inner
    calibrated = getattr(model, "calibrated_classifiers_", None)
    return calibrated[0].estimator if calibrated else None


def steps_of(step: Any) -> list[Any]:
    """Return the steps of a pipeline; of any other, that alone."""
    return [inner for _, inner in getattr(step, "steps", [("", step)])]


def _known_values(step: Any) -> list[Any] | None:
    """For each column what an encoder knows, the typical one first; None of numbers that vary."""
    typical: Any = None
    for inner in steps_of(step):
        if getattr(inner, "strategy", None) == "most_frequent":
            typical = getattr(inner, "statistics_", None)
        if (categories := getattr(inner, "categories_", None)) is not None:
            return [
                _typical_first(list(values), None if typical is None else typical[i])
                for i, values in enumerate(categories)
            ]
        if hasattr(inner, "vocabulary_"):
            return [[""]]
        if (edges := getattr(inner, "bin_edges_", None)) is not None:
            return [[float(np.median(ends))] for ends in edges]
    return None


def _typical_first(values: list[Any], typical: Any) -> list[Any]:
    return sorted(values, key=lambda value: value != typical) if typical in values else values


def _value(kind: str, name: str, known: list[Any], given: Mapping[str, np.ndarray] | None) -> Any:
    """Where a column stays: at what is given most often, or at what is typical."""
    column = None if given is None else given.get(name)
    if column is None:
        return known[0]
    value = _commonest(column)
    # A number of a file may be a category that the model knows as another type of number.
    for category in known:
        if category == value or f"{category}" == f"{value}":
            return category
    if f"{value}".strip().lower() in {"", "nan", "none"} and known != [""]:
        listed = ", ".join(map(str, known[:12]))
        raise InputError(f"{kind}: column {name!r} is empty where it is to stay; it has {listed}")
    if known in ([""], []) or isinstance(known[0], float):
        return value
    listed = ", ".join(map(str, known[:12]))
    raise InputError(f"{kind}: column {name!r} has no {value!s}; it has {listed}")


def _commonest(column: np.ndarray) -> Any:
    """What is there most often; of several the least, as far as they can be compared."""
    values = np.atleast_1d(column).tolist()
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], f"{value}"))
