"""Make the models of ``tests/lost``: what Keras and TensorFlow Lite write, and what they answer.

    python scripts/make_lost_models.py tests/lost
    TF_USE_LEGACY_KERAS=1 python scripts/make_lost_models.py tests/lost --keras2

Needs TensorFlow, which revelu does not, and tf_keras for the second line: run it in an environment
of its own.  Each model has a file of its own and, under its name, ``.npz``, the inputs ``X`` and
what it answered, ``Y``.
"""

import argparse
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SEED = 16_130_000


def models() -> dict[str, Any]:
    """Return small models of the layers that are read."""
    return {
        "table": keras.Sequential(
            [
                layers.Input((6,), name="given"),
                layers.BatchNormalization(),
                layers.Dense(8),
                layers.BatchNormalization(),
                layers.ReLU(),
                layers.Dropout(0.2),
                layers.Dense(5, activation="leaky_relu", use_bias=False),
                layers.BatchNormalization(scale=False),
                layers.Dense(3, activation="softmax", name="classes"),
            ]
        ),
        "image": keras.Sequential(
            [
                layers.Input((12, 10, 2)),
                layers.Rescaling(1 / 3, offset=0.5),
                layers.Conv2D(4, 3, padding="same", activation="relu"),
                layers.MaxPooling2D(2),
                layers.Conv2D(3, (3, 2), strides=2),
                layers.BatchNormalization(),
                layers.ReLU(),
                layers.AveragePooling2D((1, 2)),
                layers.Flatten(),
                layers.Dense(7, activation="relu6"),
                layers.Dense(3),
            ]
        ),
        "classifier": keras.Sequential(
            [
                layers.Input((42,)),
                layers.Dense(20, activation="relu"),
                layers.Dropout(0.5),
                layers.Dense(10, activation="relu"),
                layers.Dense(3, activation="softmax"),
            ]
        ),
        "filters": keras.Sequential(
            [
                layers.Input((12, 10, 2)),
                layers.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
                layers.DepthwiseConv2D(3, activation="relu"),
                layers.GlobalAveragePooling2D(),
                layers.Dense(1, activation="sigmoid"),
            ]
        ),
    }


def write_keras2(folder: Path) -> None:
    """Write a model as Keras 2 did."""
    import tf_keras  # noqa: PLC0415 - not beside Keras 3

    old = tf_keras.layers
    tf_keras.utils.set_random_seed(SEED)
    model = tf_keras.Sequential(
        [
            old.Dense(8, activation="relu", input_shape=(6,)),
            old.BatchNormalization(),
            old.Dense(5),
            old.LeakyReLU(alpha=0.2),
            old.Dense(3, activation="softmax"),
        ]
    )
    rng = np.random.default_rng(SEED)
    norm = model.layers[1]
    norm.set_weights([rng.uniform(0.5, 2.0, w.shape) for w in norm.get_weights()])
    X = rng.normal(size=(16, 6)).astype(np.float32)
    for suffix in (".keras", ".h5"):
        model.save(folder / f"keras2{suffix}")
    np.savez_compressed(folder / "keras2.npz", X=X, Y=model.predict(X, verbose=0))


def shake(model: Any, rng: np.random.Generator) -> None:
    """Give normalisations statistics that are not those of the beginning."""
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            layer.set_weights([rng.uniform(0.5, 2.0, w.shape) for w in layer.get_weights()])


def as_tflite(model: Any, kind: str, X: np.ndarray) -> tuple[bytes, np.ndarray]:
    """Convert a model, and ask the runtime for its answers."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if kind != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind == "int8":
        converter.representative_dataset = lambda: ([X[i : i + 1]] for i in range(len(X)))
    content = converter.convert()
    run = tf.lite.Interpreter(model_content=content)
    run.allocate_tensors()
    (given,), (answer,) = run.get_input_details(), run.get_output_details()
    found = []
    for row in X:
        run.set_tensor(given["index"], row[None])
        run.invoke()
        found.append(run.get_tensor(answer["index"])[0])
    return content, np.array(found)


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--keras2", action="store_true", help="what Keras 2 wrote, and no more")
    options = parser.parse_args()
    folder = options.folder
    if options.keras2:
        write_keras2(folder)
        return
    keras.utils.set_random_seed(SEED)
    rng = np.random.default_rng(SEED)
    for name, model in models().items():
        shake(model, rng)
        X = rng.normal(size=(16, *model.input_shape[1:])).astype(np.float32)
        if name in {"table", "image"}:
            for suffix in (".keras", ".h5"):
                model.save(folder / f"{name}{suffix}")
            np.savez_compressed(folder / f"{name}.npz", X=X, Y=model.predict(X, verbose=0))
            continue
        for kind in ("float32", "float16", "int8"):
            content, Y = as_tflite(model, kind, X)
            (folder / f"{name}-{kind}.tflite").write_bytes(content)
            np.savez_compressed(folder / f"{name}-{kind}.npz", X=X, Y=Y)


if __name__ == "__main__":
    main()
