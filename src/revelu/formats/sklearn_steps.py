"""Steps of scikit-learn that come before a model, as functions of single columns."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from revelu.errors import InputError
from revelu.formats.array_pickle import value_of
from revelu.formats.column_maps import ColumnMap
from revelu.formats.open_model import LayerChain
from revelu.formats.pickled import Name, Record
from revelu.types import FloatArray

__all__ = ["columns_of", "is_skipped", "width_of"]

_MISSING = (
    "missing values are not filled in: a network reads numbers, and the step that replaces them "
    "has no effect on those"
)
_REPLACED = "its imputer replaces {}, which the network reads as any other number"
_BETWEEN = (
    "numbers that stand for categories are read exactly; between two of them, which the original "
    "does not know, the network changes from one to the other"
)


def is_skipped(step: Any) -> bool:
    """Whether a step passes on what it reads."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return True
    is_function = isinstance(step, Record) and step.kind == "FunctionTransformer"
    return is_function and step.get("func") is None


def width_of(step: Record) -> int | None:
    """Return how many columns a step reads; None where it does not say."""
    said = value_of(step.get("n_features_in_", step.get("n_features_")))
    if isinstance(said, int):
        return said
    for name in ("scale_", "mean_", "center_", "statistics_", "variances_"):
        held = value_of(step.get(name))
        if isinstance(held, np.ndarray) and held.ndim == 1:
            return len(held)
    if isinstance(step.get("categories_"), list):
        return len(step.get("categories_"))
    return None


def columns_of(step: Record, d: int, chain: LayerChain, notes: list[str]) -> ColumnMap:
    """Return what a fitted step does to its columns.

    Parameters
    ----------
    d : int
        ColumnMap that it reads.
    chain : LayerChain
        Counts numbers, and refuses.
    notes : list of str
        Takes what a user has to know of it.

    Raises
    ------
    FormatError
        If it does what is no function of single columns, or of words.
    """
    readers: dict[str, Callable[[Record, int, LayerChain, list[str]], ColumnMap]] = {
        "StandardScaler": _standard,
        "MinMaxScaler": _min_max,
        "MaxAbsScaler": _max_abs,
        "RobustScaler": _robust,
        "Imputer": _imputer,
        "SimpleImputer": _imputer,
        "OneHotEncoder": _one_hot,
        "OrdinalEncoder": _ordinal,
        "VarianceThreshold": _by_variance,
        "ColumnTransformer": _by_columns,
        "Pipeline": _in_turn,
    }
    chain.reserve(d)
    if is_skipped(step):
        return ColumnMap.same(d)
    read = readers.get(step.kind) if isinstance(step, Record) else None
    if read is None:
        kind = step.kind if isinstance(step, Record) else type(step).__name__
        chain.refuse(f"its step {kind} is no scaling, filling or encoding of single columns")
    found = read(step, d, chain, notes)
    if found.d != d:
        chain.refuse(f"its step {step.kind} reads {found.d} columns of {d}")
    return found


def _vector(step: Record, name: str, d: int, chain: LayerChain) -> FloatArray:
    found = chain.numbers(value_of(step.get(name)))
    if found.size == 1:
        return np.full(d, float(found.reshape(-1)[0]))
    if found.shape != (d,):
        chain.refuse(f"{name} of its {step.kind} has the shape {found.shape}")
    return found


def _factors(scale: FloatArray, step: Record, chain: LayerChain) -> FloatArray:
    if not scale.all():
        chain.refuse(f"its {step.kind} divides by 0")
    return np.asarray(1.0 / scale)


def _standard(step: Record, d: int, chain: LayerChain, _: list[str]) -> ColumnMap:
    return _centred(step, d, chain, ("with_mean", "mean_"), ("with_std", "scale_"))


def _robust(step: Record, d: int, chain: LayerChain, _: list[str]) -> ColumnMap:
    return _centred(step, d, chain, ("with_centering", "center_"), ("with_scaling", "scale_"))


