"""torch modules: as targets that are asked, and of networks that were recovered."""

import copy
import hashlib
import warnings
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from revelu.adapters.modules import unpickled
from revelu.errors import InputError, MissingExtraError
from revelu.network import Network
from revelu.types import FloatArray

try:
    import torch
    from torch import nn
except ImportError:
    raise MissingExtraError('torch modules need torch: pip install ".[torch]"') from None


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
        return module

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
    """

    def __init__(self, module: Any, dim_in: int | None = None) -> None:
        self.module = copy.deepcopy(module).eval()
        linear = next((m for m in self.module.modules() if isinstance(m, nn.Linear)), None)
        self.dim_in = linear.in_features if dim_in is None and linear is not None else dim_in
        numbers = [*self.module.parameters(), *self.module.buffers()]
        real = next((p for p in numbers if p.is_floating_point()), torch.empty(0).double())
        self._dtype, self._device = real.dtype, real.device

    @property
    def facts(self) -> dict[str, str]:
        """What decides its answers."""
        digest = hashlib.sha256(repr(self.module).encode())
        for name, value in sorted(self.module.state_dict().items()):
            digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
            digest.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
        return {"module": digest.hexdigest()}

    def __call__(self, X: FloatArray) -> Any:
        """Ask it for the rows of ``X``."""
        with torch.no_grad():
            answer = self.module(torch.tensor(X, dtype=self._dtype, device=self._device))
        return np.asarray(answer.cpu())


def load_module(path: Path) -> Any:
    """Unpickle a module, which executes whatever the file says."""
    load = partial(torch.load, map_location="cpu", weights_only=False)
    return unpickled(path, "torch", load, "torch module", lambda m: isinstance(m, nn.Module))


def _linear(d: int, k: int) -> Any:
    with warnings.catch_warnings():
        # torch warns that a layer without neurons has nothing to initialise.
        warnings.simplefilter("ignore", UserWarning)
        return nn.utils.skip_init(nn.Linear, d, k)
