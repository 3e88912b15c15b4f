"""Keras models, ``.keras`` and ``.h5``: layers from their description, weights from HDF5.

HDF5 is read by pyfive, which is written in Python: what a file says cannot corrupt memory.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.extras import import_extra
from revelu.formats.arrays import MAX_BYTES, check_is_file, naming_damage
from revelu.formats.channels_last import ORDER, ChannelsLast
from revelu.formats.hdf5_variables import Variables, text
from revelu.formats.onnx_frame import Frame
from revelu.formats.open_model import LayerChain, OpenModel
from revelu.types import FloatArray

__all__ = ["library", "read"]

_PASSED = {"InputLayer", "Dropout", "SpatialDropout2D", "GaussianNoise", "GaussianDropout"}
_KEPT = "model.weights.h5"

Layer = tuple[str, Mapping[str, Any], list[np.ndarray]]
"""Of a layer its class, its configuration, and its variables in their order."""


def library() -> Any:
    """Return pyfive, which reading needs."""
    return import_extra("pyfive", ".h5 and .keras files need pyfive", "hdf5")


def read(path: Path, activation: str | None = None) -> OpenModel:  # noqa: ARG001 - it says its own
    """Read a model that is a chain of layers.

    Raises
    ------
    FormatError
        If it is damaged, or has layers of other kinds; the layer is named.
    MissingExtraError
        If what reads HDF5 is not installed.
    """
    check_is_file(path)
    pyfive = library()
    with naming_damage(path, "Keras model"):
        if path.stat().st_size > MAX_BYTES:
            raise FormatError(f"{path}: over {MAX_BYTES:,} bytes")
        if zipfile.is_zipfile(path):
            config, layers = _of_archive(path, pyfive)
        else:
            config, layers = _of_hdf5(path, pyfive)
        return _KerasReader(path, layers).model(config)


def _of_archive(path: Path, pyfive: Any) -> tuple[Mapping[str, Any], list[Layer]]:
    most = max(2**27, 4 * path.stat().st_size)
    with zipfile.ZipFile(path) as archive:
        parts = ("config.json", _KEPT)
        if not set(parts) <= set(archive.namelist()):
            raise FormatError(f"{path}: no {' and '.join(parts)}, as Keras has them")
        if sum(archive.getinfo(name).file_size for name in parts) > most:
            raise FormatError(f"{path}: unpacks to over {most:,} bytes")
        config = json.loads(archive.read(parts[0]))
        content = archive.read(_KEPT)
    with pyfive.File(io.BytesIO(content)) as file:
        variables = Variables(path, most, len(content))
        held = variables.by_layer(file, _places(config))
        chain = _in_order(path, config)
        return config, [(kind, said, held.get(f"{said.get('name')}", [])) for kind, said in chain]


def _places(config: Any) -> dict[str, str]:
    """What Keras 2 calls the variables of layers: by class and count, and not by their names."""
    inner, counts, found = config["config"], dict[str, int](), dict[str, str]()
    for layer in inner if isinstance(inner, list) else inner["layers"]:
        words = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", f"{layer['class_name']}")
        kind = re.sub("([a-z])([A-Z])", r"\1_\2", words).lower()
        n = counts.get(kind, 0)
        counts[kind] = n + 1
        found[f"{kind}_{n}" if n else kind] = f"{layer['config'].get('name')}"
    return found


def _of_hdf5(path: Path, pyfive: Any) -> tuple[Mapping[str, Any], list[Layer]]:
    with pyfive.File(str(path)) as file:
        written = file.attrs.get("model_config")
        if written is None:
            raise FormatError(f"{path}: holds weights without the layers that they are of")
        config = json.loads(text(written))
        size = path.stat().st_size
        variables = Variables(path, max(2**27, 4 * size), size)
        weights = file["model_weights"]
        found: list[Layer] = []
        for kind, said in _in_order(path, config):
            name = f"{said.get('name')}"
            held = []
            if name in weights:
                group = weights[name]
                listed = [text(one) for one in group.attrs.get("weight_names", ())]
                held = [variables.read(group[one]) for one in listed]
            found.append((kind, said, held))
        return config, found


def _in_order(path: Path, config: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """The layers of a description, each with its configuration, as they run."""
    kind, inner = config["class_name"], config["config"]
    layers = inner if isinstance(inner, list) else inner["layers"]
    found = [(f"{layer['class_name']}", layer["config"]) for layer in layers]
    if kind == "Sequential":
        return found
    outputs = inner.get("output_layers", []) if isinstance(inner, dict) else []
    if len(outputs) > 1 and not isinstance(outputs[0], str):
        raise FormatError(f"{path}: {len(outputs)} outputs, of which one is read")
    by_name = {layer["config"]["name"]: layer for layer in layers}
    following: dict[tuple[str, ...], list[str]] = {}
    for name, layer in by_name.items():
        read = tuple(_names_in(layer.get("inbound_nodes", [])))
        following.setdefault(read, []).append(name)
    ordered, before = list[tuple[str, Mapping[str, Any]]](), tuple[str, ...]()
    while len(ordered) < len(by_name):
        follows = following.get(before, [])
        if len(follows) != 1:
            raise FormatError(f"{path}: its layers branch or join, and are no chain")
        before = (follows[0],)
        layer = by_name[follows[0]]
        ordered.append((f"{layer['class_name']}", layer["config"]))
    return ordered


def _names_in(nodes: Any) -> list[str]:
    """The layers that a layer reads, of Keras 2 and 3."""
    if isinstance(nodes, dict):
        if nodes.get("class_name") == "__keras_tensor__":
            return [nodes["config"]["keras_history"][0]]
        return [name for part in nodes.values() for name in _names_in(part)]
    if isinstance(nodes, list):
        if len(nodes) >= 3 and isinstance(nodes[0], str) and isinstance(nodes[1], int):
            return [nodes[0]]
        return [name for part in nodes for name in _names_in(part)]
    return []


class _KerasReader:
    """Puts a chain together from layers of Keras."""

    def __init__(self, path: Path, layers: Sequence[Layer]) -> None:
        self.path, self.layers = path, layers
        shape = next((s for s in map(_shape_said, (said for _, said, _ in layers)) if s), None)
        if shape is None or len(shape) not in {1, 3} or any(n is None or n < 1 for n in shape):
            raise FormatError(f"{path}: its inputs are of the shape {shape}, which is not read")
        row = (shape[0],) if len(shape) == 1 else (shape[2], shape[0], shape[1])
        if prod(row) > 2**24:
            raise FormatError(f"{path}: reads {prod(row):,} numbers")
        self.chain = LayerChain.of_file(path, row)
        self.put = ChannelsLast(self.chain)

    def model(self, config: Mapping[str, Any]) -> OpenModel:
        """Return what it is."""
        readers: dict[str, Callable[[Mapping[str, Any], list[FloatArray]], None]] = {
            "Dense": self._dense,
            "Activation": lambda said, _: self._activation(said),
            "ReLU": lambda said, _: self._relu(said),
            "LeakyReLU": lambda said, _: self._leaky(said),
            "Softmax": lambda *_: self.put.activation("softmax"),
            "BatchNormalization": self._batch_norm,
            "Normalization": self._normalisation,
            "Rescaling": lambda said, _: self._rescaling(said),
            "Conv2D": self._convolution,
            "DepthwiseConv2D": self._depthwise,
            "MaxPooling2D": lambda said, _: self._pooling("MaxPool", said),
            "AveragePooling2D": lambda said, _: self._pooling("AveragePool", said),
            "GlobalAveragePooling2D": lambda *_: self.put.pool_all("AveragePool"),
            "GlobalMaxPooling2D": lambda *_: self.put.pool_all("MaxPool"),
            "Flatten": lambda *_: self.put.flatten(),
        }
        for kind, said, variables in self.layers:
            if kind in _PASSED:
                continue
            if kind not in readers:
                self.chain.refuse(f"its layer {kind[:40]!r} is none that is read")
            if said.get("data_format", "channels_last") == "channels_first":
                self.chain.refuse("its images have their channels first, which is not read")
            readers[kind](said, [self.chain.numbers(v) for v in variables])
        self.put.end()
        version = config.get("keras_version")
        names = [f"{said.get('name', kind)}" for kind, said, _ in self.layers]
        given = next((s for kind, s, _ in self.layers if kind == "InputLayer"), {})
        dtype, row = np.dtype(np.float32), self.chain.row
        name = f"{given.get('name', 'input')}"
        frame = None if name == names[-1] else Frame(name, row, dtype, names[-1], dtype)
        words = f"Keras model of {len([k for k, _, _ in self.layers if k not in _PASSED])} layers"
        return OpenModel(
            words + (f", Keras {version}" if isinstance(version, str) else ""),
            row,
            self.chain.end(),
            self.chain.scaling,
            self.put.head,
            frame=frame,
            notes=(ORDER,) if len(row) == 3 and row[0] > 1 else (),
        )

    def _activation(self, said: Mapping[str, Any]) -> None:
        given = said.get("activation", "linear")
        inner: Mapping[str, Any] = {}
        if isinstance(given, dict):
            inner, given = given.get("config") or {}, given.get("class_name", "")
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", f"{given or 'linear'}").lower()
        if name in {"re_lu", "leaky_re_lu"} and isinstance(inner, dict):  # a layer, with its own
            (self._relu if name == "re_lu" else self._leaky)(inner)
            return
        slope = inner.get("negative_slope", 0.2) if isinstance(inner, dict) else 0.2
        self.put.activation(name, float(slope))

    def _relu(self, said: Mapping[str, Any]) -> None:
        cap, slope = said.get("max_value"), said.get("negative_slope") or 0.0
        if said.get("threshold"):
            self.chain.refuse("a ReLU with a threshold is not read")
        if cap is not None and not slope:
            self.put.capped(float(cap))
        elif slope and cap is None:
            self.put.activation("leaky_relu", float(slope))
        elif cap is None:
            self.put.activation("relu")
        else:
            self.chain.refuse("a leaky ReLU with a cap is not read")

    def _leaky(self, said: Mapping[str, Any]) -> None:
        slope = said.get("negative_slope", said.get("alpha", 0.3))
        if isinstance(slope, dict):  # an array, of Keras 2
            slope = slope.get("config", {}).get("value", slope.get("value"))
        self.put.activation("leaky_relu", float(slope))

    def _dense(self, said: Mapping[str, Any], variables: list[FloatArray]) -> None:
        W, b = self._weights(said, variables, 2)
        self.put.dense(np.ascontiguousarray(W.T), b)
        self._activation(said)

    def _weights(
        self, said: Mapping[str, Any], variables: list[FloatArray], ndim: int
    ) -> tuple[FloatArray, FloatArray]:
        has_bias = said.get("use_bias", True)
        if len(variables) != 1 + bool(has_bias) or variables[0].ndim != ndim:
            self.chain.refuse(f"its layer {said.get('name')!r:.40} lacks its weights")
        W = variables[0]
        n = W.shape[-1] if ndim == 2 or "depth_multiplier" not in said else prod(W.shape[-2:])
        b = variables[1] if has_bias else np.zeros(n)
        if b.shape != (n,):
            self.chain.refuse(f"its layer {said.get('name')!r:.40} has biases of {b.shape}")
        return W, b

    def _batch_norm(self, said: Mapping[str, Any], variables: list[FloatArray]) -> None:
        n, n_axes = self.put.shape[0], len(self.put.shape)
        axis = said.get("axis", -1)
        axis = axis[0] if isinstance(axis, list) and axis else axis
        parts = [a.reshape(-1) for a in variables]
        scale, center = bool(said.get("scale", True)), bool(said.get("center", True))
        if axis not in {-1, n_axes} or len(parts) != 2 + scale + center:
            self.chain.refuse(f"its layer {said.get('name')!r:.40} lacks its weights")
        gamma = parts[0] if scale else np.ones(n)
        beta = parts[scale] if center else np.zeros(n)
        mean, variance = parts[-2:]
        if not (variance >= 0.0).all():
            self.chain.refuse("a variance below 0")
        s = gamma / np.sqrt(variance + float(said.get("epsilon", 1e-3)))
        self.put.scale(s, beta - mean * s)

    def _normalisation(self, said: Mapping[str, Any], variables: list[FloatArray]) -> None:
        given = [said.get("mean"), said.get("variance")]
        held = (
            variables[:2]
            if len(variables) >= 2
            else [np.asarray(g) for g in given if g is not None]
        )
        if len(held) != 2 or said.get("invert"):
            self.chain.refuse("a normalisation without its mean and variance")
        mean, variance = (self.chain.numbers(part).reshape(-1) for part in held)
        s = 1.0 / np.maximum(np.sqrt(variance), 1e-7)  # as Keras keeps it from 0
        self.put.scale(s, -mean * s)

    def _rescaling(self, said: Mapping[str, Any]) -> None:
        s, t = (
            np.asarray(said.get(k, v), np.float64) for k, v in (("scale", 1.0), ("offset", 0.0))
        )
        self.put.scale(s.reshape(-1), t.reshape(-1))

    def _convolution(self, said: Mapping[str, Any], variables: list[FloatArray]) -> None:
        if said.get("groups", 1) != 1:
            self.chain.refuse("a convolution of groups is not read")
        W, b = self._weights(said, variables, 4)
        strides, dilations = (_pair(said, k, (1, 1)) for k in ("strides", "dilation_rate"))
        same = said.get("padding") == "same"
        self.put.convolution(W.transpose(3, 0, 1, 2), b, strides, dilations, same=same)
        self._activation(said)

    def _depthwise(self, said: Mapping[str, Any], variables: list[FloatArray]) -> None:
        W, b = self._weights(said, variables, 4)
        strides, dilations = (_pair(said, k, (1, 1)) for k in ("strides", "dilation_rate"))
        self.put.depthwise(W, b, strides, dilations, same=said.get("padding") == "same")
        self._activation(said)

    def _pooling(self, kind: str, said: Mapping[str, Any]) -> None:
        size = _pair(said, "pool_size", (2, 2))
        strides = _pair(said, "strides", size)
        self.put.pooling(kind, size, strides, same=said.get("padding") == "same")


def _shape_said(said: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """The shape of one input, where a layer says it."""
    found = said.get("batch_shape", said.get("batch_input_shape"))
    return tuple(found[1:]) if isinstance(found, list) else None


def _pair(said: Mapping[str, Any], key: str, usual: tuple[int, int]) -> tuple[int, int]:
    found = said.get(key) or usual
    one, other = (found, found) if isinstance(found, int) else found
    if min(int(one), int(other)) < 1:
        raise ValueError(f"{key} of {found}")
    return int(one), int(other)
