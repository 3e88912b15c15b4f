"""Small pictures in characters, as a terminal shows them."""

from collections.abc import Sequence

import numpy as np

from revelu.report.pictures import in_own_scale, side_by_side

BLOCKS, LETTERS = " \u2591\u2592\u2593\u2588", " .:+#"
"""From the most negative number to the most positive one, by ink; the middle is near 0."""


def filters_in_shades(kernels: np.ndarray, encoding: str | None, width: int, most: int) -> str:
    """Draw filters in characters, two a number, as many beside each other as a line takes.

    Parameters
    ----------
    kernels : ndarray, shape (filters, channels, rows, columns)
        Each is drawn on a scale of its own, its channels side by side.
    encoding : str, optional
        Of what shows them: where it has no blocks, marks of ASCII stand for them.
    width : int
        Of a line.
    most : int
        Filters: more are no picture any more, but pages.
    """
    ramp = BLOCKS if _has(encoding, BLOCKS) else LETTERS
    pictures = [_shaded(side_by_side(kernel), ramp) for kernel in kernels[:most]]
    between = "  "
    across = max(1, (width + len(between)) // (len(pictures[0][0]) + len(between)))
    lines: list[str] = []
    for start in range(0, len(pictures), across):
        beside = pictures[start : start + across]
        names = [f"{start + i + 1}".ljust(len(picture[0])) for i, picture in enumerate(beside)]
        lines += [between.join(names), *map(between.join, zip(*beside, strict=True)), ""]
    n_more = len(kernels) - len(pictures)
    lines.append(f"{ramp[-1] * 2} is positive, {ramp[2] * 2} near 0, blank negative")
    return "\n".join([*lines, *([f"and {n_more} more"] if n_more else [])])


def _shaded(image: np.ndarray, ramp: Sequence[str]) -> list[str]:
    """Lines of a picture, framed by what no number is; NaN is a gap."""
    level = (np.nan_to_num(in_own_scale(image)) + 1.0) / 2.0 * len(ramp)
    marks = np.array(list(ramp))[np.minimum(level.astype(np.intp), len(ramp) - 1)]
    marks = np.where(np.isnan(image), "|", marks)
    return ["|" + "".join(m if m == "|" else 2 * m for m in line) + "|" for line in marks]


def _has(encoding: str | None, text: str) -> bool:
    try:
        text.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
