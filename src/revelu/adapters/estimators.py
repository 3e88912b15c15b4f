"""Fitted scikit-learn models as targets: what they predict, or how probable each class is."""

import hashlib
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from revelu.adapters.mixed_columns import (
    MixedColumns,
    columns_of,
    first_step,
    inner_model,
    steps_of,
)
from revelu.adapters.modules import unpickled
from revelu.adapters.ports import Ports, chosen_output
from revelu.errors import FormatError, InputError, UntrustedError
from revelu.extras import import_extra
from revelu.formats.arrays import check_is_file, naming_damage
from revelu.oracle import Domain
from revelu.types import FloatArray

# In the order in which they are asked where nothing is said.
_OF_CLASSES = ("predict_proba", "decision_function")

# Parts of networks that skops does not count among what is safe: numbers, and no more.
_HARMLESS = {
    f"sklearn.neural_network._stochastic_optimizers.{name}Optimizer" for name in ("Adam", "SGD")
}


def is_estimator(target: Any) -> bool:
    """Whether this is a scikit-learn model, without importing scikit-learn."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(target, base.BaseEstimator)


class EstimatorTarget:
    """A fitted model that answers ``(n, d) -> (n,)`` or ``(n, k)``.

    A classifier answers the probabilities of its classes, or else its decision function; any
    other model its predictions.  Of columns of numbers and others, the numbers vary.

    Parameters
    ----------
    model : sklearn.base.BaseEstimator
    ports : Ports
        Which method is asked, or which of several outputs or labels; where columns stay that
        are no numbers.

    Raises
    ------
    InputError
        If it is not fitted, or predicts nothing but labels.
    """

    def __init__(self, model: Any, ports: Ports | None = None) -> None:
        kind, ports = type(model).__name__, ports or Ports()
        ports.only("scikit-learn models", "output_name", "fixed")
        if getattr(model, "n_features_in_", None) is None:
            raise InputError(f"{kind} is not fitted")
        self.method, self._part = _asked(kind, model, ports.output_name)
        self.columns = columns_of(kind, model, ports)
        self.dim_in = len(self.columns.varying)
        self.model = model

    @property
    def facts(self) -> dict[str, str]:
        """What decides its answers."""
        found = {"model": hashlib.sha256(pickle.dumps(self.model)).hexdigest()}
        if self.columns.held:
            found["held"] = self.columns.words
        if self._part is not None or self.method not in {"predict_proba", "predict"}:
            found["asked"] = f"{self.method} {self._part}"
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen, in words."""
        found = [self.columns.words] if self.columns.held else []
        if self.method not in {"predict_proba", "predict"}:
            found.append(f"its {self.method} is asked")
        if (inner := getattr(self.model, "calibrated_classifiers_", None)) is not None:
            found.append(
                f"its probabilities are calibrated, the mean of {len(inner)}: what was calibrated "
                "is calibrated_classifiers_[0].estimator, a target of its own"
            )
        return tuple(found)

    @property
    def is_regressor(self) -> bool:
        """Whether its answers are quantities, of which the largest is no choice."""
        return self.method == "predict" and not hasattr(self.model, "classes_")

    @property
    def column_names(self) -> list[str]:
        """What the columns that vary are called; nothing where it was fitted on arrays."""
        if self.columns.names is None:
            return []
        return [self.columns.name(place) for place in self.columns.varying]

    @property
    def suggested_domain(self) -> Domain | None:
        """Where a pipeline's own scaler says that its inputs are."""
        if not getattr(self.model, "steps", None) and inner_model(self.model) is None:
            return None
        step = _first_placed(self.model)
        if hasattr(step, "transformers_"):
            return _domain_of_columns(step, self.columns)
        return None if self.columns.held else _domain_of(step)

    def __call__(self, X: FloatArray) -> Any:
        """Ask it for the rows of ``X``."""
        with self.columns.quietly():
            answer = getattr(self.model, self.method)(self.columns.rows(X))
        if isinstance(self._part, tuple):  # one of several labels, each with a probability
            p = np.asarray(answer)[:, self._part[0]]
            return np.column_stack([1.0 - p, p])
        if self._part is not None:
            return answer[self._part]
        if self.method == "predict" and hasattr(self.model, "classes_"):
            return np.searchsorted(self.model.classes_, answer)
        return answer


