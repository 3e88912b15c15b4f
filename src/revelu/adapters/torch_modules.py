"""torch modules: as targets that are asked, and of networks that were recovered."""

import copy
import warnings
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np

from revelu.adapters.modules import running_what_it_says
from revelu.adapters.ports import Ports, chosen_output, row_shape
from revelu.errors import FormatError, InputError, MissingExtraError
from revelu.network import Network
from revelu.oracle import agreed_dim_in
from revelu.types import FloatArray

try:
    import torch
    from torch import nn
except ImportError:
    raise MissingExtraError('torch modules need torch: pip install "revelu[torch]"') from None


class ReluNetwork(nn.Module):  # type: ignore[misc]
    """A :class:`revelu.Network` as a torch module, and what its state dicts load into.

    Parameters
    ----------
    architecture : sequence of int
        Widths, input first, output last.
    skip : bool
        Whether there is an affine map from the last hidden layer's input to the output.

    Examples
    --------
    >>> import revelu
    >>> network = revelu.zoo.random_network([3, 2, 1], seed=0)
    >>> module = ReluNetwork.from_network(network)
    >>> X = torch.ones((1, 3), dtype=torch.float64)
    >>> bool(abs(module(X).detach().numpy() - network(X.numpy())) < 1e-12)
    True
    """

    def __init__(self, architecture: tuple[int, ...], skip: bool = False) -> None:
        super().__init__()
        widths = [int(width) for width in architecture]
        self.layers = nn.ModuleList(_linear(d, k) for d, k in pairwise(widths))
        self.skip = _linear(widths[max(len(widths) - 3, 0)], widths[-1]) if skip else None
        self.register_buffer("schema", torch.tensor(1))
        self.register_buffer("certified", None)

    @classmethod
    def from_network(cls, network: Network, dtype: Any = torch.float64) -> Self:
        """Make the module that computes what the network does.

        Parameters
        ----------
        network : Network
        dtype : torch.dtype
        """
        module: Self = cls(network.architecture, network.skip is not None).to(dtype)
        pairs = list(zip(network.weights, network.biases, strict=True))
        modules = list(module.layers)
        if network.skip is not None:
            pairs, modules = [*pairs, network.skip], [*modules, module.skip]
        with torch.no_grad():
            for linear, (W, b) in zip(modules, pairs, strict=True):
                linear.weight.copy_(torch.tensor(W))
                linear.bias.copy_(torch.tensor(b))
        if network.certified is not None:
            module.certified = torch.tensor(int(network.certified))
        return module

    def extra_repr(self) -> str:
        """Say so where fresh queries do not vouch for the network."""
        return "NOT certified" if self.certified is not None and not self.certified else ""

    def _load_from_state_dict(self, state: Mapping[str, Any], prefix: str, *more: Any) -> None:
        # Not every state dict says whether its network is certified.
        mark = state.get(f"{prefix}certified")
        self.certified = None if mark is None else torch.zeros_like(mark)
        super()._load_from_state_dict(state, prefix, *more)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Self:
        """Make the module of a state dict that revelu wrote, in the state dict's dtype.

        Raises
        ------
        InputError
            If it is of another module.
        """
        n = sum(name.startswith("layers.") and name.endswith(".weight") for name in state)
        try:
            weights = [state[f"layers.{i}.weight"] for i in range(n)]
            widths = (weights[0].shape[1], *(W.shape[0] for W in weights))
            module: Self = cls(widths, "skip.weight" in state).to(weights[0].dtype)
            module.load_state_dict(state)
        except (KeyError, IndexError, RuntimeError) as error:
            raise InputError(
                f"not the state dict of a network that revelu wrote: {error}"
            ) from None
        return module

    def forward(self, x: Any) -> Any:
        """Evaluate a batch, (n, d) to (n, k)."""
        *hidden, output = self.layers
        before = x
        for layer in hidden:
            before, x = x, torch.relu(layer(x))
        return output(x) if self.skip is None else output(x) + self.skip(before)


