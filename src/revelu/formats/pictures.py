"""Pictures, drawn by matplotlib, which is imported when one is asked for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from revelu.errors import FormatError
from revelu.extras import import_extra
from revelu.formats.arrays import naming_system_errors

SUFFIXES = (".png", ".svg")


def check_picture(path: Path) -> None:
    """Check that a picture can be drawn and written, without writing it.

    Raises
    ------
    FormatError
        If the suffix is unknown or the folder is missing.
    MissingExtraError
        If matplotlib is not installed.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise FormatError(f"{path}: a picture ends in {' or '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise FormatError(f"{path}: the folder {path.parent} does not exist")
    _figure()


def draw_singular_values(path: Path, values: np.ndarray, floor: float, rank: int) -> None:
    """Draw singular values, the noise under them and the rank between.

    Parameters
    ----------
    path : path ending in ``.png`` or ``.svg``
    values : ndarray, shape (m,)
        Largest first.
    floor : float
        What noise makes of one.
    """
    check_picture(path)
    figure = _figure()(figsize=(5, 3), layout="constrained")
    axes: Any = figure.add_subplot()
    axes.semilogy(np.arange(1, 1 + len(values)), values, ".")
    if floor > 0:
        axes.axhline(floor, linestyle="--", color="gray", label="noise")
        axes.legend()
    axes.axvline(rank + 0.5, linestyle=":", color="gray")
    axes.set(xlabel="direction", ylabel="relative size", title=f"rank {rank}")
    _save(figure, path)


def draw_grid(
    path: Path, rows: Sequence[np.ndarray], titles: Sequence[Sequence[str]], shape: tuple[int, int]
) -> None:
    """Draw rows of images, a title above each; each image from its own least number to its largest.

    Parameters
    ----------
    path : path ending in ``.png`` or ``.svg``
    rows : sequence of ndarray, shape (m, height * width)
    titles : sequence of sequence of str
        One an image.
    shape : (int, int)
        Height and width of an image.
    """
    check_picture(path)
    n_columns = max(len(row) for row in rows)
    inches = (1.1 * n_columns, 1.1 * 1.5 * len(rows))  # an image, and its title above it
    figure = _figure()(figsize=inches, layout="constrained")
    grid: Any = figure.subplots(len(rows), n_columns, squeeze=False)
    for axes_row, row, row_titles in zip(grid, rows, titles, strict=True):
        for axes, image, title in zip(axes_row, row, row_titles, strict=True):
            axes.imshow(image.reshape(shape), cmap="gray")
            scale = f"{image.min():.3g} to {image.max():.3g}"
            axes.set_title(f"{title}\n{scale}", fontsize=6)
            axes.axis("off")
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    with naming_system_errors(path, "written"):
        figure.savefig(path, dpi=150)


def _figure() -> Any:
    return import_extra("matplotlib.figure", "pictures need matplotlib", "report").Figure
