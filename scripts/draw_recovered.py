"""Draw weights of a target beside those that its answers gave away.

    python scripts/draw_recovered.py        write docs/recovered.svg (needs matplotlib)

The target is demo:digits, whose inputs are pictures, so its weights are, too.
"""

import base64
import io
from pathlib import Path

import numpy as np

import revelu
from revelu.types import FloatArray

DRAWING = Path(__file__).parents[1] / "docs" / "recovered.svg"
TARGET = Path(revelu.__file__).parent / "demos" / "digits.onnx"
SIDE = 8


def rows(n: int) -> tuple[FloatArray, FloatArray]:
    """Return rows of the first layer, true and recovered, those that move the answers most first.

    Rows are aligned: neurons come back in another order, and each may be scaled.
    """
    truth = revelu.load(TARGET)
    recovery = revelu.extract("demo:digits", seed=0)
    if recovery.status is not revelu.Status.RECOVERED or recovery.network is None:
        raise RuntimeError(f"not recovered: {recovery.status}")
    aligned = revelu.align(recovery.network, truth)
    order, scales = aligned.permutations[0], aligned.scales[0]
    true, found = truth.weights[0], recovery.network.weights[0][order] * scales[:, None]
    first = np.argsort(-np.linalg.norm(true, axis=1) * np.linalg.norm(truth.weights[1], axis=0))
    return true[first[:n]], found[first[:n]]


def draw(pairs: tuple[FloatArray, FloatArray], path: Path) -> None:
    """Draw two rows of pictures, what is theirs written at their left."""
    n, size, gap, left = len(pairs[0]), 72, 8, 96
    parts = []
    for j, (label, images) in enumerate(zip(("the target", "recovered"), pairs, strict=True)):
        top = j * (size + gap)
        parts.append(f'<text x="0" y="{top + size / 2 + 5}">{label}</text>')
        for i, image in enumerate(images):
            place = f'x="{left + i * (size + gap)}" y="{top}" width="{size}" height="{size}"'
            parts.append(f'<image {place} href="data:image/png;base64,{_png(image)}"/>')
    width, height = left + n * (size + gap) - gap, 2 * size + gap
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="15" fill="#7a8594">\n'
        "<title>Weights of eight neurons, and what was recovered from answers</title>\n"
        "<style>image { image-rendering: pixelated }</style>\n" + "\n".join(parts) + "\n</svg>\n",
        encoding="utf-8",
    )


def _png(row: FloatArray) -> str:
    """One picture, red where positive and blue where negative, on its own scale."""
    from matplotlib.image import imsave  # noqa: PLC0415 - optional

    image = np.kron(row.reshape(SIDE, SIDE) / np.abs(row).max(), np.ones((9, 9)))
    buffer = io.BytesIO()
    imsave(buffer, image, vmin=-1.0, vmax=1.0, cmap="RdBu_r", metadata={"Software": None})
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def main() -> None:
    """Draw it."""
    draw(rows(8), DRAWING)


if __name__ == "__main__":
    main()
