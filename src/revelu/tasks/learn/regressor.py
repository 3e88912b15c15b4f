"""A scikit-learn estimator that learns ReLU networks exactly where samples allow it."""

import warnings
from typing import Any, Self

import numpy as np

from revelu.errors import InputError, MissingExtraError
from revelu.network import Network
from revelu.recovery import Recovery, Status
from revelu.tasks.learn.learn import learn
from revelu.types import FloatArray

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError("HermiteRegressor needs scikit-learn: revelu[sklearn]") from None

_KNOWN = (Status.RECOVERED, Status.PARTIAL)


class HermiteRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """One hidden ReLU layer from samples; see :func:`revelu.learn`.

    Where the samples are too few, not Gaussian or not such a network's, it warns and
    predicts by the best fit found, or by an affine map.  It has one output;
    :class:`sklearn.multioutput.MultiOutputRegressor` makes one of these for each of several.

    Parameters
    ----------
    n_neurons : int, optional
    order : {"auto", 1, 2}
    max_searches : int
        Searches before it settles for the best fit.
    seed : int

    Attributes
    ----------
    network_ : Network
    recovery_ : Recovery or None
        None where no more than an affine map was tried.
    n_features_in_ : int
    """

    def __init__(
        self,
        n_neurons: int | None = None,
        order: str | int = "auto",
        max_searches: int = 10,
        seed: int = 0,
    ) -> None:
        self.n_neurons = n_neurons
        self.order = order
        self.max_searches = max_searches
        self.seed = seed

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from inputs ``(n, d)`` and outputs ``(n,)``."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        affine = _affine(X, y)
        self.recovery_: Recovery | None = None
        try:
            recovery = learn(
                X,
                y,
                n_neurons=self.n_neurons,
                order=self.order,
                seed=self.seed,
                max_searches=self.max_searches,
            )
        except InputError as error:
            self.network_ = affine
            warnings.warn(f"an affine map is used: {error}", stacklevel=2)
            return self
        self.recovery_, found = recovery, recovery.network
        if recovery.status in _KNOWN and found is not None:
            self.network_ = found
            return self
        nrmse = recovery.certificate.nrmse if recovery.certificate else np.inf
        wide = found is not None and nrmse**2 < _left(affine, X, y)
        self.network_ = found if wide and found is not None else affine
        warnings.warn(
            f"{'a fit that is not certified' if wide else 'an affine map'} is used: "
            f"{'; '.join(recovery.evidence)}",
            stacklevel=2,
        )
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predict outputs ``(n,)`` of inputs ``(n, d)``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.network_(X)[:, 0])


def _affine(X: FloatArray, y: FloatArray) -> Network:
    """The affine map nearest to the samples: a network without hidden neurons."""
    mean = X.mean(axis=0)
    v = np.linalg.lstsq(X - mean, y - y.mean(), rcond=None)[0]
    c = y.mean() - v @ mean
    d = X.shape[1]
    return Network([np.zeros((0, d)), np.zeros((1, 0))], [[], [c]], skip=(v[None], [0.0]))


def _left(network: Network, X: FloatArray, y: FloatArray) -> float:
    """Share of the variance that is left, what the fit has used up given back."""
    left = max(len(y) - X.shape[1] - 1, 1)
    variance = float(y.var())
    rest = float(np.sum((network(X)[:, 0] - y) ** 2) / left)
    return rest / variance if variance > 0 else np.inf
