"""What a user calls a target, as an oracle."""

import operator
import os
import re
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from revelu.adapters.demos import demo_path, demos
from revelu.adapters.modules import ModuleTarget
from revelu.adapters.onnx_runtime import OnnxTarget
from revelu.errors import InputError, UntrustedError
from revelu.network import load
from revelu.oracle import Oracle

_CALLABLE_HINT = "wrap the model in a Python callable and name it as module:attribute"

_PYTHON_FILE = re.compile(r"(?:.*[/\\])?(\w+)\.py(?::([\w.]+))?")
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

# Opening these unpickles, and unpickling runs whatever the file says.
_PICKLED = (".joblib", ".pkl", ".pickle", ".pt", ".pth")

# These hold weights only, without the graph that uses them.
_UNSUPPORTED = (".safetensors",)


def open_oracle(
    target: Any,
    dim_in: int | None = None,
    budget: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    box: tuple[float, float] | None = None,
    *,
    trust: bool = False,
    executor: Executor | None = None,
    max_seconds: float | None = None,
) -> Oracle:
    """Open a target.

    Parameters
    ----------
    target : Oracle, Network, callable, path or str
        A callable takes ``(n, d)`` to ``(n,)`` or ``(n, k)``.  A string is
        ``demo:NAME``, a path ending in ``.onnx`` or ``.npz``, or ``module:attribute``.
    dim_in : int, optional
        Number of inputs, where the target does not say.
    budget : int, optional
        Most queries that may ever be asked.
    journal : path, optional
        Not supported by this version.
    box : (lo, hi), optional
        Every coordinate of every query must lie in it.
    trust : bool
        Allow what executes code to be opened.
    executor : concurrent.futures.Executor, optional
        Where batches run.
    max_seconds : float, optional
        No batch is begun later than this after the first.

    Returns
    -------
    Oracle
        ``target`` itself if it is one.

    Raises
    ------
    InputError
        If the target is of no known kind or does not say its number of inputs.
    FormatError
        If its file cannot be read.
    UntrustedError
        If opening it would execute code and ``trust`` is not given.
    """
    if journal is not None:
        raise InputError("journals are not supported by this version")
    options = {"budget": budget, "box": box, "executor": executor, "max_seconds": max_seconds}
    if isinstance(target, Oracle):
        given = [name for name, value in {"dim_in": dim_in, **options}.items() if value is not None]
        if given:
            raise InputError(f"an oracle has its own {', '.join(given)}")
        return target
    name = str(target) if isinstance(target, str | os.PathLike) else type(target).__name__
    opened = _open_named(name, dim_in, trust) if isinstance(target, str | os.PathLike) else target
    return Oracle(opened, _dim_in(opened, name, dim_in), name=name, **options)  # type: ignore[arg-type]


def _open_named(name: str, dim_in: int | None, trust: bool) -> Any:
    if name.startswith("demo:"):
        return OnnxTarget(demo_path(name.removeprefix("demo:")))
    if name.startswith(("http://", "https://")):
        raise InputError(f"{name}: served models are not supported by this version")
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix in _PICKLED:
        if not trust:
            raise UntrustedError(
                f"{name}: opening it executes code, and {suffix} files are not supported by "
                f"this version either: {_CALLABLE_HINT}"
            )
        raise _unsupported(name, suffix)
    if suffix in _UNSUPPORTED:
        raise _unsupported(name, suffix)
    if suffix in {".onnx", ".npz"}:
        return OnnxTarget(path, dim_in) if suffix == ".onnx" else load(path)
    if (python_file := _PYTHON_FILE.fullmatch(name)) is not None:
        module, attribute = python_file.groups()
        raise InputError(
            f"{name}: a Python file is named by its module: write {module}:{attribute or 'NAME'}"
        )
    if _ATTRIBUTE.fullmatch(name):
        if not trust:
            raise UntrustedError(f"{name}: importing it executes code; --trust allows it")
        return ModuleTarget(name)
    meant = {"demo": "demo:digits", **{demo: f"demo:{demo}" for demo in demos()}}
    hint = f" (did you mean {meant[name]}?)" if name in meant else ""
    raise InputError(
        f"{name}: not a target{hint}; a target is demo:NAME, a file ending in .onnx or .npz, or "
        "module:attribute"
    )


def _unsupported(name: str, suffix: str) -> InputError:
    return InputError(f"{name}: {suffix} files are not supported by this version: {_CALLABLE_HINT}")


def _dim_in(target: Any, name: str, dim_in: int | None) -> int:
    if not callable(target):
        hint = "; pass its .predict" if hasattr(target, "predict") else ""
        raise InputError(f"{name} is not a target: neither a path nor callable{hint}")
    known = getattr(target, "dim_in", None)
    size = dim_in if known is None else known
    if size is None:
        raise InputError(f"{name} does not say how many inputs it has: give dim_in")
    if known is not None and dim_in is not None and known != dim_in:
        raise InputError(f"{name} has {known} inputs, not {dim_in}")
    try:
        return operator.index(size)
    except TypeError:
        raise InputError(f"{name}: dim_in must be a whole number, got {size!r}") from None
