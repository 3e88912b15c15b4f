"""A ReLU network as data: layers, an optional affine skip, evaluation."""

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from revelu.errors import FormatError, InputError
from revelu.formats import load_arrays, load_nodes, save_arrays
from revelu.formats.reading import is_read
from revelu.types import BoolArray, FloatArray, IntArray


class Network:
    """A fully connected ReLU network with any number of layers and outputs.

    With ``h_0 = x`` and ``h_i = relu(weights[i-1] @ h_{i-1} + biases[i-1])`` the
    output is ``weights[-1] @ h + biases[-1]`` and, where a skip is present,
    ``V @ h' + c`` more, ``h'`` being the last hidden layer's *input*.

    Instances are immutable, picklable, and equal when every array is equal.  ``certified`` says
    whether fresh queries have vouched for it; files keep that, and what is made of a network by
    arithmetic says nothing (None).

    Parameters
    ----------
    weights : sequence of array_like
        ``weights[i]`` has shape ``(k_i, d_i)``, and ``d_{i+1} == k_i``.
    biases : sequence of array_like
        ``biases[i]`` has shape ``(k_i,)``.
    skip : (V, c), optional
        An affine map from the last hidden layer's input to the output,
        ``V (k, d)`` and ``c (k,)``.
    certified : bool, optional
        Whether fresh queries have vouched for it; not given where nobody asked.

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

    __slots__ = ("biases", "certified", "skip", "weights")

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    skip: tuple[FloatArray, FloatArray] | None
    certified: bool | None

    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        skip: tuple[ArrayLike, ArrayLike] | None = None,
        certified: bool | None = None,
    ) -> None:
        Ws = tuple(frozen_array(W, 2, f"weights[{i}]") for i, W in enumerate(weights))
        bs = tuple(frozen_array(b, 1, f"biases[{i}]") for i, b in enumerate(biases))
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
            V, c = frozen_array(skip[0], 2, "skip V"), frozen_array(skip[1], 1, "skip c")
            wanted = (Ws[-1].shape[0], Ws[max(len(Ws) - 2, 0)].shape[1])
            if V.shape != wanted or c.shape != wanted[:1]:
                raise InputError(f"skip has shapes {V.shape}, {c.shape}; V must be {wanted}")
            pair = (V, c)
        object.__setattr__(self, "weights", Ws)
        object.__setattr__(self, "biases", bs)
        object.__setattr__(self, "skip", pair)
        object.__setattr__(self, "certified", certified)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Network is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Network is immutable: cannot delete {name!r}")

    def __reduce__(self) -> tuple[type["Network"], tuple[object, ...]]:
        return Network, (self.weights, self.biases, self.skip, self.certified)

    def marked(self, certified: bool | None) -> "Network":
        """Return the network with word of whether fresh queries have vouched for it."""
        if certified is self.certified:
            return self
        found = object.__new__(Network)
        values = (self.weights, self.biases, self.skip, certified)
        for name, value in zip(("weights", "biases", "skip", "certified"), values, strict=True):
            object.__setattr__(found, name, value)
        return found

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
    def n_hidden(self) -> int:
        """Number of hidden layers."""
        return len(self.weights) - 1

    @property
    def arrays(self) -> tuple[FloatArray, ...]:
        """All weights, then all biases, then ``V`` and ``c`` of the skip, if there is one."""
        return (*self.weights, *self.biases, *(self.skip or ()))

    @property
    def n_parameters(self) -> int:
        """Count of weights and biases, the skip's included."""
        return sum(int(a.size) for a in self.arrays)

    def to_dense(self) -> "Network":
        """Return the same function as layers of rows, which this is."""
        return self

    def hyperplanes(self) -> tuple[FloatArray, FloatArray]:
        """Return rows ``W (k, d)`` and biases of the hyperplanes that bend the function first."""
        return self.weights[0], self.biases[0]

    @property
    def affine(self) -> tuple[FloatArray, FloatArray]:
        """The skip ``(V, c)``; zeros where the network has none."""
        dim = self.weights[max(self.n_hidden - 1, 0)].shape[1]
        return self.skip or (np.zeros((self.dim_out, dim)), np.zeros(self.dim_out))

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Evaluate a batch, (n, dim_in) -> (n, dim_out).

        Raises
        ------
        InputError
            If ``X`` has another shape.
        """
        hs = self.activations(X)
        y = hs[-1] @ self.weights[-1].T + self.biases[-1]
        if self.skip is not None:
            V, c = self.skip
            y = y + (hs[max(self.n_hidden - 1, 0)] @ V.T + c)
        return np.asarray(y, dtype=np.float64)

    def activations(self, X: ArrayLike) -> list[FloatArray]:
        """Return what each layer reads: the inputs, and the outputs of the hidden layers.

        Parameters
        ----------
        X : array_like, shape (n, dim_in)

        Returns
        -------
        list of ndarray, shape (n, d_i)
            ``h_0 = X, h_1, ..., h_L``.  A neuron is on where its entry is positive.

        Raises
        ------
        InputError
            If ``X`` has another shape.
        """
        hs = [self._inputs(X)]
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hs.append(np.maximum(hs[-1] @ W.T + b, 0.0))
        return hs

    def preactivations(self, X: ArrayLike) -> list[FloatArray]:
        """Return the sums ``W h + b`` of the neurons of each hidden layer, before the ReLU.

        Parameters
        ----------
        X : array_like, shape (n, dim_in)

        Returns
        -------
        list of ndarray, shape (n, k_i)
            ``z_1, ..., z_L``.

        Raises
        ------
        InputError
            If ``X`` has another shape.
        """
        h = self._inputs(X)
        zs: list[FloatArray] = []
        for W, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            zs.append(h @ W.T + b)
            h = np.maximum(zs[-1], 0.0)
        return zs

    def linear_maps(self, X: ArrayLike) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield every layer's sums and their gradients in the inputs, the output layer last.

        With ``D_i`` the diagonal matrix that has a 1 for every neuron of layer i that is on,
        the gradient of ``z_i`` is ``W_i D_{i-1} W_{i-1} ... D_1 W_1``.

        Parameters
        ----------
        X : array_like, shape (n, dim_in)

        Yields
        ------
        J : ndarray, shape (n, k_i, dim_in)
        z : ndarray, shape (n, k_i)
            Before the ReLU; the outputs, in the end.

        Raises
        ------
        InputError
            If ``X`` has another shape.
        """
        h = below_h = self._inputs(X)
        n, d = h.shape
        M = below_M = np.broadcast_to(np.eye(d), (n, d, d))
        for i, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            J, z = W @ M if i else np.broadcast_to(W, (n, *W.shape)), h @ W.T + b
            if i == self.n_hidden and self.skip is not None:
                V, c = self.skip
                J, z = J + V @ below_M, z + (below_h @ V.T + c)
            yield J, z
            below_h, below_M = h, M
            M, h = J * (z > 0)[:, :, None], np.maximum(z, 0.0)

    def jacobian(self, X: ArrayLike) -> FloatArray:
        """Return the derivative of the outputs at each input, shape (n, dim_out, dim_in).

        Parameters
        ----------
        X : array_like, shape (n, dim_in)
            On a hyperplane it is the derivative of the side where the neuron is off.

        Raises
        ------
        InputError
            If ``X`` has another shape.
        """
        *_, (J, _) = self.linear_maps(X)
        return np.asarray(J)

    def kinks_on_line(
        self, x0: FloatArray, v: FloatArray, interval: tuple[float, float]
    ) -> FloatArray:
        """Return where neurons of any layer turn on or off along ``x0 + t v``, sorted.

        The sum of a neuron is affine in ``t`` between the kinks of the layers below: two values
        of opposite sign at the ends of such a stretch have one zero between them.

        Parameters
        ----------
        x0, v : ndarray, shape (dim_in,)
        interval : (float, float)
            The open interval of ``t`` that is searched.

        Returns
        -------
        ndarray, shape (m,)
        """
        t = np.array(interval, dtype=np.float64)
        for layer in range(self.n_hidden):
            Z = self.preactivations(x0 + t[:, None] * v)[layer]
            left, right = Z[:-1], Z[1:]
            stretch, neuron = np.nonzero((left > 0.0) != (right > 0.0))
            a, b = left[stretch, neuron], right[stretch, neuron]
            zeros = t[stretch] + (t[stretch + 1] - t[stretch]) * (a / (a - b))
            t = np.unique(np.concatenate([t, zeros]))
        return t[(t > interval[0]) & (t < interval[1])]

    def _inputs(self, X: ArrayLike) -> FloatArray:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.dim_in:
            raise InputError(f"expected inputs of shape (n, {self.dim_in}), got {X.shape}")
        return X

    def to_vector(self) -> FloatArray:
        """Return all parameters in one row, in the order of :attr:`arrays`."""
        return np.concatenate([a.ravel() for a in self.arrays])

    def like(self, vector: FloatArray) -> "Network":
        """Return the network of the same shapes with these parameters.

        Parameters
        ----------
        vector : ndarray, shape (n_parameters,)
            In the order of :meth:`to_vector`.
        """
        ends = np.cumsum([a.size for a in self.arrays])[:-1]
        parts = zip(np.split(vector, ends), self.arrays, strict=True)
        arrays = [part.reshape(a.shape) for part, a in parts]
        n = len(self.weights)
        skip = None if self.skip is None else (arrays[-2], arrays[-1])
        return Network(arrays[:n], arrays[n : 2 * n], skip)

    def folded(self) -> "Network":
        """Return the same function, the skip's constant added to the last bias.

        A skip that vanishes is left out; without hidden layers ``V`` is added to the weights.
        """
        if self.skip is None:
            return self
        V, c = self.skip
        W, b = self.weights[-1], self.biases[-1] + c
        if self.n_hidden:
            skip = (V, np.zeros_like(c)) if V.any() else None
            return Network(self.weights, [*self.biases[:-1], b], skip)
        return Network([W + V], [b])

    def with_unit_rows(self) -> "Network":
        """Return the same function, folded, with weight rows of norm 1 in every hidden layer.

        What reads a neuron is multiplied by what its row and bias were divided by; rows of zeros
        stay.
        """
        network = self.folded()
        for i in range(network.n_hidden):
            W, b = network.weights[i], network.biases[i]
            sizes = np.linalg.norm(W, axis=1)
            sizes = np.where(sizes > 0.0, sizes, 1.0)
            network = network.with_layer(i, W / sizes[:, None], b / sizes, np.diag(sizes))
        return network

    def readers(self, i: int) -> FloatArray:
        """Return all that reads hidden layer ``i``: the next weights, and ``V`` where it does.

        Returns
        -------
        ndarray, shape (rows, k_i)
        """
        reads_too = [self.skip[0]] if self.skip is not None and i == self.n_hidden - 2 else []
        return np.vstack([self.weights[i + 1], *reads_too])

    def with_layer(self, i: int, W: FloatArray, b: FloatArray, M: FloatArray) -> "Network":
        """Return the network with another hidden layer ``i``.

        Parameters
        ----------
        i : int
        W : ndarray, shape (k', d_i)
        b : ndarray, shape (k',)
        M : ndarray, shape (k_i, k')
            What reads the layer is multiplied by it from the right: the function stays where
            the old neurons' outputs are ``M`` times the new ones'.
        """
        weights, biases, skip = list(self.weights), list(self.biases), self.skip
        weights[i], biases[i], weights[i + 1] = W, b, weights[i + 1] @ M
        if skip is not None and i == self.n_hidden - 2:
            skip = (skip[0] @ M, skip[1])
        return Network(weights, biases, skip)

    def take(self, neurons: BoolArray | IntArray) -> "Network":
        """Return the network with some neurons of its last hidden layer only.

        Parameters
        ----------
        neurons : ndarray of bool, shape (k,), or of int
            Which stay, in this order.
        """
        *weights, W, A = self.weights
        *biases, b, c = self.biases
        return Network([*weights, W[neurons], A[:, neurons]], [*biases, b[neurons], c], self.skip)

    def turn_round(self, neurons: BoolArray | IntArray) -> "Network":
        """Return the same function, some neurons of the last hidden layer negated.

        As ``a relu(z) = a relu(-z) + a z``, turning the neuron ``z = w h + b`` round adds
        ``a w`` to the skip's ``V`` and ``a b`` to the last bias.

        Parameters
        ----------
        neurons : ndarray of bool, shape (k,), or of int
        """
        *weights, W, A = self.weights
        *biases, b, c = self.biases
        turned = np.zeros(len(b))
        turned[neurons] = 1.0
        signs = 1.0 - 2.0 * turned
        V, e = self.affine
        skip = (V + (A * turned) @ W, e)
        return Network(
            [*weights, W * signs[:, None], A], [*biases, b * signs, c + A @ (b * turned)], skip
        )

    def then(self, M: FloatArray) -> "Network":
        """Return the network whose outputs are ``M`` times these.

        Parameters
        ----------
        M : ndarray, shape (k', dim_out)
        """
        skip = None if self.skip is None else (M @ self.skip[0], M @ self.skip[1])
        weights, biases = (
            [*self.weights[:-1], M @ self.weights[-1]],
            [*self.biases[:-1], M @ self.biases[-1]],
        )
        return Network(weights, biases, skip)

    def after(self, M: FloatArray, t: FloatArray | float = 0.0) -> "Network":
        """Return the network that reads ``M x + t`` where this one reads ``x``.

        Parameters
        ----------
        M : ndarray, shape (dim_in, d)
        t : ndarray, shape (dim_in,), optional
        """
        (W, *others), (b, *constants), skip = self.weights, self.biases, self.skip
        t = np.broadcast_to(t, self.dim_in)
        if skip is not None and self.n_hidden == 1:
            skip = skip[0] @ M, skip[1] + skip[0] @ t
        return Network([W @ M, *others], [b + W @ t, *constants], skip)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Network):
            return NotImplemented
        return len(self.arrays) == len(other.arrays) and all(
            np.array_equal(a, b) for a, b in zip(self.arrays, other.arrays, strict=True)
        )

    def __hash__(self) -> int:
        # Adding 0.0 turns -0.0 into 0.0, which equals it and must have the same hash.
        first, last = self.weights[0] + 0.0, self.biases[-1] + 0.0
        return hash((self.architecture, first.tobytes(), last.tobytes()))

    def __repr__(self) -> str:
        widths = "-".join(map(str, self.architecture))
        tail = ", with skip" if self.skip is not None else ""
        return f"<Network {widths}, {self.n_parameters:,} parameters{tail}{self._mark}>"

    @property
    def _mark(self) -> str:
        return ", not certified" if self.certified is False else ""

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
        note = "<p><b>not certified</b></p>" if self.certified is False else ""
        return f"{note}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def save(
        self,
        path: str | PathLike[str],
        dtype: DTypeLike = np.float64,
        *,
        standard_errors: Sequence[tuple[FloatArray, FloatArray]] | None = None,
    ) -> None:
        """Write the network to a file; the suffix decides the format.

        Parameters
        ----------
        path : path ending in ``.onnx``, ``.npz``, ``.safetensors`` or ``.pt``
        dtype : float64 (default) or float32
        standard_errors : sequence of (ndarray, ndarray), optional
            As :attr:`revelu.Recovery.standard_errors` has them; an ``.npz`` keeps them, and
            ``revelu inspect --errors`` shows them.

        Raises
        ------
        FormatError
            If the suffix is unknown, the file cannot be written, or ``dtype`` is another
            or too small for a number.
        """
        layers = list(self.weights), list(self.biases), self.skip
        errors = None if standard_errors is None else list(standard_errors)
        save_arrays(Path(path), *layers, dtype, certified=self.certified, errors=errors)


