"""Fitted scikit-learn models as targets: what they predict, or how probable each class is."""

import hashlib
import pickle
import sys
from pathlib import Path
from typing import Any

from revelu.adapters.modules import unpickled
from revelu.errors import InputError
from revelu.extras import import_extra
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

    def __call__(self, X: FloatArray) -> Any:
        """Ask it for the rows of ``X``."""
        return getattr(self.model, self.method)(X)


def load_estimator(path: Path) -> Any:
    """Unpickle a model, which executes whatever the file says."""
    joblib = import_extra("joblib", ".joblib files need scikit-learn", "sklearn")
    return unpickled(path, "joblib", joblib.load, "scikit-learn model", is_estimator)
