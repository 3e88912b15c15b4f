"""The targets that come along, each a network trained on real data."""

from importlib.resources import files
from os import PathLike
from pathlib import Path

from revelu.errors import InputError
from revelu.network import Network, load

_DEMOS = {
    "digits": "64-32-10 classifier (logits) of scikit-learn's 8 x 8 digits, float64",
    "mnist": "784-32-10 classifier (logits) of 5,000 MNIST digits, float32",
}


def demos() -> dict[str, str]:
    """Return the names and descriptions of the demo targets."""
    return dict(_DEMOS)


def demo_path(name: str) -> Path:
    """Return where the file of a demo lies.

    Raises
    ------
    InputError
        If there is no such demo.
    """
    if name not in _DEMOS:
        raise InputError(f"no demo {name!r}; there are: {', '.join(_DEMOS)}")
    return Path(str(files("revelu"))) / "demos" / f"{name}.onnx"


def named_path(name: str | PathLike[str]) -> Path:
    """Return the file that a name stands for: that of a demo, or the path itself.

    Raises
    ------
    InputError
        If there is no such demo.
    """
    text = str(name)
    return demo_path(text.removeprefix("demo:")) if text.startswith("demo:") else Path(text)


def named_network(name: str | PathLike[str]) -> Network:
    """Read the network that ``demo:NAME`` or a path stands for.

    Raises
    ------
    InputError
        If there is no such demo, or its file cannot be read.
    """
    return load(named_path(name))