def load(path: str | PathLike[str]) -> Network:
    """Read a network that revelu or another tool wrote.

    Parameters
    ----------
    path : path ending in ``.onnx``, ``.npz``, ``.safetensors``, ``.pt`` or ``.pth``
        Or of a file of another program whose weights are read, such as ``.pkl``.

    Raises
    ------
    FormatError
        If the file cannot be read or does not hold a ReLU network.
    UntrustedError
        If only executing what a file says would show what it holds.
    MissingExtraError
        If the format needs a package that is not installed.
    """
    if is_read(Path(path)):
        from revelu.network.from_files import read_network  # noqa: PLC0415 - it stands on this

        return read_network(Path(path))
    if (layered := load_nodes(Path(path))) is not None:
        from revelu.network.layered import LayeredNetwork  # noqa: PLC0415 - it stands on this

        row, nodes, certified = layered
        try:
            return LayeredNetwork.from_nodes(row, nodes).marked(certified)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from None
    arrays = load_arrays(Path(path))
    try:
        return Network(arrays.weights, arrays.biases, arrays.skip, arrays.certified)
    except InputError as error:
        raise FormatError(f"{path}: {error}") from None


def frozen_array(value: ArrayLike, ndim: int, name: str) -> FloatArray:
    """Copy finite real numbers into an array that cannot be written to.

    Raises
    ------
    InputError
        If they are none, or have another number of dimensions; the message says ``name``.
    """
    try:
        is_complex = np.iscomplexobj(value)
        array = np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not a numeric array: {error}") from None
    if is_complex:
        raise InputError(f"{name} is complex, not real")
    if array.ndim != ndim:
        raise InputError(f"{name} needs {ndim} dimension(s), got shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} holds a number that is not finite")
    array.setflags(write=False)
    return array
