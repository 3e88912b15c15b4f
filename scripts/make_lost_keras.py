"""Make the models of ``tests/lost`` that need Keras alone, on any backend, and h5py.

    KERAS_BACKEND=torch python scripts/make_lost_keras.py tests/lost

``activations`` has layers in the place of activations, and activations that are layers of their
own.  ``packed.h5`` is ``keras2.h5`` of that folder with its variables in chunks, packed by gzip.
"""

import argparse
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
from keras import layers

SEED = 16_130_001


def write_activations(folder: Path) -> None:
    """Write a model of ReLUs, leaky and capped ones among them, and a softmax."""
    keras.utils.set_random_seed(SEED)
    model = keras.Sequential(
        [
            layers.Input((5,)),
            layers.Dense(8, activation=layers.LeakyReLU(negative_slope=0.1)),
            layers.Dense(7),
            layers.ReLU(max_value=1.5),
            layers.Dense(6, activation=layers.ReLU()),
            layers.Dense(6),
            layers.ReLU(negative_slope=0.25),
            layers.Dense(4),
            layers.Activation("relu"),
            layers.Dense(3),
            layers.Softmax(),
        ]
    )
    rng = np.random.default_rng(SEED)
    for layer in model.layers:
        layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    X = rng.normal(size=(16, 5)).astype(np.float32)
    for suffix in (".keras", ".h5"):
        model.save(folder / f"activations{suffix}")
    np.savez_compressed(folder / "activations.npz", X=X, Y=model.predict(X, verbose=0))


def pack(source: Path, target: Path) -> None:
    """Write a file again, its variables in chunks that are shuffled, packed and summed."""
    with h5py.File(source) as given, h5py.File(target, "w", libver="earliest") as file:
        _copy(given, file)


def _copy(given: Any, group: Any) -> None:
    group.attrs.update(given.attrs)
    for name, part in given.items():
        if isinstance(part, h5py.Group):
            _copy(part, group.create_group(name))
            continue
        packed = {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": True}
        group.create_dataset(name, data=part[()], **(packed if part.ndim else {}))


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    write_activations(folder)
    pack(folder / "keras2.h5", folder / "packed.h5")


if __name__ == "__main__":
    main()
