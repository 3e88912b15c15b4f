"""What a user calls a target, as an oracle."""

import hashlib
import os
import re
import sys
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from revelu.adapters.demos import demo_path, demos
from revelu.adapters.endpoints import Endpoint, read_profile
from revelu.adapters.endpoints.opening import open_endpoint
from revelu.adapters.estimators import EstimatorTarget, is_estimator, load_estimator
from revelu.adapters.modules import ModuleTarget
from revelu.adapters.onnx_runtime import OnnxTarget
from revelu.adapters.remote import RemoteTarget
from revelu.errors import InputError, UntrustedError
from revelu.network import Network, load
from revelu.oracle import BATCH_ROWS, Domain, Journal, Oracle, agreed_dim_in, whole_number

_CALLABLE_HINT = "wrap the model in a Python callable and name it as module:attribute"

_ADDRESSES = ("http://", "https://")

_PYTHON_FILE = re.compile(r"(?:.*[/\\])?(\w+)\.py(?::([\w.]+))?")
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")

# Opening these files unpickles them, which executes what they say.
_PICKLED = (".joblib", ".pkl", ".pickle")

# Named arrays make a network; a state dict of anything else is opened only with trust.
_ARRAYS = (".npz", ".safetensors")
_STATES = (".pt", ".pth")


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
    batch: int | None = None,
    input_name: str | None = None,
    output_name: str | None = None,
    rate: str | None = None,
    domain: Domain | None = None,
    suggested: bool = False,
    remote: bool = False,
) -> Oracle:
    """Open a target.

    Parameters
    ----------
    target : Oracle, Network, Endpoint, callable, path or str
        A callable takes ``(n, d)`` to ``(n,)`` or ``(n, k)``; torch modules and fitted
        scikit-learn models are such.  A string is ``demo:NAME``, a path ending in ``.onnx``,
        ``.npz``, ``.safetensors``, ``.pt``, ``.pth`` or ``.joblib``, ``module:attribute``, the
        address ``http(s)://...`` of a server that it tells (``/v2/models/NAME``, for instance), or
        a ``.toml`` file that describes an :class:`revelu.Endpoint`.
    dim_in : int, optional
        Number of inputs, where the target does not say.
    budget : int, optional
        Most queries that may ever be asked.
    journal : path, optional
        A file that has every answer before it is used; a run that is begun again with it
        asks nothing twice, and its budget counts all runs.  Close the oracle (it is a
        context manager) to let another one have the file.
    box : (lo, hi), optional
        Every coordinate of every query must lie in it.
    trust : bool
        Allow what executes code to be opened.
    executor : concurrent.futures.Executor, optional
        Where batches run.
    max_seconds : float, optional
        No batch is begun later than this after the first.
    batch : int, optional
        Most rows of one request; 1,024 where not given.
    input_name, output_name : str, optional
        Tensors of a served model, where it does not name them, or has several outputs.
    rate : str, optional
        Most requests to an endpoint, or calls of a remote target, such as ``"50/s"``.
    domain : Domain, optional
        Where it is asked: rows are then coordinates of the domain.
    suggested : bool
        Without a domain or a box, take the one that the target itself suggests: that of a scaler
        which it begins with.
    remote : bool
        The target, a callable for instance, asks elsewhere: it is asked as an endpoint is, at a
        ``rate``, with eight rows again now and then, and of an audit no more than one attack.

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
    TargetError
        If a served model cannot be reached, or is not one vector in.
    UntrustedError
        If opening it would execute code and ``trust`` is not given.
    """
    names = {"input_name": input_name, "output_name": output_name}
    options: dict[str, Any] = {
        "budget": budget,
        "box": box,
        "domain": domain,
        "executor": executor,
        "max_seconds": max_seconds,
    }
    if isinstance(target, Oracle):
        own = {"dim_in": dim_in, "journal": journal, "batch": batch, "rate": rate, **options}
        given = [name for name, value in {**own, **names}.items() if value is not None]
        if given or remote:
            raise InputError(f"an oracle has its own {', '.join(given or ['remote'])}")
        return target
    endpoint = _endpoint(target)
    is_named = isinstance(target, str | os.PathLike)
    name = endpoint.url if endpoint else str(target) if is_named else type(target).__name__
    if endpoint is not None:
        size = domain.dim_target if dim_in is None and domain is not None else dim_in
        opened: Any = open_endpoint(endpoint, size, rate=rate, **names)
    else:
        _refuse_served(name, rate=None if remote else rate, **names)
        opened = open_target(name, dim_in, trust=trust) if is_named else _wrapped(target, dim_in)
    if suggested and domain is None and box is None:
        options["domain"] = getattr(opened, "suggested_domain", None)
    rows = getattr(opened, "batch_rows", None) or BATCH_ROWS
    oracle = Oracle(
        RemoteTarget(opened, rate) if remote and endpoint is None else opened,
        _dim_in(opened, name, dim_in),
        name=name,
        batch_rows=rows if batch is None else whole_number("batch", batch, 1),
        is_remote=remote or endpoint is not None,
        client=getattr(opened, "client", None) if endpoint is not None else None,
        **options,
    )
    if journal is not None:
        oracle.keep(Journal(journal), target=name, **_facts_of(opened))
    return oracle