class TorchTarget:
    """A module that answers ``(n, d) -> (n,)`` or ``(n, k)``, as it was when opened.

    It is asked in evaluation mode, in the precision and on the device of its parameters.

    Parameters
    ----------
    module : torch.nn.Module
        Copied: what becomes of it later does not matter.
    dim_in : int, optional
        Number of inputs; those of its first linear layer where not given.
    ports : Ports
        The shape of one row, where that is no vector, and which of several outputs is read.

    Raises
    ------
    InputError
        If its first layer takes rows of another shape, and none is given.
    """

    def __init__(self, module: Any, dim_in: int | None = None, ports: Ports | None = None) -> None:
        self._ports = ports or Ports()
        self._ports.only("torch modules", "input_shape", "output_name")
        self.module = _copied(module).eval()
        inside = _unflattened(self.module, dim_in)
        self.row = inside or _row_of(self.module, self._ports, dim_in)
        self._asked = self.row if inside is None else (prod(inside),)
        self.dim_in = prod(self.row) if self.row is not None else dim_in
        numbers = [*self.module.parameters(), *self.module.buffers()]
        real = next((p for p in numbers if p.is_floating_point()), torch.empty(0).double())
        self._dtype, self._device = real.dtype, real.device
        self._has_answered = False

    @property
    def facts(self) -> dict[str, str]:
        """What decides its answers."""
        from revelu.adapters.module_code import digest_of  # noqa: PLC0415 - it needs torch, too

        found = {"module": digest_of(self.module)}
        if self._ports != Ports():
            found["ports"] = f"{self.row} {self._ports.output_name}"
        return found

    @property
    def in_float64(self) -> str:
        """How it would answer in float64, in words; empty where it does, or never will."""
        if self._dtype.itemsize >= torch.float64.itemsize or isinstance(
            self.module, ExportedModule
        ):
            return ""
        kind = f"{self._dtype}".removeprefix("torch.")
        return f"{_name(self.module)} computes in {kind}, and its .double() in float64"

    def write_onnx(self, path: Path) -> None:
        """Write the module as an ONNX file, for its layers to be read; whatever torch raises."""
        zeros = torch.zeros((1, *(self._asked or (self.dim_in,))), dtype=self._dtype)
        with warnings.catch_warnings():
            # Of its two exporters torch announces that the one which needs no package goes.
            warnings.simplefilter("ignore")
            torch.onnx.export(copy.deepcopy(self.module).cpu(), zeros, f"{path}", dynamo=False)

    def __call__(self, X: FloatArray) -> Any:
        """Ask it for the rows of ``X``.

        Raises
        ------
        InputError
            If it takes no rows of this shape, or gives several outputs of which none is named.
        """
        rows = X if self._asked is None else X.reshape(len(X), *self._asked)
        try:
            answer = self._answer(rows)
        except Exception:
            if not self._has_answered:
                self._check_takes(rows.shape)
            raise
        self._has_answered = True
        answer = self._output_of(answer).detach().cpu()
        # NumPy has no bfloat16; float32 holds every number of fewer bits as it is.
        is_short = answer.is_floating_point() and answer.dtype.itemsize < torch.float32.itemsize
        found = np.asarray(answer.float() if is_short else answer)
        return found.reshape(len(X), -1) if found.ndim and len(found) == len(X) else found

    def _answer(self, rows: FloatArray) -> Any:
        with torch.no_grad():
            return self.module(torch.tensor(rows, dtype=self._dtype, device=self._device))

    def _check_takes(self, shape: tuple[int, ...]) -> None:
        """Refuse a module that takes no zeros either: it is not the numbers that it fails on."""
        try:
            self._answer(np.zeros(shape))
        except Exception as error:
            reason = next(iter(f"{error}".splitlines()), "")
            by = "image HEIGHTxWIDTHxCHANNELS or by " if len(shape) == 4 else ""
            raise InputError(
                f"{_name(self.module)} takes no rows of shape {'x'.join(map(str, shape[1:]))} "
                f"({type(error).__name__}: {reason}): give their shape by {by}input_shape, or name "
                "a function that calls it as it is to be called"
            ) from error

    def _output_of(self, answer: Any) -> Any:
        """The tensor to read among those of a dictionary or of a tuple."""
        named = dict(answer) if isinstance(answer, Mapping) else None
        if isinstance(answer, tuple | list):
            fields = getattr(answer, "_fields", range(len(answer)))
            named = {f"{name}": value for name, value in zip(fields, answer, strict=True)}
        name, given = type(self.module).__name__, self._ports.output_name
        if named is None:
            if given is not None:
                raise InputError(f"{name} has one output, without the output_name {given}")
            return answer
        tensors = {key: value for key, value in named.items() if isinstance(value, torch.Tensor)}
        if not tensors:
            kinds = ", ".join(f"{key} ({type(value).__name__})" for key, value in named.items())
            raise InputError(
                f"{name} answers {kinds or 'nothing'}, none of which is a tensor: name a function "
                "that returns the one to read"
            )
        real = [key for key, value in tensors.items() if value.is_floating_point()]
        others = [key for key in tensors if key not in real]
        return tensors[chosen_output(name, real, others, given)]


def _copied(module: Any) -> Any:
    """A copy, for which torch refuses tensors that were computed: those are copied as numbers."""
    computed = [
        value
        for part in module.modules()
        for value in vars(part).values()
        if isinstance(value, torch.Tensor) and not value.is_leaf
    ]
    return copy.deepcopy(module, {id(value): value.detach().clone() for value in computed})


