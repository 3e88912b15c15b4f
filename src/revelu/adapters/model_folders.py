"""Folders of models: MLflow's, and those of Hugging Face's hub; the file in them that is asked."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from revelu.adapters.other_formats import kind_of_file, kind_of_flavour, refusal
from revelu.errors import FormatError, InputError
from revelu.formats.arrays import naming_damage

# A line of the files that MLflow writes: some spaces, a key, and perhaps a value.
_LINE = re.compile(r"(?P<indent> *)(?P<key>[\w.-]+):(?: +(?P<value>.*?))? *")

# Which entry of a flavour names its file.
_FILES = {
    "sklearn": "pickled_model",
    "pytorch": "model_data",
    "onnx": "data",
    "pyfunc": "model_path",
}
_INSIDE = {"pytorch": ("model.pth", "model.pt2", "model.pt")}

# What a folder of the hub may hold, the first that is there; ``{}`` is one of its folders.
_HUB = ("model.onnx", "onnx/model.onnx", "model.skops", "sklearn_model.joblib")


class Found(NamedTuple):
    """The file in a folder that is asked.

    Attributes
    ----------
    path : pathlib.Path
    words : str
        What the folder says of it.
    """

    path: Path
    words: str


def model_in(folder: Path) -> Found:
    """Find the file in a folder that is its model.

    Raises
    ------
    InputError
        If the folder is of no known kind, or its model is one that revelu does not open; the
        message names it.
    """
    if (folder / "MLmodel").is_file():
        return _of_mlflow(folder)
    if (kind := kind_of_file(folder)) is not None:
        raise refusal(folder, kind)
    if (folder / "config.json").is_file():
        return _of_hub(folder)
    raise InputError(
        f"{folder}: a folder with neither MLmodel nor config.json: name the model's file in it"
    )


def _of_mlflow(folder: Path) -> Found:
    flavours = _flavours(folder / "MLmodel")
    for name, entry in _FILES.items():
        if name not in flavours or entry not in flavours[name]:
            continue
        path = folder / flavours[name][entry]
        for inside in _INSIDE.get(name, ()):
            path = path / inside if (path / inside).is_file() else path
        _check_inside(folder, path)
        return Found(path, f"MLflow's flavour {name}, {path.relative_to(folder).as_posix()}")
    known = [kind for kind in map(kind_of_flavour, flavours) if kind is not None]
    if known:
        raise refusal(folder, known[0])
    listed = ", ".join(flavours) or "none"
    raise InputError(
        f"{folder}: an MLflow model of the flavours {listed}: ask mlflow.pyfunc.load_model(FOLDER)"
        ".predict by a function, or serve it"
    )


def _flavours(path: Path) -> dict[str, dict[str, str]]:
    """The entries of each flavour that ``MLmodel`` lists, those that are plain."""
    found: dict[str, dict[str, str]] = {}
    inside, flavour = False, ""
    for line in _text(path).splitlines():
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        depth, key, value = len(match["indent"]), match["key"], match["value"]
        if depth == 0:
            inside = key == "flavors"
        elif inside and depth == 2:
            flavour = key
            found[flavour] = {}
        elif inside and depth == 4 and flavour and value:
            found[flavour][key] = value.strip("'\"")
    return found


def _of_hub(folder: Path) -> Found:
    with naming_damage(folder / "config.json", "JSON file"):
        described = json.loads(_text(folder / "config.json"))
    if not isinstance(described, dict):
        raise FormatError(f"{folder / 'config.json'}: describes no model")
    kind = described.get("model_type") or (described.get("architectures") or [""])[0]
    section = described.get("sklearn")
    named = section.get("model", {}).get("file") if isinstance(section, dict) else None
    for name in (named, *_HUB):
        if isinstance(name, str) and (folder / name).is_file():
            _check_inside(folder, folder / name)
            return Found(folder / name, f"{kind or 'a model'} of a Hugging Face folder, {name}")
    what = f"a Hugging Face model of the type {kind}" if kind else "a Hugging Face folder"
    raise InputError(
        f"{folder}: {what}, without a model.onnx: export it (optimum-cli export onnx --model "
        f"{folder} OUT), or ask it by a function"
    )


def _check_inside(folder: Path, path: Path) -> None:
    """Refuse a file that a description names outside its folder, or that is not there."""
    if not path.resolve().is_relative_to(folder.resolve()):
        raise FormatError(f"{folder}: names a file outside itself, {path}")
    if not path.is_file():
        raise FormatError(f"{path}: no such file, which {folder} names")


def _text(path: Path, most: int = 2**20) -> str:
    """A file that describes a model, no larger than is read."""
    with naming_damage(path, "text"):
        if path.stat().st_size > most:
            raise FormatError(f"{path}: over {most:,} bytes")
        return path.read_text(encoding="utf-8")
