"""Lost models: files of which the weights are read, against what the models themselves answered.

    python benchmarks/lost_models.py --fit FOLDER   in an environment of another scikit-learn
    python benchmarks/lost_models.py FOLDER...      read what was made there, and the layouts of
                                                    releases that do not install any more
    ... --write                                     and keep the table on its page

``--fit`` needs scikit-learn and joblib alone.
"""

import argparse
import io
import pickle
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import sklearn
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LassoCV,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

SEED = 16_100_000


class Fitted(NamedTuple):
    """A fitted model, with inputs and what it answers there."""

    name: str
    model: Any
    X: np.ndarray
    answers: np.ndarray


def fitted(seed: int = SEED, n: int = 200) -> Iterator[Fitted]:
    """Yield fitted models of every kind that is read."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 10, 3, 0.1, 2] + [0, 5, -20, 1, 2]
    y = X @ rng.normal(size=5) + np.sin(X[:, 0])
    three = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    two = y > np.median(y)
    words = np.array(["low", "middle", "high"])[three]
    table = np.column_stack([X, rng.integers(0, 4, n), rng.choice([1.5, 2.5, 7.0], n)])

    def network(kind: type = MLPClassifier, **more: Any) -> Any:
        return kind(hidden_layer_sizes=(8, 6), max_iter=30, random_state=seed % 2**31, **more)

    regressor = network(MLPRegressor)
    columns = ColumnTransformer(
        [
            ("scaled", StandardScaler(), [0, 1, 2]),
            ("classes", OneHotEncoder(handle_unknown="ignore"), [5, 6]),
            ("ranks", OrdinalEncoder(), slice(5, 7)),
        ],
        remainder="passthrough",
    )
    search = {"mlpregressor__alpha": [1e-3, 1e-2]}
    known: list[tuple[str, Any, np.ndarray, np.ndarray]] = [
        ("MLPRegressor", regressor, X, y),
        ("MLPClassifier of words", network(), X, words),
        ("MLPClassifier of two", network(solver="sgd"), X, two),
        ("MLPClassifier of labels", network(), X, np.column_stack([two, three == 1]).astype(int)),
        ("StandardScaler, MLP", make_pipeline(StandardScaler(), network()), X, three),
        (
            "SimpleImputer, MinMaxScaler, MLP",
            make_pipeline(SimpleImputer(), MinMaxScaler(), network(MLPRegressor)),
            X,
            y,
        ),
        (
            "MinMaxScaler that clips, MLP",
            make_pipeline(MinMaxScaler(feature_range=(0.1, 0.9)), network(MLPRegressor)),
            X,
            y,
        ),
        (
            "RobustScaler, PCA, MLP",
            make_pipeline(RobustScaler(), PCA(3, whiten=True), network(MLPRegressor)),
            X,
            y,
        ),
        ("MaxAbsScaler, logistic", make_pipeline(MaxAbsScaler(), LogisticRegression()), X, three),
        ("logistic of two", make_pipeline(StandardScaler(), LogisticRegression()), X, two),
        ("linear", LinearRegression(), X, y),
        ("ridge of two outputs", Ridge(), X, np.column_stack([y, -y])),
        ("lasso", LassoCV(), X, y),
        ("Poisson", PoissonRegressor(), X / 20, np.abs(y)),
        ("discriminant", LinearDiscriminantAnalysis(), X, three),
        ("perceptron", make_pipeline(StandardScaler(), SGDClassifier()), X, three),
        ("support vectors", make_pipeline(StandardScaler(), LinearSVC()), X, two),
        ("columns", make_pipeline(columns, network()), table, three),
        (
            "transformed target",
            TransformedTargetRegressor(
                make_pipeline(StandardScaler(), network(MLPRegressor)), transformer=StandardScaler()
            ),
            X,
            y,
        ),
        (
            "grid search",
            GridSearchCV(make_pipeline(StandardScaler(), network(MLPRegressor)), search, cv=2),
            X,
            y,
        ),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, inputs, outputs in known:
            if name.endswith("clips, MLP") and hasattr(MinMaxScaler(), "clip"):
                model.named_steps["minmaxscaler"].set_params(clip=True)
            model.fit(inputs, outputs)
            yield Fitted(name, model, inputs, answers_of(model, inputs))


def answers_of(model: Any, X: np.ndarray) -> np.ndarray:
    """Return what a model answers: probabilities, scores or predictions."""
    for method in ("predict_proba", "decision_function", "predict"):
        if hasattr(model, method):
            found = np.asarray(getattr(model, method)(X))
            return found if found.ndim == 2 else found[:, None]
    raise AssertionError(model)


def written(model: Any) -> Iterator[tuple[str, bytes]]:
    """Yield the ways in which a model is pickled: suffixes and contents."""
    for protocol in (0, 2, 3, 4, 5):
        yield f".{protocol}.pkl", pickle.dumps(model, protocol)
    for packed in (0, ("zlib", 3), ("gzip", 3), ("bz2", 3), ("lzma", 3), ("xz", 3)):
        buffer = io.BytesIO()
        joblib.dump(model, buffer, compress=packed)
        yield f".{packed[0] if packed else 'raw'}.joblib", buffer.getvalue()


def fit_into(folder: Path) -> None:
    """Write models and their answers, in an environment that need not have revelu."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "release.txt").write_text(f"{sklearn.__version__}, NumPy {np.__version__}")
    for i, found in enumerate(fitted()):
        np.savez(folder / f"{i}.npz", X=found.X, answers=found.answers)
        for suffix, content in written(found.model):
            (folder / f"{i}{suffix}").write_bytes(content)