def _endpoint(target: Any) -> Endpoint | None:
    """What is behind an address; None where the target is something else."""
    if isinstance(target, Endpoint):
        return target
    if not isinstance(target, str | os.PathLike):
        return None
    name = str(target)
    if name.startswith(_ADDRESSES):
        return Endpoint(name)
    return read_profile(name) if name.lower().endswith(".toml") else None


def _refuse_served(name: str, **options: str | None) -> None:
    for option in (option for option, value in options.items() if value is not None):
        raise InputError(f"{option} is for served models, which {name} is not")


def open_target(name: str, dim_in: int | None = None, *, trust: bool = False) -> Any:
    """Open what a name other than an address stands for: a callable, (n, d) -> (n,) or (n, k).

    Arguments and errors are those of :func:`open_oracle`.
    """
    if name.startswith("demo:"):
        return OnnxTarget(demo_path(name.removeprefix("demo:")))
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix in _PICKLED:
        return _unpickled(path, suffix, trust=trust)
    if suffix in _STATES:
        return _module(path, dim_in, trust=trust)
    if suffix == ".onnx":
        return OnnxTarget(path, dim_in)
    if suffix in _ARRAYS:
        return load(path)
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
        f"{name}: not a target{hint}; a target is demo:NAME, a file ending in .onnx, .npz, "
        ".safetensors, .pt, .pth, .joblib or .toml, module:attribute, or an address http(s)://..."
    )


def _unpickled(path: Path, suffix: str, *, trust: bool) -> Any:
    """A scikit-learn model, which joblib has pickled."""
    unsupported = f"{suffix} files are not supported by this version: {_CALLABLE_HINT}"
    if not trust:
        hint = "--trust allows it" if suffix == ".joblib" else unsupported
        raise UntrustedError(f"{path}: opening it executes code; {hint}")
    if suffix != ".joblib":
        raise InputError(f"{path}: {unsupported}")
    return EstimatorTarget(load_estimator(path))


def _module(path: Path, dim_in: int | None, *, trust: bool) -> Any:
    """A network that revelu wrote as a state dict, or a pickled torch module."""
    try:
        return load(path)
    except UntrustedError as error:
        if not trust:
            raise UntrustedError(f"{error}; --trust allows it") from None
    from revelu.adapters.torch_modules import TorchTarget, load_module  # noqa: PLC0415 - optional

    return TorchTarget(load_module(path), dim_in)


def _wrapped(target: Any, dim_in: int | None) -> Any:
    """A target given as an object: what frameworks have, as a callable on arrays."""
    # An object of a framework exists only if the framework has been imported.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(target, torch.nn.Module):
        from revelu.adapters.torch_modules import TorchTarget  # noqa: PLC0415 - optional

        return TorchTarget(target, dim_in)
    return EstimatorTarget(target) if is_estimator(target) else target


def _facts_of(target: Any) -> dict[str, str]:
    """What decides the answers of a target, by name; nothing of a callable."""
    if isinstance(target, Network):
        digest = hashlib.sha256()
        for array in target.arrays:
            digest.update(f"{array.shape}".encode() + array.tobytes())
        return {"weights": digest.hexdigest()}
    facts = getattr(target, "facts", None)
    return facts if isinstance(facts, dict) else {}


def _dim_in(target: Any, name: str, dim_in: int | None) -> int:
    if not callable(target):
        hint = "; pass its .predict" if hasattr(target, "predict") else ""
        raise InputError(f"{name} is not a target: neither a path nor callable{hint}")
    return agreed_dim_in(name, getattr(target, "dim_in", None), dim_in)