def _centred(
    step: Record, d: int, chain: LayerChain, centre: tuple[str, str], size: tuple[str, str]
) -> ColumnMap:
    """Columns less their centres, over their sizes: each an option, and where its numbers are."""
    s, shift = np.ones(d), np.zeros(d)
    if step.get(centre[0], True) and value_of(step.get(centre[1])) is not None:
        shift = _vector(step, centre[1], d, chain)
    if step.get(size[0], True) and value_of(step.get(size[1])) is not None:
        s = _factors(_vector(step, size[1], d, chain), step, chain)
    return ColumnMap.scaled(s, -shift * s)


def _min_max(step: Record, d: int, chain: LayerChain, _: list[str]) -> ColumnMap:
    scaled = ColumnMap.scaled(_vector(step, "scale_", d, chain), _vector(step, "min_", d, chain))
    if not step.get("clip", False):
        return scaled
    bounds = np.asarray([float(x) for x in step.get("feature_range", (0, 1))])
    return scaled.then(ColumnMap.through(d, [(i, bounds, bounds) for i in range(d)]))


def _max_abs(step: Record, d: int, chain: LayerChain, _: list[str]) -> ColumnMap:
    s = _factors(_vector(step, "scale_", d, chain), step, chain)
    scaled = ColumnMap.scaled(s, np.zeros(d))
    if not step.get("clip", False):
        return scaled
    bounds = np.array([-1.0, 1.0])
    return scaled.then(ColumnMap.through(d, [(i, bounds, bounds) for i in range(d)]))


def _imputer(step: Record, d: int, chain: LayerChain, notes: list[str]) -> ColumnMap:
    """What it passes on where nothing is missing: columns that had no number are left out."""
    if step.get("axis", 0) != 0:
        chain.refuse("its Imputer fills in along rows")
    missing = value_of(step.get("missing_values", np.nan))
    is_number = isinstance(missing, int | float) and missing == missing  # noqa: PLR0124 - NaN
    notes.append(_REPLACED.format(missing) if is_number else _MISSING)
    statistics = np.asarray(value_of(step.get("statistics_")))
    if statistics.shape != (d,):
        chain.refuse(f"statistics_ of its {step.kind} has the shape {statistics.shape}")
    kept = np.ones(d, dtype=bool)
    if step.get("strategy") != "constant" and not step.get("keep_empty_features", False):
        kept = np.array([value == value and value is not None for value in statistics])  # noqa: PLR0124
    n_more = 0
    if step.get("add_indicator", False) and isinstance(step.get("indicator_"), Record):
        n_more = np.asarray(value_of(step.get("indicator_").get("features_"))).size
    return ColumnMap.chosen(d, np.flatnonzero(kept).tolist(), n_more)


def _categories(step: Record, d: int, chain: LayerChain, n_each: int = 32) -> list[FloatArray]:
    """The numbers that stand for the categories of each column.

    Each becomes three hinges, which take as much memory as ``n_each`` numbers.
    """
    held = step.get("categories_")
    if not isinstance(held, list) or len(held) != d:
        chain.refuse(f"its {step.kind} is of a release before 0.20, which is not read")
    if step.get("_legacy_mode", False):
        chain.refuse(f"its {step.kind} has the ways of a release before 0.20, which is not read")
    if any(one is not None for one in step.get("_infrequent_indices") or ()):
        chain.refuse(f"its {step.kind} puts rare categories together")
    found = []
    for i, categories in enumerate(map(value_of, held)):
        values = np.asarray(categories)
        if values.dtype == object and all(isinstance(v, int | float) for v in values):
            values = values.astype(np.float64)
        if values.dtype.kind not in "biuf" or values.ndim != 1:
            chain.refuse(
                f"column {i} of its {step.kind} holds words, which no network of numbers reads"
            )
        chain.reserve(values.size * n_each)
        values = chain.numbers(values[~np.isnan(values.astype(np.float64))])
        if not values.size or (np.diff(values) <= 0).any():
            chain.refuse(f"the categories of its {step.kind} are not in order")
        found.append(values)
    return found