def worst_of(path: Path, X: np.ndarray, answers: np.ndarray) -> float:
    """Return how far what is read differs from what the model answered, over the largest answer."""
    from revelu.adapters.open_models import open_read  # noqa: PLC0415 - not to be had where --fit runs

    off = np.abs(open_read(path)(X) - answers).max()
    return float(off / max(1.0, np.abs(answers).max()))


def of_folder(folder: Path) -> tuple[str, int, int, float]:
    """Read what :func:`fit_into` wrote: release, files, those not read, and the worst error."""
    n, n_failed, worst = 0, 0, 0.0
    for kept in sorted(folder.glob("*.npz")):
        held = np.load(kept)
        for path in sorted(folder.glob(f"{kept.stem}.*.*")):
            n += 1
            try:
                worst = max(worst, worst_of(path, held["X"], held["answers"]))
            except Exception as error:  # noqa: BLE001 - counted
                print(f"{path}: {error}")
                n_failed += 1
    return (folder / "release.txt").read_text(), n, n_failed, worst


def of_layouts() -> Iterator[tuple[str, int, int, float]]:
    """Read what older releases would have written."""
    from old_pickles import RELEASES, dumps, is_recorded, recorded  # noqa: PLC0415

    models = [found for found in fitted() if is_recorded(found.model)]
    for release in RELEASES:
        n, n_failed, worst = 0, 0, 0.0
        for found in models:
            for protocol in (0, 1, 2) if release.python == 2 else (0, 2, 3, 4):
                for packed in (False, True) if protocol > 1 else (False,):
                    made = dumps(recorded(found.model, release), release, protocol, packed=packed)
                    n += 1
                    with tempfile.TemporaryDirectory() as name:
                        path = Path(name) / "model.pkl"
                        path.write_bytes(made)
                        try:
                            worst = max(worst, worst_of(path, found.X, found.answers))
                        except Exception as error:  # noqa: BLE001 - counted
                            print(f"{release.version} {found.name}: {error}")
                            n_failed += 1
        yield f"{release.version}, Python {release.python} (its layout)", n, n_failed, worst


def small_pickles(suffix: str) -> list[bytes]:
    """Return small files from which mutants are made."""
    chosen = ("MLPRegressor", "StandardScaler, MLP", "columns", "logistic of two")
    found = [content for f in fitted(n=40) if f.name in chosen for content in written(f.model)]
    return [content for end, content in found if end.endswith(suffix)]


def table(rows: list[tuple[str, int, int, float]]) -> str:
    """Render the rows as Markdown."""
    lines = ["| scikit-learn | files | not read | largest difference |", "|---|---|---|---|"]
    lines += [f"| {name} | {n} | {failed} | {worst:.1e} |" for name, n, failed, worst in rows]
    return "\n".join([*lines, "", f"Seed {SEED:,}."])


def main() -> None:
    """Fit, or read and print, and perhaps keep the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="what --fit wrote elsewhere")
    parser.add_argument("--fit", type=Path, metavar="FOLDER", help="write models, and no more")
    parser.add_argument("--write", action="store_true", help="keep the table on its page")
    options = parser.parse_args()
    if options.fit is not None:
        fit_into(options.fit)
        return
    text = table([*of_layouts(), *map(of_folder, options.folders)])
    print(text)
    if options.write:
        from page import keep  # noqa: PLC0415

        keep("lost_models", text)


if __name__ == "__main__":
    main()
