"""What a user calls a target, as an oracle."""

import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from difflib import get_close_matches
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

from revelu.adapters.callables import ShapedCallable
from revelu.adapters.demos import demo_path, demos
from revelu.adapters.endpoints import Endpoint, read_profile
from revelu.adapters.endpoints.opening import open_endpoint
from revelu.adapters.estimators import EstimatorTarget, is_estimator
from revelu.adapters.files import SUFFIXES, is_file_of_a_model, open_file
from revelu.adapters.modules import ModuleTarget
from revelu.adapters.onnx_runtime import OnnxTarget
from revelu.adapters.pace import requests_within
from revelu.adapters.ports import Ports, image_in_words, image_of_row, image_shape
from revelu.adapters.remote import RemoteTarget
from revelu.errors import InputError, UntrustedError
from revelu.network import Network
from revelu.oracle import BATCH_ROWS, Domain, Journal, Oracle, agreed_dim_in, whole_number
from revelu.oracle.asking import workers_of

_ADDRESSES = ("http://", "https://")

_PYTHON_FILE = re.compile(r"(?:.*[/\\])?(\w+)\.py(?::([\w.]+))?")
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


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
    input_shape: str | Sequence[int] | None = None,
    activation: str | None = None,
    fixed: Any = None,
    domain: Domain | None = None,
    suggested: bool = False,
    remote: bool = False,
    image: str | Sequence[int] | None = None,
    link: str = "auto",
    classes: Sequence[str] = (),
) -> Oracle:
    """Open a target.

    Parameters
    ----------
    target : Oracle, Network, Endpoint, callable, path or str
        A callable takes ``(n, d)`` to ``(n,)`` or ``(n, k)``; torch modules and fitted
        scikit-learn models are such.  A string is ``demo:NAME``, a path ending in ``.onnx``,
        ``.npz``, ``.safetensors``, ``.pt``, ``.pth``, ``.skops``, ``.joblib`` or ``.pkl``, a
        folder of MLflow's or of Hugging Face's hub, ``module:attribute``, the address
        ``http(s)://...`` of a server that it tells (``/v2/models/NAME``, for instance), or a
        ``.toml`` file that describes an :class:`revelu.Endpoint`.
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
        Most rows of one request; 1,024 where not given, and then, unless there is a ``rate``, a
        round is shared out evenly among the workers of an executor.  What rows are answered
        together may move the last bits of answers: with a number, it does not depend on workers.
    input_name, output_name : str, optional
        What is asked and read of a model that has several inputs or outputs, or that does not
        name them: tensors, keys, or a method of a scikit-learn model.  Inputs joined by commas
        vary together.
    rate : str, optional
        Most requests to an endpoint, or calls of a remote target, such as ``"50/s"``.
    input_shape : str or sequence of int, optional
        Shape of one row of a file, a module or a callable, such as ``"1x8x8"``, where it is no
        vector and the model does not say it.
    activation : str, optional
        What is between the layers of a state dict that revelu did not write: ``"relu"``.
    fixed : mapping or path, optional
        Where inputs or columns stay that do not vary: arrays by name, or the file of a table
        or an archive of them.  Otherwise at zero, or at what is typical.
    domain : Domain, optional
        Where it is asked: rows are then coordinates of the domain.
    suggested : bool
        Without a domain or a box, take the one that the target itself suggests: that of a scaler
        which it begins with.
    remote : bool
        The target, a callable for instance, asks elsewhere: it is asked as an endpoint is, at a
        ``rate``, with eight rows again now and then, and of an audit no more than one attack.
    image : str or sequence of int, optional
        Height, width and channels, such as ``"28x28x1"``, where a row is an image, channel by
        channel, and the target does not say so itself.
    link : str
        What undoes the target's head: ``auto`` looks for it, ``none`` takes answers as they are;
        ``logit``, ``softmax``, ``log-softmax``, ``log``, ``log1p`` and ``atanh`` may have a scale,
        as ``logit*100`` of per cent.
    classes : sequence of str
        Names of the classes that the target answers, in the order in which they are numbered; an
        endpoint has its own.

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
    shape = None if image is None else image_shape(image)
    filed = {"input_shape": input_shape, "activation": activation, "fixed": fixed}
    options: dict[str, Any] = {
        "budget": budget,
        "box": box,
        "domain": domain,
        "executor": executor,
        "max_seconds": max_seconds,
    }
    if isinstance(target, Oracle):
        own: dict[str, Any] = {"dim_in": dim_in, "journal": journal, "batch": batch, "rate": rate}
        own |= {**options, **names, **filed}
        own |= {"image": shape}
        own |= {"link": None if link == "auto" else link, "classes": classes or None}
        given = [name for name, value in own.items() if value is not None]
        if given or remote:
            raise InputError(f"an oracle has its own {', '.join(given or ['remote'])}")
        return target
    endpoint = _endpoint(target)
    is_named = isinstance(target, str | os.PathLike)
    name = endpoint.name if endpoint else str(target) if is_named else type(target).__name__
    # Data that a domain is like, and an image, tell how many inputs a target has.
    size = domain.dim_target if dim_in is None and isinstance(domain, Domain) else dim_in
    size = _size(size, dim_in, shape)
    if isinstance(classes, str) or not all(isinstance(one, str) for one in classes):
        raise InputError(f"classes must be a list of names, got {classes!r}")
    if endpoint is not None:
        _refuse({"classes": classes or None}, f"of {name} are those of its Endpoint")
        _refuse(filed, f"is for files, modules and callables, which {name} is not")
        opened: Any = open_endpoint(endpoint, size, rate=rate, **names)
    else:
        _refuse({"rate": None if remote else rate}, f"is for served models, which {name} is not")
        opened = _opened(target, dim_in, Ports.said(**filed, **names, image=shape), trust=trust)
    if suggested and domain is None and box is None:
        options["domain"] = getattr(opened, "suggested_domain", None)
    elif isinstance(domain, Domain):
        options["domain"] = domain.in_order_of(getattr(opened, "column_names", ()))
    rows = getattr(opened, "batch_rows", None) or BATCH_ROWS
    oracle = Oracle(
        RemoteTarget(opened, rate) if remote and endpoint is None else opened,
        _dim_in(opened, name, dim_in if getattr(opened, "dim_in", None) else size),
        name=name,
        batch_rows=rows if batch is None else whole_number("batch", batch, 1),
        # Rounds are cut by who asks, unless it is said how, or requests are what is scarce.
        parts=workers_of(executor) if batch is None and rate is None else 1,
        is_remote=remote or endpoint is not None,
        client=getattr(opened, "client", None) if endpoint is not None else None,
        image=shape or image_of_row(getattr(opened, "row", None)),
        classes=tuple(classes) if endpoint is None else endpoint.classes,
        link=link,
        **options,
    )
    oracle.check_requests = requests_within(
        endpoint.rate if rate is None and endpoint is not None else rate, oracle.check_requests
    )
    if endpoint is not None and endpoint.poll is not None:
        oracle.check_requests = 1  # a job costs seconds
    if journal is not None:
        oracle.keep(Journal(journal), target=name, **_facts_of(opened))
    return oracle


def _size(size: int | None, dim_in: int | None, image: tuple[int, int, int] | None) -> int | None:
    """The number of inputs as far as it is said; an image says it, too."""
    if image is None:
        return size
    if dim_in not in {None, prod(image)}:
        raise InputError(
            f"{image_in_words(image)} and dim_in {dim_in} contradict each other: such an image has "
            f"{prod(image)} inputs"
        )
    return prod(image) if size is None else size


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


def open_target(
    name: str, dim_in: int | None = None, *, trust: bool = False, ports: Ports | None = None
) -> Any:
    """Open what a name other than an address stands for: a callable, (n, d) -> (n,) or (n, k).

    Arguments and errors are those of :func:`open_oracle`.
    """
    ports = ports or Ports()
    if name.startswith("demo:"):
        return OnnxTarget(demo_path(name.removeprefix("demo:")), ports=ports)
    if is_file_of_a_model(Path(name)):
        return open_file(Path(name), dim_in, ports, trust=trust)
    if (python_file := _PYTHON_FILE.fullmatch(name)) is not None:
        module, attribute = python_file.groups()
        raise InputError(
            f"{name}: a Python file is named by its module: write {module}:{attribute or 'NAME'}"
        )
    if _ATTRIBUTE.fullmatch(name):
        if not trust:
            raise UntrustedError(f"{name}: importing it executes code; --trust allows it")
        return ModuleTarget(name, partial(_wrapped, dim_in=dim_in, ports=ports))
    if near := get_close_matches(Path(name).suffix.lower(), [*SUFFIXES, ".toml"], 1, 0.75):
        path = Path(name)
        why = "no files are read of that suffix" if path.is_file() else "no such file"
        raise InputError(f"{name}: {why} (did you mean {path.with_suffix(near[0])}?)")
    meant = {"demo": "demo:digits", **{demo: f"demo:{demo}" for demo in demos()}}
    hint = f" (did you mean {meant[name]}?)" if name in meant else ""
    raise InputError(
        f"{name}: not a target{hint}; a target is demo:NAME, a file ending in "
        f"{', '.join(SUFFIXES)} or .toml, a folder of MLflow's or Hugging Face's, "
        "module:attribute, or an address http(s)://..."
    )


def _opened(target: Any, dim_in: int | None, ports: Ports, *, trust: bool) -> Any:
    """What is behind a name other than an address, or an object."""
    if isinstance(target, str | os.PathLike):
        return open_target(str(target), dim_in, trust=trust, ports=ports)
    return _wrapped(target, dim_in, ports)


def _refuse(options: Mapping[str, Any], why: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise InputError(f"{option} {why}")


def _wrapped(target: Any, dim_in: int | None, ports: Ports) -> Any:
    """A target given as an object: what frameworks have, as a callable on arrays."""
    # An object of a framework exists only if the framework has been imported.
    torch = sys.modules.get("torch")
    module = None if torch is None else _module_of(target, torch.nn.Module)
    if module is not None:
        from revelu.adapters.torch_modules import TorchTarget  # noqa: PLC0415 - optional

        return TorchTarget(module, dim_in, ports)
    if is_estimator(target):
        return EstimatorTarget(target, ports)
    if isinstance(target, type):
        raise InputError(f"{target.__name__} is a class: name an object that it has made")
    ports.only("callables", *([] if isinstance(target, Network) else ["input_shape"]))
    row = ports.input_shape
    return target if row is None else ShapedCallable(target, row, dim_in)


def _module_of(target: Any, kind: type) -> Any:
    """A target that is a module, or the module whose ``forward`` it is; None of any other."""
    is_forward = getattr(target, "__name__", "") == "forward"
    owner = getattr(target, "__self__", None) if is_forward else target
    return owner if isinstance(owner, kind) else None


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
