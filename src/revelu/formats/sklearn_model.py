"""Fitted models of scikit-learn, read from a pickle without scikit-learn and without running it.

What is read: multi-layer perceptrons and linear models of every release since 0.18, behind scalers,
imputers, encoders of numbers, and pipelines of them.
"""

from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.formats.array_pickle import ArrayMachine, unpacked, value_of
from revelu.formats.arrays import check_is_file, naming_damage
from revelu.formats.column_maps import ColumnMap
from revelu.formats.open_model import LayerChain, OpenModel
from revelu.formats.pickled import Record
from revelu.formats.sklearn_steps import columns_of, is_skipped, joined, width_of

__all__ = ["read"]

_LINEAR = {
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV"),
    *("MultiTaskLasso", "MultiTaskLassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV"),
    *("Lars", "LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "OrthogonalMatchingPursuit"),
    *("BayesianRidge", "ARDRegression", "HuberRegressor", "TheilSenRegressor", "QuantileRegressor"),
    *("SGDRegressor", "PassiveAggressiveRegressor", "LinearSVR"),
}
_EXPONENTIAL = {"PoissonRegressor", "GammaRegressor"}
_LINEAR_CLASSES = {
    *("LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "Perceptron", "LinearSVC"),
    *("PassiveAggressiveClassifier", "RidgeClassifier", "RidgeClassifierCV"),
    "LinearDiscriminantAnalysis",
}
_NETWORKS = {"MLPClassifier", "MLPRegressor"}
_SEARCHES = {"GridSearchCV", "RandomizedSearchCV"}
_LOSSES = {
    *("Hinge", "SquaredHinge", "Log", "ModifiedHuber", "SquaredLoss", "Huber", "Regression"),
    *("Classification", "EpsilonInsensitive", "SquaredEpsilonInsensitive", "LossFunction"),
    *("HalfSquaredError", "HalfPoissonLoss", "HalfGammaLoss", "HalfBinomialLoss", "IdentityLink"),
    *("LogLink", "LogitLink", "Interval", "CyHalfSquaredError", "CyHalfPoissonLoss"),
    *("CyHalfGammaLoss", "CyHalfBinomialLoss", "CyHuberLoss", "CyHalfMultinomialLoss"),
}
# Of which modules, by their first parts, which classes are known: of all of them a record is made.
_CLASSES = {
    "sklearn.neural_network": frozenset({*_NETWORKS, "AdamOptimizer", "SGDOptimizer"}),
    "sklearn.linear_model": frozenset(_LINEAR | _EXPONENTIAL | _LINEAR_CLASSES | _LOSSES),
    "sklearn.discriminant_analysis": frozenset({"LinearDiscriminantAnalysis"}),
    "sklearn.svm": frozenset({"LinearSVC", "LinearSVR"}),
    "sklearn.preprocessing": frozenset(
        {
            *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Imputer"),
            *("OneHotEncoder", "OrdinalEncoder", "LabelEncoder", "LabelBinarizer"),
            "FunctionTransformer",
        }
    ),
    "sklearn.impute": frozenset({"SimpleImputer", "MissingIndicator"}),
    "sklearn.feature_selection": frozenset({"VarianceThreshold"}),
    "sklearn.decomposition": frozenset({"PCA"}),
    "sklearn.pipeline": frozenset({"Pipeline"}),
    "sklearn.compose": frozenset(
        {
            *("ColumnTransformer", "TransformedTargetRegressor"),
            *("_RemainderColsList", "make_column_selector"),
        }
    ),
    "sklearn.model_selection": frozenset({*_SEARCHES, "StratifiedKFold", "KFold"}),
    "sklearn.metrics": frozenset({"_PassthroughScorer", "_passthrough_scorer"}),
    "sklearn.loss": frozenset(_LOSSES),
    "loss": frozenset(_LOSSES),  # of 1.6, whose module says no more
    "sklearn.utils": frozenset({"Bunch", "MetadataRequest", "MethodMetadataRequest"}),
}
_HEADS = {"identity": "none", "softmax": "softmax", "logistic": "logit", "exp": "log"}
_SCORES = "its answers are the scores of decision_function, and no probabilities"


def read(path: Path, activation: str | None = None) -> OpenModel:  # noqa: ARG001 - it says its own
    """Read a fitted model; nothing that the file says is run.

    Raises
    ------
    FormatError
        If it is damaged, or of a kind that is no network of ReLUs.
    UntrustedError
        If it names what is not on the list.
    """
    check_is_file(path)
    with naming_damage(path, "pickle"):
        content = unpacked(path, path.read_bytes())
        found = value_of(ArrayMachine(path, content, _CLASSES).run())
        if isinstance(found, Record) and found.kind in _SEARCHES:
            found = value_of(found.get("best_estimator_"))
        if not isinstance(found, Record) or not isinstance(found.state, dict):
            raise FormatError(f"{path}: holds no fitted model, but {_kind_of(found)}")
        with np.errstate(all="ignore"):  # what is not finite is refused
            return _EstimatorReader(path, found).model()


def _kind_of(found: Any) -> str:
    return found.kind if isinstance(found, Record) else f"a {type(found).__name__}"


class _EstimatorReader:
    """Puts a chain of layers together from the record of a model.

    Parameters
    ----------
    path : pathlib.Path
    found : Record
    most_steps : int
        Of a pipeline.
    most_inputs : int
        What a file says of its columns, it has no bytes for: a network of more is none of tables.
    """

    def __init__(
        self, path: Path, found: Record, most_steps: int = 100, most_inputs: int = 2**20
    ) -> None:
        self.path, self.found = path, found
        self.notes: list[str] = []
        self.head, self.classes = "none", tuple[str | int | float, ...]()
        steps: list[Any] = [found]
        target = None
        if found.kind == "TransformedTargetRegressor":
            target, steps = found.get("transformer_"), [found.get("regressor_")]
        for _ in range(most_steps):  # a pipeline may end in a pipeline, even in itself
            if isinstance(steps[-1], Record) and steps[-1].kind == "Pipeline":
                steps[-1:] = [step for _, step in steps[-1].get("steps", ())] or [None]
        if len(steps) > most_steps:
            raise FormatError(f"{path}: a pipeline of over {most_steps} steps")
        *before, self.last = steps
        self.before = [step for step in before if not is_skipped(step)]
        self.target = target
        if not isinstance(self.last, Record) or self.last.kind not in _ENDS:
            raise FormatError(
                f"{path}: ends in {_kind_of(self.last)}, which is no network or linear model"
            )
        self.weights = [np.asarray(W) for W in self._arrays("coefs_")]
        if not self.weights:
            coefficients = np.asarray(value_of(self.last.get("coef_")))
            if coefficients.dtype.kind != "f" or coefficients.ndim not in {1, 2}:
                raise FormatError(f"{path}: {self.last.kind} is not fitted, or its weights sparse")
            self.weights = [np.atleast_2d(coefficients).T]
        width = self._width()
        if not 0 < width <= most_inputs:
            raise FormatError(f"{path}: reads {width:,} columns")
        self.chain = LayerChain.of_file(path, (width,))

    def _arrays(self, name: str) -> list[Any]:
        held = self.last.get(name, [])
        return [value_of(a) for a in held] if isinstance(held, list) else []

    def _width(self) -> int:
        """How many columns it reads."""
        for step in (self.found, *self.before):
            known = width_of(step) if isinstance(step, Record) else None
            if known is not None:
                return known
        if any(step.kind in {"ColumnTransformer", "PCA"} for step in self.before):
            named = value_of(self.before[0].get("_n_features"))
            if isinstance(named, int):
                return named
            raise FormatError(f"{self.path}: nothing says how many columns it reads")
        return len(self.weights[0])

    def model(self) -> OpenModel:
        """Return what it is."""
        self._read_steps()
        _ENDS[self.last.kind](self)
        if self.target is not None:
            self._back_to_units(self.target)
        chain, found = self.chain, self.found
        version = found.get("_sklearn_version") or self.last.get("_sklearn_version")
        kinds = [step.kind for step in (*self.before, self.last)]
        words = " behind ".join(reversed(kinds)) if len(kinds) < 4 else f"Pipeline of {len(kinds)}"
        names = value_of(found.get("feature_names_in_"))
        if names is None and self.before:
            names = value_of(self.before[0].get("feature_names_in_"))
        nodes = chain.end()
        return OpenModel(
            f"{words} of scikit-learn" + (f" {version}" if isinstance(version, str) else ""),
            chain.row,
            nodes,
            chain.scaling,
            self.head,
            self.classes,
            tuple(f"{name}" for name in names) if isinstance(names, np.ndarray) else (),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _read_steps(self) -> None:
        """Put what comes before the model in front of it."""
        columns: ColumnMap | None = ColumnMap.same(self.chain.size)
        for step in self.before:
            if isinstance(step, Record) and step.kind == "PCA":
                self._put(columns)
                self._project(step)
                columns = None
                continue
            here = ColumnMap.same(self.chain.size) if columns is None else columns
            columns = joined(here, columns_of(step, here.m, self.chain, self.notes), self.chain)
        self._put(columns)

    def _put(self, columns: ColumnMap | None) -> None:
        if columns is None:
            return
        chain = self.chain
        if columns.is_scaling:
            if (columns.s != 1.0).any() or columns.t.any():
                chain.scale(columns.s, columns.t)
            return
        if columns.m < 1:
            chain.refuse("its steps leave no column")
        chain.reserve(columns.m * columns.d)
        A = columns.matrix()
        if not columns.hinges:
            chain.dense(A, columns.t)
            return
        # Behind a layer of ReLUs a column is what it is: x = relu(x) - relu(-x).
        kept = np.flatnonzero(A.any(axis=0))
        outputs, knots, weights = (np.array(part) for part in zip(*columns.hinges, strict=True))
        knots, n, d = chain.numbers(knots), len(knots), columns.d
        chain.reserve((n + 2 * len(kept)) * (d + columns.m))
        unit, C = np.zeros((len(kept), d)), np.zeros((n, d))
        unit[np.arange(len(kept)), kept] = 1.0
        C[np.arange(n), columns.picks[outputs]] = 1.0
        B = np.zeros((columns.m, n))
        B[outputs, np.arange(n)] = weights
        zeros = np.zeros(len(kept))
        chain.dense(np.vstack([C, unit, -unit]), np.concatenate([-knots, zeros, zeros]))
        chain.unit("Relu")
        chain.dense(np.hstack([B, A[:, kept], -A[:, kept]]), columns.t)

    def _project(self, step: Record) -> None:
        chain = self.chain
        V = chain.numbers(value_of(step.get("components_")), 2)
        if step.get("whiten", False):
            V = V / np.sqrt(chain.numbers(value_of(step.get("explained_variance_")), 1))[:, None]
        held = value_of(step.get("mean_"))
        mean = np.zeros(V.shape[1]) if held is None else chain.numbers(held, 1)
        chain.dense(V, -(V @ mean))

    def _back_to_units(self, step: Any) -> None:
        """Undo the scaling of what was learnt."""
        columns = columns_of(step, self.chain.size, self.chain, self.notes)
        if self.head != "none" or not columns.is_scaling:
            self.chain.refuse("what it learnt is transformed by more than a scaling")
        self.chain.scale(1.0 / columns.s, -columns.t / columns.s)

    def network(self) -> None:
        """Read a multi-layer perceptron."""
        chain, last = self.chain, self.last
        biases = self._arrays("intercepts_")
        if not biases or len(biases) != len(self.weights):
            chain.refuse("a perceptron whose weights and biases are not as many")
        activation = last.get("activation")
        if activation not in {"relu", "identity"}:
            chain.refuse(f"{activation!r:.20} is between its layers: no network of ReLUs")
        for i, (W, b) in enumerate(zip(self.weights, biases, strict=True)):
            if i and activation == "relu":
                chain.unit("Relu")
            chain.dense(chain.numbers(W, 2).T, chain.numbers(b, 1))
        head = last.get("out_activation_", "identity")
        if head not in _HEADS:
            chain.refuse(f"{head!r:.20} is behind its layers")
        self.head = _HEADS[head]
        if last.kind == "MLPClassifier":
            self.classes = _classes(last)
            binarizer = last.get("_label_binarizer")
            kind = binarizer.get("y_type_", "") if isinstance(binarizer, Record) else ""
            if self.head == "logit" and not f"{kind}".startswith("multilabel"):
                self.two_classes(1.0)

    def two_classes(self, factor: float) -> None:
        """Make of one logit those of both classes, of which the last is 0."""
        if self.chain.size != 1:
            self.chain.refuse(f"{self.chain.size} outputs for two classes")
        self.chain.dense(np.array([[-factor], [0.0]]), np.zeros(2))
        self.head = "softmax"

    def _affine(self) -> None:
        W = self.chain.numbers(self.weights[0]).T
        b = self.chain.numbers(value_of(self.last.get("intercept_", 0.0)))
        k = len(W)
        self.chain.dense(W, np.broadcast_to(b.reshape(-1), (k,)).copy())

    def linear(self) -> None:
        """Read a linear model of quantities."""
        self._affine()
        if self.last.kind in _EXPONENTIAL:
            self.head = "log"

    def linear_classes(self) -> None:
        """Read a linear model of classes, with its probabilities where it has any."""
        self._affine()
        last, k = self.last, self.chain.size
        self.classes = _classes(last)
        if last.kind.startswith("LogisticRegression"):
            if k == 1:
                self.two_classes(2.0 if self._is_doubled() else 1.0)
            elif self._is_multinomial():
                self.head = "softmax"
        elif last.kind == "LinearDiscriminantAnalysis":
            if k == 1:
                self.two_classes(1.0)
            elif self._release() >= (0, 22):
                self.head = "softmax"
        elif last.kind == "SGDClassifier" and last.get("loss") in {"log", "log_loss"} and k == 1:
            self.two_classes(1.0)
        if self.head == "none":
            self.notes.append(_SCORES)

    def _release(self) -> tuple[int, ...]:
        version = self.last.get("_sklearn_version")
        found = [part for part in f"{version}".split(".")[:2] if part.isdecimal()]
        return tuple(int(part) for part in found) or (0, 18)

    def _is_doubled(self) -> bool:
        """Whether two classes have the softmax of ``(-z, z)``."""
        return bool(self.last.get("multi_class") == "multinomial" and self._release() >= (0, 20))

    def _is_multinomial(self) -> bool:
        """Whether several classes have a softmax, and not sigmoids of their own."""
        said = self.last.get("multi_class", "auto")
        if said in {"auto", "deprecated"}:
            return bool(self.last.get("solver") != "liblinear")
        return bool(said == "multinomial")


def _classes(found: Record) -> tuple[str | int | float, ...]:
    """The names or numbers of classes."""
    held = value_of(found.get("classes_"))
    if held is None and isinstance(found.get("_label_binarizer"), Record):
        held = value_of(found.get("_label_binarizer").get("classes_"))
    if not isinstance(held, np.ndarray) or held.ndim != 1 or len(held) > 2**16:
        return ()
    return tuple(v if isinstance(v, str | int | float) else f"{v}" for v in held.tolist())


_ENDS = {
    **dict.fromkeys(_NETWORKS, _EstimatorReader.network),
    **dict.fromkeys(_LINEAR | _EXPONENTIAL, _EstimatorReader.linear),
    **dict.fromkeys(_LINEAR_CLASSES, _EstimatorReader.linear_classes),
}
