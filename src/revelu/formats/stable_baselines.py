"""Policies that Stable-Baselines3 has saved: the network that acts, from the archive's tensors.

An archive has ``policy.pth``, a state dict, and ``data``, whose text says which activation is
between the layers.  What is pickled inside ``data`` is not opened.
"""

import io
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.formats.arrays import check_is_file, naming_damage
from revelu.formats.open_model import LayerChain, OpenModel
from revelu.formats.torch_state import read_state_in

__all__ = ["read"]

_POLICY, _DATA = "policy.pth", "data"

# What acts, by the names of its tensors: the stem of hidden layers, the layer that follows them,
# the activation where nothing else is said, and what is behind it.
_ACTORS = (
    ("mlp_extractor.policy_net", "action_net", "Tanh", ""),
    ("q_net.q_net", "", "ReLU", ""),
    ("actor.latent_pi", "actor.mu", "ReLU", "atanh"),
    ("actor.mu", "", "ReLU", "atanh"),
)
_VALUES = "its answers are values of the actions, of which the largest is taken"
_SCALED = "actions are between -1 and 1, as the network gives them, not in units of the environment"
_MEANS = "its answers are the means of the actions"
_NORMALISED = (
    "it reads observations as the policy did: if that was trained behind VecNormalize, normalised "
    "ones, whose mean and deviation are in another file and not in this archive"
)


def read(path: Path, activation: str | None = None) -> OpenModel:  # noqa: ARG001 - it says its own
    """Read the network that acts.

    Raises
    ------
    FormatError
        If it is no such archive, or its network has other layers than linear ones and ReLUs.
    UntrustedError
        If its tensors are no plain state dict.
    """
    check_is_file(path)
    with naming_damage(path, "archive"), zipfile.ZipFile(path) as archive:
        if not {_POLICY, _DATA} <= set(archive.namelist()):
            raise FormatError(f"{path}: no {_POLICY} and {_DATA}, as Stable-Baselines3 has them")
        most = max(2**27, 4 * path.stat().st_size)
        if sum(archive.getinfo(name).file_size for name in (_POLICY, _DATA)) > most:
            raise FormatError(f"{path}: unpacks to over {most:,} bytes")
        said = json.loads(archive.read(_DATA))
        content = archive.read(_POLICY)
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            named = read_state_in(path, inner)
        return _model(path, named, said if isinstance(said, dict) else {})


def _model(path: Path, named: Mapping[str, np.ndarray], said: Mapping[str, Any]) -> OpenModel:
    found = next((a for a in _ACTORS if any(_numbered(n, a[0]) for n in named)), None)
    others = ("lstm", "mlp_extractor.shared_net")
    # What comes before the layers is also kept inside what acts: q_net.features_extractor.
    if found is None or any(
        name.startswith(others) or "features_extractor." in name for name in named
    ):
        listed = ", ".join(list(named)[:8])
        raise FormatError(f"{path}: no policy of linear layers; it has {listed}")
    stem, last, usual, head = found
    kwargs = said.get("policy_kwargs")
    given = kwargs.get("activation_fn") if isinstance(kwargs, dict) else None
    between = re.sub(r"\W+$", "", f"{given}").rpartition(".")[2] if given else usual
    if isinstance(kwargs, dict) and kwargs.get("squash_output"):
        raise FormatError(f"{path}: a policy that squashes its actions is not read")
    if between != "ReLU":
        raise FormatError(f"{path}: {between[:20]} is between its layers: no network of ReLUs")
    numbers = sorted({int(n) for name in named if (n := _numbered(name, stem))})
    names = [f"{stem}.{n}" for n in numbers] + ([last] if last else [])
    chain = LayerChain.of_file(path, (_weights(path, named, names[0]).shape[1],))
    for i, name in enumerate(names):
        if i:
            chain.unit("Relu")
        chain.dense(
            chain.numbers(_weights(path, named, name), 2), chain.numbers(named[f"{name}.bias"])
        )
    space = said.get("action_space")
    kind = f"{space.get(':type:')}" if isinstance(space, dict) else ""
    chooses = stem.startswith("mlp") and "log_std" not in named
    if chooses and "discrete.Discrete" not in kind:
        raise FormatError(f"{path}: a policy of several choices at once is not read")
    notes = [_VALUES] if stem.startswith("q_net") else [_SCALED] if head else []
    notes += [_MEANS] if "log_std" in named and not head else []
    is_choice = chooses or stem.startswith("q_net")
    k = chain.size
    return OpenModel(
        "policy of Stable-Baselines3",
        chain.row,
        chain.end(),
        head="softmax" if chooses else head or "none",
        classes=tuple(range(k)) if is_choice and k > 1 else (),
        notes=(*notes, _NORMALISED),
    )


def _numbered(name: str, stem: str) -> str:
    """The number of a layer's weights under a stem; nothing of other names."""
    match = re.fullmatch(rf"{re.escape(stem)}\.(\d{{1,4}})\.weight", name)
    return match[1] if match else ""


def _weights(path: Path, named: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    if f"{name}.weight" not in named or f"{name}.bias" not in named:
        raise FormatError(f"{path}: has no layer {name}")
    return named[f"{name}.weight"]
