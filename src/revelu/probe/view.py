"""A target in other coordinates, and what lies above a known layer as such a one."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from revelu.oracle import NoiseFloor
from revelu.probe.line import Ask, Askable
from revelu.types import FloatArray


class View(ABC):
    """The base of a target in other coordinates ``z``; a query of it is one of the target.

    Parameters
    ----------
    target : callable, (n, d) -> (n, k)
    dim_in : int
        Number of coordinates.
    """

    def __init__(self, target: Ask, dim_in: int) -> None:
        self.target, self.dim_in = target, dim_in

    @abstractmethod
    def inputs(self, Z: FloatArray) -> FloatArray:
        """Return where the target is asked, (n, dim_in) -> (n, d)."""

    def __call__(self, X: FloatArray) -> FloatArray:
        """Ask one round of coordinates, (n, dim_in) -> (n, k)."""
        return self.target(self.inputs(X))

    def round(self) -> AbstractContextManager[None]:
        """Count the calls made inside as one round, where the target counts them."""
        return self.target.round() if isinstance(self.target, Askable) else nullcontext()

    def noise(self, noise: NoiseFloor, Z: FloatArray) -> NoiseFloor:
        """Return the noise floor of what is asked so: longer inputs err by more.

        Parameters
        ----------
        noise : NoiseFloor
            Of the target.
        Z : ndarray, shape (n, dim_in)
            Typical coordinates.
        """
        stretch = np.median(noise.growth(self.inputs(Z)) / noise.growth(Z))
        return replace(noise, nu=noise.nu * max(float(stretch), 1.0))


class AboveLayer(View):
    """What lies above a layer, as a function of what that puts out.

    A point ``h >= 0`` is asked at ``x = W^+ (h - b)``, of all inputs the shortest that give it
    (DG21, section 3.5.4).

    Parameters
    ----------
    target : callable, (n, d) -> (n, k)
    W : ndarray, shape (m, d)
        Independent rows, each as its neuron turns on.
    b : ndarray, shape (m,)
    """

    def __init__(self, target: Ask, W: FloatArray, b: FloatArray) -> None:
        super().__init__(target, len(W))
        self.W, self.b = W, b
        self.inverse = np.linalg.pinv(W)

    def inputs(self, Z: FloatArray) -> FloatArray:
        """Return inputs at which the layer puts that out, shape (n, d)."""
        return np.asarray((Z - self.b) @ self.inverse.T)

    def hidden(self, X: FloatArray) -> FloatArray:
        """Return what the layer makes of inputs, shape (n, m)."""
        return np.asarray(np.maximum(X @ self.W.T + self.b, 0.0))