def _asked(kind: str, model: Any, given: str | None) -> tuple[str, int | tuple[int] | None]:
    """The method to ask, and which of several outputs, or of several labels."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        known = [name for name in ("predict",) if hasattr(model, name)]
        if not known:
            raise InputError(f"{kind} has no predict")
        return chosen_output(kind, known, [], given), None
    known = [name for name in _OF_CLASSES if hasattr(model, name)]
    several = [f"{i}" for i in range(len(classes))] if isinstance(classes, list) else []
    labels = [f"{name}" for name in classes] if _has_labels(model) else []
    if "predict_proba" in known and (several or labels):
        place = (several or labels).index(chosen_output(kind, several or labels, [], given))
        return "predict_proba", place if several else (place,)
    if not known and given is None:
        raise InputError(f"{kind} has no predict_proba; its labels alone do not show its weights")
    if given is None:
        return known[0], None
    return chosen_output(kind, known, ["predict"], given), None


def _has_labels(model: Any) -> bool:
    """Whether each class is a label of its own, with a probability that no other one decides."""
    last = steps_of(model)[-1]
    binarizer = getattr(last, "_label_binarizer", None)
    kind = f"{getattr(binarizer, 'y_type_', '')}"
    return bool(getattr(last, "multilabel_", False)) or kind.startswith("multilabel")


def _first_placed(model: Any) -> Any:
    """The first step that moves inputs: one that fills in what is missing leaves all others."""
    step = first_step(model)
    for following in steps_of(inner_model(model) or model)[1:]:
        if type(step).__name__ not in {"SimpleImputer", "KNNImputer", "IterativeImputer"}:
            break
        if following is model or getattr(following, "n_features_in_", None) != step.n_features_in_:
            break  # columns were dropped, or indicators of what is missing added
        step = following
    return step


def _domain_of(scaler: Any) -> Domain | None:
    """The inputs that a fitted scaler was fitted to; None of what is no scaler of columns."""
    placed = _placed(scaler)
    if placed is None:
        return None
    words = f"where the target's {type(scaler).__name__} was fitted"
    return replace(Domain.gaussian(*placed), words=words)


def _domain_of_columns(transformer: Any, table: MixedColumns) -> Domain | None:
    """Where the scalers of columns were fitted; a column without one is at N(0, 1)."""
    center, spread = np.zeros(table.d), np.ones(table.d)
    is_scaled = False
    for _, step, columns in transformer.transformers_:
        found = (_placed(inner) for inner in steps_of(step))
        placed = next((one for one in found if one is not None), None)
        if placed is not None:
            places = table.places(columns)
            center[places], spread[places] = placed
            is_scaled = True
    if not is_scaled:
        return None
    domain = Domain.gaussian(center[table.varying], spread[table.varying])
    return replace(domain, words="where the target's scalers of columns were fitted")


def _placed(scaler: Any) -> tuple[FloatArray, FloatArray] | None:
    """Center and spread of what a scaler was fitted to; None of what is no scaler of columns."""
    kind = type(scaler).__name__
    if kind == "StandardScaler":
        d, mean, std = scaler.n_features_in_, scaler.mean_, scaler.scale_
        center, spread = np.zeros(d) if mean is None else mean, np.ones(d) if std is None else std
    elif kind == "MinMaxScaler":
        lo, hi = scaler.data_min_, scaler.data_max_
        # The deviation of what is uniform between them.
        center, spread = (lo + hi) / 2, (hi - lo) / np.sqrt(12.0)
    elif kind == "MaxAbsScaler":
        center, spread = np.zeros(scaler.n_features_in_), scaler.scale_ / 2.0
    elif kind == "RobustScaler":
        d = scaler.n_features_in_
        center = np.zeros(d) if scaler.center_ is None else scaler.center_
        # Its unit is the range between quartiles: 1.349 deviations of a Gaussian.
        spread = np.ones(d) if scaler.scale_ is None else scaler.scale_ / 1.349
    else:
        return None
    return np.asarray(center), np.where(spread > 0, spread, 1.0)


def load_estimator(path: Path) -> Any:
    """Unpickle a model, which executes whatever the file says."""
    need = f"{path.suffix} files need scikit-learn"
    joblib = import_extra("joblib", need, "sklearn")

    def load(file: Path) -> Any:
        try:
            return joblib.load(file)
        except ModuleNotFoundError as error:
            # joblib may be there without what it reads.
            match (error.name or "").partition(".")[0]:
                case "sklearn":
                    import_extra("sklearn", need, "sklearn")
                case "pandas":
                    import_extra("pandas", f"{path} needs pandas", "pandas")
            raise

    return unpickled(path, "joblib", load, "scikit-learn model", is_estimator)


def load_skops(path: Path, *, trust: bool) -> Any:
    """Read a model whose file says what it is made of; only with trust what nobody knows.

    Raises
    ------
    FormatError
        If there is none, it cannot be read, or is no scikit-learn model.
    UntrustedError
        If it is made of other things than scikit-learn, SciPy and NumPy.
    """
    check_is_file(path)
    skops = import_extra("skops.io", ".skops files need skops", "skops")
    with naming_damage(path, ".skops file"):
        foreign = skops.get_untrusted_types(file=path)
        if (strange := sorted(set(foreign) - _HARMLESS)) and not trust:
            raise UntrustedError(
                f"{path}: is made of {', '.join(strange[:5])}, which may execute code; --trust "
                "allows it"
            )
        found = skops.load(path, trusted=foreign)
    if not is_estimator(found):
        raise FormatError(f"{path}: holds a {type(found).__name__}, not a scikit-learn model")
    return found
