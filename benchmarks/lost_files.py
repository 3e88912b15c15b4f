"""Small files of other programs whose weights lie open, by their suffixes."""

import io
import json
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import revelu

KEPT = Path(__file__).parents[1] / "tests" / "lost"
SUFFIXES = (".pkl", ".joblib", ".h5", ".keras", ".tflite", ".zip", ".mat", ".nnet")


def small_files(suffix: str) -> list[bytes]:
    """Return files of a kind, from which mutants are made."""
    network = revelu.zoo.random_network([4, 6, 5, 2], seed=0)
    if suffix in {".pkl", ".joblib"}:
        from lost_models import small_pickles  # noqa: PLC0415 - it needs scikit-learn

        return small_pickles(suffix)
    if suffix == ".zip":
        return [policy(network, actions=True), policy(network, actions=False)]
    if suffix == ".mat":
        return [mat(network, packed=packed) for packed in (False, True)]
    if suffix == ".nnet":
        return [nnet(network)]
    return [path.read_bytes() for path in sorted(KEPT.glob(f"*{suffix}"))]


def policy(network: revelu.Network, *, actions: bool, between: str | None = "ReLU") -> bytes:
    """Return an archive as Stable-Baselines3 writes one, of a policy or of values of actions."""
    import torch  # noqa: PLC0415 - large

    stem, last = ("mlp_extractor.policy_net", "action_net") if actions else ("q_net.q_net", "")
    n = network.n_hidden
    names = [f"{stem}.{2 * i}" for i in range(n)] + [last or f"{stem}.{2 * n}"]
    state = {}
    for name, W, b in zip(names, network.weights, network.biases, strict=True):
        state[f"{name}.weight"] = torch.tensor(np.array(W))
        state[f"{name}.bias"] = torch.tensor(np.array(b))
    buffer, tensors = io.BytesIO(), io.BytesIO()
    torch.save(state, tensors)
    kwargs: dict[str, Any] = {":type:": "<class 'dict'>", ":serialized:": "gAWVAAAA"}
    if between is not None:
        kwargs["activation_fn"] = f"<class 'torch.nn.modules.activation.{between}'>"
    space = {":type:": "<class 'gymnasium.spaces.discrete.Discrete'>", ":serialized:": "gAWV"}
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data", json.dumps({"policy_kwargs": kwargs, "action_space": space}))
        archive.writestr("policy.pth", tensors.getvalue())
        archive.writestr("_stable_baselines3_version", "2.7.0")
    return buffer.getvalue()


def mat(network: revelu.Network, *, packed: bool, named: Mapping[str, Any] | None = None) -> bytes:
    """Return a ``.mat`` file of cells ``W`` and ``b``, or of arrays by name."""
    from scipy.io import savemat  # noqa: PLC0415

    if named is None:
        columns = [b[:, None] for b in network.biases]
        named = {"W": cell(network.weights), "b": cell(columns), "note": "a network"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.mat"
        savemat(path, dict(named), do_compression=packed)
        return path.read_bytes()


def cell(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return what becomes a cell."""
    found = np.empty((1, len(arrays)), object)
    for i, array in enumerate(arrays):
        found[0, i] = np.array(array)
    return found


def nnet(network: revelu.Network, low: float = -5.0, high: float = 5.0) -> bytes:
    """Return a ``.nnet`` file, whose inputs have means of 1, 2, ... and ranges of 2, 3, ..."""
    d, k = network.dim_in, network.dim_out
    widths = network.architecture

    def line(numbers: Any) -> str:
        return ",".join(f"{float(x)!r}" for x in np.ravel(numbers)) + ","

    lines = ["// A network", f"{len(widths) - 1},{d},{k},{max(widths)},"]
    lines += [",".join(map(str, widths)) + ",", "0,"]
    lines += [line([low] * d), line([high] * d)]
    lines += [line([*range(1, d + 1), 0.5]), line([*range(2, d + 2), 4.0])]
    for W, b in zip(network.weights, network.biases, strict=True):
        lines += [*map(line, W), *map(line, b)]
    return "\n".join(lines).encode()


def hostile(n_bytes: int = 160 * 2**20) -> Iterator[tuple[str, bytes]]:
    """Yield names, each with the suffix of its file, and contents that were made to do harm.

    Parameters
    ----------
    n_bytes : int
        That a bomb unpacks to.
    """
    network = revelu.zoo.random_network([4, 6, 5, 2], seed=0)
    genuine = policy(network, actions=True)
    zeros = bytes(n_bytes)
    yield "a bomb of tensors.zip", _replaced(genuine, "policy.pth", zeros)
    yield "a bomb of text.zip", _replaced(genuine, "data", b'"' + zeros.replace(b"\0", b"a") + b'"')
    yield "an archive in itself.zip", _replaced(genuine, "policy.pth", genuine)
    pickled = b"\x80\x02cos\nsystem\n(S'touch revelu-was-run'\ntR."
    yield "code for tensors.zip", _replaced(genuine, "policy.pth", _torch_zip(pickled))
    kept = (KEPT / "table.keras").read_bytes()
    yield "a bomb of weights.keras", _replaced(kept, "model.weights.h5", zeros)
    yield "layers without end.keras", _replaced(kept, "config.json", b"[" * 100_000)
    whole = (KEPT / "table.h5").read_bytes()
    yield "a cut one.h5", whole[: len(whole) // 2]
    yield "a description of zeros.h5", whole.replace(b'{"class_name"', b"\0" * 13)
    lite = (KEPT / "classifier-float32.tflite").read_bytes()
    yield "a root beyond its end.tflite", b"\xff\xff\xff\x7f" + lite[4:]
    yield "a table of zeros.tflite", lite[:64] + bytes(len(lite) - 64)
    start = struct.pack("<II", 20, 42)
    yield "weights that are not there.tflite", lite.replace(start, b"\xff\xff\xff\x7f" * 2)
    bomb = struct.pack("<II", 15, 0) + zlib.compress(struct.pack("<II", 14, n_bytes) + zeros, 1)
    head = mat(network, packed=False)[:128]
    yield "a bomb.mat", head + bomb[:4] + struct.pack("<I", len(bomb) - 8) + bomb[8:]
    yield "cells in cells.mat", head + b"\x0e\0\0\0\xf0\xff\xff\x7f" * 10_000
    yield "layers without rows.nnet", b"9999999,4,2,9,\n" + b"4," * 10**6 + b"\n"


def _replaced(content: bytes, name: str, data: bytes) -> bytes:
    """An archive with another member of a name, packed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for one in old.namelist():
            held = data if one == name else old.read(one)
            new.writestr(one, held, zipfile.ZIP_DEFLATED, 1)
    return out.getvalue()


def _torch_zip(pickled: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", "little")
    return out.getvalue()