def _one_hot(step: Record, d: int, chain: LayerChain, notes: list[str]) -> ColumnMap:
    """A hat at each category: 1 there, 0 at its neighbours."""
    notes.append(_BETWEEN)
    dropped = value_of(step.get("drop_idx_"))
    tables = []
    for i, values in enumerate(_categories(step, d, chain)):
        gaps = np.diff(values)
        ends = (1.0, 1.0) if not gaps.size else (gaps[0], gaps[-1])
        knots = np.concatenate([[values[0] - ends[0]], values, [values[-1] + ends[1]]])
        left_out = None if dropped is None else dropped[i]
        kept = [j for j in range(len(values)) if left_out is None or j != int(left_out)]
        tables += [(i, knots[j : j + 3], np.array([0.0, 1.0, 0.0])) for j in kept]
    return ColumnMap.through(d, tables)


def _ordinal(step: Record, d: int, chain: LayerChain, notes: list[str]) -> ColumnMap:
    notes.append(_BETWEEN)
    each = enumerate(_categories(step, d, chain))
    return ColumnMap.through(d, [(i, v, np.arange(len(v), dtype=np.float64)) for i, v in each])


def _by_variance(step: Record, d: int, chain: LayerChain, _: list[str]) -> ColumnMap:
    kept = _vector(step, "variances_", d, chain) > float(step.get("threshold", 0.0))
    return ColumnMap.chosen(d, np.flatnonzero(kept).tolist())


def _in_turn(step: Record, d: int, chain: LayerChain, notes: list[str]) -> ColumnMap:
    found = ColumnMap.same(d)
    for _, inner in step.get("steps", ()):
        found = joined(found, columns_of(inner, found.m, chain, notes), chain)
    return found


def joined(first: ColumnMap, second: ColumnMap, chain: LayerChain) -> ColumnMap:
    """Return one step after another."""
    try:
        return first.then(second)
    except InputError as error:
        chain.refuse(f"{error}")


def _by_columns(
    step: Record, d: int, chain: LayerChain, notes: list[str], n_each: int = 16
) -> ColumnMap:
    """The outputs of the steps of some columns, side by side.

    Each place of a column takes as much memory as ``n_each`` numbers.
    """
    if step.get("transformer_weights"):
        chain.refuse("its ColumnTransformer weighs what its steps give")
    names = [f"{name}" for name in _listed(value_of(step.get("feature_names_in_")))]
    resolved = step.get("_transformer_to_input_indices")
    blocks = []
    for label, inner, columns in step.get("transformers_", ()):
        if isinstance(resolved, dict) and label in resolved:
            columns = resolved[label]  # noqa: PLW2901 - what a name or a function chose
        places = _places(columns, d, names, chain)
        chain.reserve(n_each * len(places))
        if not places or (isinstance(inner, str) and inner == "drop"):
            continue
        chosen = ColumnMap.chosen(d, places)
        if is_skipped(inner):
            blocks.append(chosen)
            continue
        try:
            blocks.append(joined(chosen, columns_of(inner, chosen.m, chain, notes), chain))
        except InputError as error:
            read = ", ".join(names[i] if names else f"{i}" for i in places[:6])
            raise type(error)(f"{error} (its step {label!r}, of columns {read})") from None
    return ColumnMap.beside(d, blocks)


def _listed(found: Any) -> list[Any]:
    return [] if found is None else list(found)


def _places(columns: Any, d: int, names: Sequence[str], chain: LayerChain) -> list[int]:
    """The numbers of columns, however they are named."""
    found = value_of(columns)
    if isinstance(found, Record) and found.kind == "slice":
        if all(isinstance(a, int | None) for a in found.arguments):
            return list(range(d)[slice(*found.arguments)])
        found = None
    if isinstance(found, Record):  # a list that warns of its use
        found = found.get("data")
    if isinstance(found, str | int) and not isinstance(found, bool):
        found = [found]
    if found is None or isinstance(found, Name):
        chain.refuse("nothing says which columns a step of it reads")
    items = [item.item() if isinstance(item, np.generic) else item for item in found]
    if items and all(isinstance(item, bool) for item in items):
        return [i for i, is_read in enumerate(items) if is_read]
    places = []
    for item in items:
        if isinstance(item, str) and item in names:
            places.append(list(names).index(item))
        elif isinstance(item, int) and -d <= item < d:
            places.append(item % d)
        else:
            chain.refuse(f"a step of it reads a column {item!r:.40} that is not there")
    return places
