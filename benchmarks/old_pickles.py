"""Pickles as releases that no longer install have written them, from the layouts of those releases.

A fitted model of today is laid out as an older release has it: the modules of its classes, the
attributes that they had, NumPy's and Python's names of the time, and joblib's arrays.
"""

import contextlib
import io
import pickle
import struct
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

NETWORKS = {"MLPClassifier", "MLPRegressor"}


class Release(NamedTuple):
    """How a release of scikit-learn writes.

    Attributes
    ----------
    version : str
    python : int
        Of those that it runs on, the one that writes.
    joblib : str
        Its module of joblib.
    aligned : bool
        Whether that joblib puts arrays at multiples of 16 bytes.
    private : bool
        Whether modules begin with an underscore, as since 0.22.
    """

    version: str
    python: int
    joblib: str
    aligned: bool
    private: bool


RELEASES = (
    Release("0.18.2", 2, "sklearn.externals.joblib.numpy_pickle", aligned=False, private=False),
    Release("0.18.2", 3, "sklearn.externals.joblib.numpy_pickle", aligned=False, private=False),
    Release("0.20.4", 2, "sklearn.externals.joblib.numpy_pickle", aligned=False, private=False),
    Release("0.22.2", 3, "joblib.numpy_pickle", aligned=False, private=True),
    Release("1.0.2", 3, "joblib.numpy_pickle", aligned=False, private=True),
)

_MODULES = {
    "MLPClassifier": "sklearn.neural_network.{}multilayer_perceptron",
    "MLPRegressor": "sklearn.neural_network.{}multilayer_perceptron",
    "StandardScaler": "sklearn.preprocessing.{}data",
    "MinMaxScaler": "sklearn.preprocessing.{}data",
    "SimpleImputer": "sklearn.impute.{}base",
    "Imputer": "sklearn.preprocessing.imputation",
    "LabelBinarizer": "sklearn.preprocessing.{}label",
    "LogisticRegression": "sklearn.linear_model.{}logistic",
    "LinearRegression": "sklearn.linear_model.{}base",
    "AdamOptimizer": "sklearn.neural_network._stochastic_optimizers",
    "SGDOptimizer": "sklearn.neural_network._stochastic_optimizers",
    "Pipeline": "sklearn.pipeline",
}


def recorded(found: Any, release: Release) -> Any:
    """Lay a fitted model out as a release has it."""
    if isinstance(found, list | tuple):
        return type(found)(recorded(part, release) for part in found)
    kind = type(found).__name__
    if kind not in _MODULES:
        return found
    is_old = release.version < "0.20" and not release.version.startswith("1")
    if kind == "SimpleImputer" and is_old:
        kind = "Imputer"
    state = {name: recorded(value, release) for name, value in vars(found).items()}
    # What came later: the columns since 0.24, request of metadata since 1.3.
    if release.version < "1":
        state.pop("n_features_in_", None)
        state.pop("feature_names_in_", None)
    if kind == "Imputer":
        kept = {name: state[name] for name in ("strategy", "statistics_", "copy")}
        state = {**kept, "missing_values": "NaN", "axis": 0, "verbose": 0}
    if kind == "LogisticRegression":
        is_several = len(found.classes_) > 2
        by_release = "auto" if release.version >= "0.22" else "multinomial" if is_several else "ovr"
        state.update(multi_class=by_release, solver="lbfgs")
    if kind in NETWORKS:
        state["_random_state"] = np.random.RandomState(0)
    made = _stub(_MODULES[kind].format("_" * release.private), kind)()
    made.__dict__.update(state, _sklearn_version=release.version)
    return made


_STUBS: dict[tuple[str, str], type] = {}


def _stub(module: str, kind: str) -> type:
    """Make a class that pickles under another name; the same one each time."""
    if (module, kind) not in _STUBS:
        _STUBS[module, kind] = type(kind, (), {"__module__": module})
    return _STUBS[module, kind]


@contextlib.contextmanager
def _stubs_importable() -> Iterator[None]:
    """Let a pickler find the stubs where they say that they are."""
    before: dict[str, ModuleType | None] = {}
    for (module, kind), stub in _STUBS.items():
        if module not in before:
            before[module] = sys.modules.get(module)
            sys.modules[module] = ModuleType(module)
        setattr(sys.modules[module], kind, stub)
    try:
        yield
    finally:
        for module, held in before.items():
            if held is None:
                del sys.modules[module]
            else:
                sys.modules[module] = held


class _Python2(pickle._Pickler):  # type: ignore[name-defined]  # noqa: SLF001 - written in Python
    """Writes strings and bytes as Python 2 did, which had one kind of both."""

    dispatch = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]  # noqa: RUF012, SLF001

    def _save_string(self, text: Any) -> None:
        content = text.encode("latin-1") if isinstance(text, str) else text
        if self.proto:
            self.write(b"T" + struct.pack("<i", len(content)) + content)
        else:
            escaped = repr(content)[1:].encode("ascii")
            self.write(b"S" + escaped + b"\n")
        self.memoize(text)

    dispatch[str] = dispatch[bytes] = _save_string


def dumps(found: Any, release: Release, protocol: int = 2, *, packed: bool = False) -> bytes:
    """Pickle what :func:`recorded` has laid out.

    Parameters
    ----------
    protocol : int
        0 to 2 of Python 2, to 4 of Python 3.
    packed : bool
        By joblib's way, with the numbers of arrays behind what describes them.
    """
    buffer = io.BytesIO()
    with _stubs_importable():
        if packed:
            _joblib(buffer, release, protocol).dump(found)
        elif release.python == 2:
            _Python2(buffer, protocol).dump(found)
        else:
            pickle.Pickler(buffer, protocol).dump(found)
    content = buffer.getvalue()
    # Names that end with a line, or have their length before them.
    old, new = b"numpy.core.multiarray", b"numpy._core.multiarray"
    content = content.replace(new + b"\n", old + b"\n")
    content = content.replace(b"\x8c\x16" + new, b"\x8c\x15" + old)
    name = b"joblib.numpy_pickle"
    return content.replace(b"c" + name, b"c" + release.joblib.encode())


def _joblib(buffer: io.BytesIO, release: Release, protocol: int) -> Any:
    from joblib.numpy_pickle import NumpyPickler  # noqa: PLC0415 - only what packs needs it

    class Old(NumpyPickler):  # type: ignore[misc]
        def _create_array_wrapper(self, array: Any) -> Any:
            wrapper = super()._create_array_wrapper(array)
            if not release.aligned:
                del wrapper.numpy_array_alignment_bytes
            return wrapper

    return Old(buffer, protocol=protocol)


def is_recorded(found: Any) -> bool:
    """Whether the layout of a model is known of older releases."""
    if isinstance(found, list | tuple):
        return all(map(is_recorded, found))
    if not hasattr(found, "get_params"):
        return True
    return type(found).__name__ in _MODULES and all(
        is_recorded(value) for value in vars(found).values()
    )