def _unflattened(module: Any, dim_in: int | None) -> tuple[int, ...] | None:
    """The shape that a module gives rows by its first layer; None where it gives none."""
    first = next((m for m in module.modules() if not any(m.children())), module)
    sizes = tuple(getattr(first, "unflattened_size", ())) if _name(first) == "Unflatten" else ()
    if not sizes or first.dim not in {1, -1} or min(sizes) < 1:
        return None
    agreed_dim_in(f"its Unflatten to {'x'.join(map(str, sizes))}", prod(sizes), dim_in)
    return sizes


def _row_of(module: Any, ports: Ports, dim_in: int | None) -> tuple[int, ...] | None:
    """The shape of one row; None where nothing says it."""
    if isinstance(module, ExportedModule):
        return row_shape("the program's input", module.row, ports.row(len(module.row)), dim_in)
    first = next((m for m in module.modules() if _name(m) in _FIRST_LAYERS), None)
    kind = "" if first is None else _name(first)
    given = ports.row(len(_SIZES)) if kind == "Conv2d" else ports.input_shape
    if given is not None:
        agreed_dim_in(f"input_shape {'x'.join(map(str, given))}", prod(given), dim_in)
        return given
    if first is None:
        return None
    if kind.startswith("Conv"):
        n = f"{getattr(first, 'in_channels', first.weight.shape[1])}"
        sizes = _SIZES[-int(kind[4]) :]
        as_image = f"image {'x'.join([*sizes, n])} or " if kind == "Conv2d" else ""
        raise InputError(
            f"the first layer of {_name(module)} is a {kind}: give its rows a shape by {as_image}"
            f"input_shape {'x'.join([n, *sizes])}"
        )
    if kind.startswith("Embedding"):
        raise InputError(f"{_name(module)} begins with an {kind}: it takes no real numbers")
    if kind != "Linear" or dim_in is not None:
        return None
    features = getattr(first, "in_features", None)
    return (features if features is not None else first.weight.shape[1],)


_SIZES = ("DEPTH", "HEIGHT", "WIDTH")
_FIRST_LAYERS = {"Linear", "Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag"}


def _name(module: Any) -> str:
    """The class of a module; that of a TorchScript module as it was before."""
    return str(getattr(module, "original_name", type(module).__name__))


def load_module(path: Path) -> Any:
    """Unpickle a module, which executes whatever the file says."""
    load = partial(torch.load, map_location="cpu", weights_only=False)
    with running_what_it_says(f"{path}: cannot be opened by torch", FormatError):
        found = load(path)
    parts = found.items() if isinstance(found, Mapping) else ()
    modules = [f"{name!r} ({_name(one)})" for name, one in parts if isinstance(one, nn.Module)]
    if modules:
        raise FormatError(
            f"{path}: holds several modules, {', '.join(modules)}: save the one to ask alone, by "
            f"torch.save(torch.load(FILE, weights_only=False)[NAME], NEW)"
        )
    if not isinstance(found, nn.Module):
        raise FormatError(f"{path}: holds a {type(found).__name__}, not a torch module")
    return found


def load_script(path: Path) -> Any:
    """Open a TorchScript program."""
    with warnings.catch_warnings():
        # Newer versions of torch would rather export.
        warnings.simplefilter("ignore", DeprecationWarning)
        with running_what_it_says(f"{path}: cannot be opened by torch.jit", FormatError):
            return torch.jit.load(path, map_location="cpu")


class ExportedModule(nn.Module):  # type: ignore[misc]
    """A program of torch.export as a module; in evaluation mode, and never changing.

    Attributes
    ----------
    row : tuple
        Sizes of one row of its input, None of those that it leaves open.
    n_rows : int or None
        Rows that it takes, where it takes no other number.
    """

    def __init__(self, program: Any) -> None:
        super().__init__()
        self.inner = program.module()
        named = set(program.graph_signature.user_inputs)
        first = next(node for node in program.graph.nodes if node.name in named)
        rows, *sizes = (n if isinstance(n, int) else None for n in first.meta["val"].shape)
        self.row, self.n_rows = tuple(sizes), rows

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def train(self, mode: bool = True) -> Self:  # noqa: ARG002 - the modes were exported as one
        """Stay as it is."""
        return self

    def forward(self, x: Any) -> Any:
        """Run a batch, in several runs where the program takes a fixed number of rows."""
        if self.n_rows is None:
            return self.inner(x)
        missing = torch.zeros((-len(x) % self.n_rows, *x.shape[1:]), dtype=x.dtype)
        parts = torch.cat([x, missing]).split(self.n_rows)
        answers = [self.inner(part) for part in parts]
        return torch.cat(answers)[: len(x)]


def load_exported(path: Path) -> Any:
    """Open a program of torch.export."""
    with running_what_it_says(f"{path}: cannot be opened by torch.export", FormatError):
        return ExportedModule(torch.export.load(path))


def _linear(d: int, k: int) -> Any:
    with warnings.catch_warnings():
        # torch warns that a layer without neurons has nothing to initialise.
        warnings.simplefilter("ignore", UserWarning)
        return nn.utils.skip_init(nn.Linear, d, k)
