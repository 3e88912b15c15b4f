"""A ReLU network as data: layers, an optional affine skip, evaluation."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from revelu.errors import FormatError, InputError
from revelu.formats import load_arrays, save_arrays
from revelu.types import FloatArray


class Network:
    """A fully connected ReLU network with any number of layers and outputs.

    With ``h_0 = x`` and ``h_i = relu(weights[i-1] @ h_{i-1} + biases[i-1])`` the
    output is ``weights[-1] @ h + biases[-1]`` and, where a skip is present,
    ``V @ h' + c`` more, ``h'`` being the last hidden layer's *input*.

    Instances are immutable, picklable, and equal when every array is equal.

    Parameters
    ----------
    weights : sequence of array_like
        ``weights[i]`` has shape ``(k_i, d_i)``, and ``d_{i+1} == k_i``.
    biases : sequence of array_like
        ``biases[i]`` has shape ``(k_i,)``.
    skip : (V, c), optional
        An affine map from the last hidden layer's input to the output,
        ``V (k, d)`` and ``c (k,)``.

    Raises
    ------
    InputError
        If the shapes do not chain or a number is not finite.

    Examples
    --------
    >>> import revelu
    >>> network = revelu.Network([[[1.0, -1.0]], [[2.0]]], [[0.0], [1.0]])
    >>> network([[3.0, 1.0], [1.0, 3.0]]).tolist()
    [[5.0], [1.0]]
    """

    __slots__ = ("biases", "skip", "weights")

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    skip: tuple[FloatArray, FloatArray] | None

    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        skip: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        Ws = tuple(_frozen(W, 2, f"weights[{i}]") for i, W in enumerate(weights))
        bs = tuple(_frozen(b, 1, f"biases[{i}]") for i, b in enumerate(biases))
        if not Ws or len(Ws) != len(bs):
            raise InputError(f"{len(Ws)} weight matrices need as many biases, got {len(bs)}")
        for i, (W, b) in enumerate(zip(Ws, bs, strict=True)):
            if b.shape[0] != W.shape[0]:
                raise InputError(
                    f"biases[{i}] has {b.shape[0]} entries for {W.shape[0]} rows of weights[{i}], "
                    "whose shape is (neurons, inputs)"
                )
            if i and W.shape[1] != Ws[i - 1].shape[0]:
                raise InputError(
                    f"weights[{i}] takes {W.shape[1]} inputs, layer {i - 1} gives "
                    f"{Ws[i - 1].shape[0]}"
                )
        pair = None
        if skip is not None:
            V, c = _frozen(skip[0], 2, "skip V"), _frozen(skip[1], 1, "skip c")
            wanted = (Ws[-1].shape[0], Ws[max(len(Ws) - 2, 0)].shape[1])
            if V.shape != wanted or c.shape != wanted[:1]:
                raise InputError(f"skip has shapes {V.shape}, {c.shape}; V must be {wanted}")
            pair = (V, c)
        object.__setattr__(self, "weights", Ws)
        object.__setattr__(self, "biases", bs)
        object.__setattr__(self, "skip", pair)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Network is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Network is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[type["Network"], tuple[object, ...]]:
        return Network, (self.weights, self.biases, self.skip)

    @property
    def dim_in(self) -> int:
        """Number of inputs."""
        return int(self.weights[0].shape[1])

    @property
    def dim_out(self) -> int:
        """Number of outputs."""
        return int(self.weights[-1].shape[0])

    @property
    def architecture(self) -> tuple[int, ...]:
        """Widths, input first, output last."""
        return (self.dim_in, *(int(W.shape[0]) for W in self.weights))

    @property
    def n_parameters(self) -> int:
        """Count of weights and biases, the skip's included."""
        arrays = (*self.weights, *self.biases, *(self.skip or ()))
        return sum(int(a.size) for a in arrays)

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Evaluate a batch.

        Parameters
        ----------
        X : array_like, shape (n, dim_in)

        Returns
        -------
        ndarray, shape (n, dim_out)

        Raises
        ------
        InputError
            If ``X`` has another shape.
        """
        h = np.asarray(X, dtype=np.float64)
        if h.ndim != 2 or h.shape[1] != self.dim_in:
            raise InputError(f"expected inputs of shape (n, {self.dim_in}), got {h.shape}")
        last = h
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            last = h
            h = np.maximum(h @ W.T + b, 0.0)
        y = h @ self.weights[-1].T + self.biases[-1]
        if self.skip is not None:
            V, c = self.skip
            y = y + (last @ V.T + c)
        return np.asarray(y, dtype=np.float64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        mine = (*self.weights, *self.biases, *(self.skip or ()))
        theirs = (*other.weights, *other.biases, *(other.skip or ()))
        return len(mine) == len(theirs) and all(
            np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True)
        )

    def __hash__(self) -> int:
        # Adding 0.0 turns -0.0, which equals 0.0, into it.
        first, last = self.weights[0] + 0.0, self.biases[-1] + 0.0
        return hash((self.architecture, first.tobytes(), last.tobytes()))

    def __repr__(self) -> str:
        widths = "-".join(map(str, self.architecture))
        tail = ", with skip" if self.skip is not None else ""
        return f"<Network {widths}, {self.n_parameters:,} parameters{tail}>"

    def _repr_html_(self) -> str:
        rows: list[tuple[object, ...]] = []
        for i, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            kind = "output" if i == len(self.weights) - 1 else "ReLU"
            rows.append((i + 1, kind, W.shape[1], W.shape[0], W.size + b.size))
        if self.skip is not None:
            V, c = self.skip
            rows.append(("+", "skip", V.shape[1], V.shape[0], V.size + c.size))
        body = "".join("<tr>" + "".join(f"<td>{v}</td>" for v in row) + "</tr>" for row in rows)
        head = "".join(f"<th>{t}</th>" for t in ("layer", "kind", "in", "out", "parameters"))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def save(self, path: str | PathLike[str], dtype: DTypeLike = np.float64) -> None:
        """Write the network to a file; the suffix decides the format.

        Parameters
        ----------
        path : path ending in ``.onnx``, ``.npz``, ``.safetensors`` or ``.pt``
        dtype : float64 (default) or float32

        Raises
        ------
        FormatError
            If the suffix is unknown, the file cannot be written, or ``dtype`` is another
            or too small for a number.
        """
        save_arrays(Path(path), list(self.weights), list(self.biases), self.skip, dtype)


def load(path: str | PathLike[str]) -> Network:
    """Read a network that revelu or another tool wrote.

    Parameters
    ----------
    path : path ending in ``.onnx``, ``.npz``, ``.safetensors``, ``.pt`` or ``.pth``

    Raises
    ------
    FormatError
        If the file cannot be read or does not hold a ReLU network.
    UntrustedError
        If only executing what a ``.pt`` file says would show what it holds.
    MissingExtraError
        If the format needs a package that is not installed.
    """
    arrays = load_arrays(Path(path))
    try:
        return Network(*arrays)
    except InputError as error:
        raise FormatError(f"{path}: {error}") from None


def _frozen(value: ArrayLike, ndim: int, name: str) -> FloatArray:
    try:
        is_complex = np.iscomplexobj(value)
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a numeric array: {error}") from None
    if is_complex:
        raise InputError(f"{name} is complex; weights are real")
    if array.ndim != ndim:
        raise InputError(f"{name} needs {ndim} dimension(s), got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds a number that is not finite")
    array.setflags(write=False)
    return array
