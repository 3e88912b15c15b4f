"""Fitted scikit-learn models as targets: what they predict, or how probable each class is."""

import hashlib
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from revelu.adapters.modules import unpickled
from revelu.errors import InputError
from revelu.extras import import_extra
from revelu.oracle import Domain
from revelu.types import FloatArray


def is_estimator(target: Any) -> bool:
    """Whether this is a scikit-learn model, without importing scikit-learn."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(target, base.BaseEstimator)


class EstimatorTarget:
    """A fitted model that answers ``(n, d) -> (n,)`` or ``(n, k)``.

    A classifier answers the probabilities of its classes, any other model its predictions.

    Parameters
    ----------
    model : sklearn.base.BaseEstimator

    Raises
    ------
    InputError
        If it is not fitted, or predicts nothing but labels.
    """

    def __init__(self, model: Any) -> None:
        kind = type(model).__name__
        self.dim_in = getattr(model, "n_features_in_", None)
        if self.dim_in is None:
            raise InputError(f"{kind} is not fitted")
        is_classifier = hasattr(model, "classes_")
        self.method = "predict_proba" if is_classifier else "predict"
        if not hasattr(model, self.method):
            hint = "; its labels alone do not show its weights" if is_classifier else ""
            raise InputError(f"{kind} has no {self.method}{hint}")
        self.model = model

    @property
    def facts(self) -> dict[str, str]:
        """What decides its answers."""
        return {"model": hashlib.sha256(pickle.dumps(self.model)).hexdigest()}

    @property
    def suggested_domain(self) -> Domain | None:
        """Where a pipeline's own scaler says that its inputs are."""
        steps = getattr(self.model, "steps", None)
        return None if not steps else _domain_of(steps[0][1])

    def __call__(self, X: FloatArray) -> Any:
        """Ask it for the rows of ``X``."""
        return getattr(self.model, self.method)(X)


def _domain_of(scaler: Any) -> Domain | None:
    """The inputs that a fitted scaler was fitted to; None of what is no scaler of columns."""
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
    spread = np.where(spread > 0, spread, 1.0)
    return replace(Domain.gaussian(center, spread), words=f"where the target's {kind} was fitted")


def load_estimator(path: Path) -> Any:
    """Unpickle a model, which executes whatever the file says."""
    joblib = import_extra("joblib", ".joblib files need scikit-learn", "sklearn")
    return unpickled(path, "joblib", joblib.load, "scikit-learn model", is_estimator)
