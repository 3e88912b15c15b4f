"""Pictures of a page: SVG by matplotlib, in colours that follow the page's."""

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from revelu.extras import import_extra
from revelu.report.sections import name_of

# Colours that no picture has otherwise; the page's style sheet knows what they mean.
_COLOURS = {
    "#010203": "var(--ink)",
    "#020304": "var(--muted)",
    "#030405": "var(--rule)",
    "#040506": "var(--series-0)",
    "#050607": "var(--series-1)",
    "#060708": "var(--series-2)",
    "#070809": "var(--series-3)",
}
_INK, _MUTED, _RULE, *_SERIES = _COLOURS
_FONT = "system-ui, sans-serif"

_STYLE = {
    "svg.fonttype": "none",
    "font.size": 8.5,
    "text.color": _INK,
    "axes.edgecolor": _RULE,
    "axes.labelcolor": _MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "grid.color": _RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
}
# In inches of 96 pixels: on a telephone, 340 pixels wide, their texts are still read.
_WIDE, _SQUARE = (4.6, 2.7), (3.9, 3.4)


@dataclass(frozen=True)
class Picture:
    """A picture of a page.

    Attributes
    ----------
    title : str
    svg : str
        Markup that this module made; no text in it comes from elsewhere.
    alternative : str
        What it shows, for those who do not see it.
    wide : bool
    folded : bool
        For researchers: shown when it is asked for.
    """

    title: str
    svg: str
    alternative: str
    wide: bool = False
    folded: bool = False


def check_drawable() -> None:
    """Check that there is what draws.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    import_extra("matplotlib.figure", "pictures need matplotlib", "report")


def pictures(account: Mapping[str, Any]) -> list[Picture]:
    """Draw what an account has figures of.

    Parameters
    ----------
    account : mapping
        With ``figures``, and the ``rows`` of an audit.
    """
    import matplotlib as mpl  # noqa: PLC0415 - optional

    figures = account.get("figures") or {}
    attacked = (row for row in account.get("rows", []) if not row["implied_by"])
    shown = [row for row in attacked if row["error"] is not None]
    # Of a span its singular values are the evidence.
    folded = {"line"} | ({"singular_values"} if account.get("rank") is None else set())
    with mpl.rc_context(_STYLE):
        drawn = [
            replace(draw(figures[name]), folded=name in folded)
            for name, draw in _DRAWERS.items()
            if figures.get(name)
        ]
        return [_defences(shown), *drawn] if len(shown) > 1 else drawn


def _line(line: Mapping[str, Any]) -> Picture:
    """The target on a line, the copy on top, and where that bends."""
    figure, axes = _axes(_WIDE)
    t = np.array(line["t"])
    for series, values in zip(_SERIES, line["target"], strict=False):
        axes.plot(t, _array(values), color=series, linewidth=3.4, alpha=0.55)
    copies = line["recovered"] or []
    for values in copies:
        axes.plot(t, _array(values), color=_INK, linewidth=0.9, linestyle=(0, (4, 2)))
    kinks = _array(line["kinks"])
    axes.plot(kinks, np.zeros_like(kinks), "|", color=_MUTED, markersize=9, transform=_rug(axes))
    axes.set(xlabel="t, in lengths of an input", ylabel="answer")
    axes.margins(x=0)
    n = len(line["target"])
    what = f"{n} output{'s' * (n != 1)}"
    text = f"The answers of the target ({what}, broad lines) at {len(t)} points of a random line"
    if copies:
        text += f"; dashed, the recovered network, whose {len(kinks)} kinks are ticked below"
    return Picture("On a random line", _svg(figure, "line"), f"{text}.", wide=True)


def _comparison(compared: Mapping[str, Any]) -> Picture:
    figure, axes = _axes(_SQUARE)
    x, y = _array(compared["target"]), _array(compared["recovered"])
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))] if len(x) else [0.0, 1.0]
    axes.plot(ends, ends, color=_RULE, linewidth=1.0)
    axes.plot(x, y, ".", color=_SERIES[0], markersize=4, alpha=0.7)
    axes.set(xlabel="target", ylabel="recovered")
    text = (
        f"{len(x)} answers to fresh inputs of the target and of what was recovered; the largest "
        f"difference is {compared['largest_error']:.2g}."
    )
    return Picture("Recovered against target", _svg(figure, "comparison"), text)


def _singular_values(found: Mapping[str, Any]) -> Picture:
    figure, axes = _axes(_SQUARE)
    values = _array(found["values"])
    axes.semilogy(np.arange(1, 1 + len(values)), values, ".", color=_SERIES[0], markersize=5)
    text = f"{len(values)} singular values of the {found['of']}, relative to the largest"
    if found["floor"] > 0:
        axes.axhline(found["floor"], color=_MUTED, linewidth=1.0, linestyle="--")
        text += f"; noise alone makes {found['floor']:.1g}, dashed"
    if found.get("rank") is not None:
        axes.axvline(found["rank"] + 0.5, color=_MUTED, linewidth=1.0, linestyle=":")
        text += f"; {found['rank']} of them stand out, left of the dotted line"
    elif len(values):
        text += f", from 1 down to {values.min():.2g}"
    axes.set(xlabel="direction", ylabel="relative size")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return Picture("Singular values", _svg(figure, "values"), f"{text}.")


def _images(found: Mapping[str, Any]) -> Picture:
    """Rows as square pictures."""
    side = found["side"]
    rows = [_array(row).reshape(side, side) for row in found["rows"]]
    text = (
        f"{len(rows)} of the {found['n']} {found['of']} as pictures of {side} by {side}, those "
        "that move the answers most first; red is positive, blue negative, each on its own scale."
    )
    title = found["of"][0].upper() + found["of"][1:]
    return Picture(title, _sheet("images", rows), text, wide=True)


def _filters(found: Mapping[str, Any]) -> Picture:
    """Filters, the channels of each side by side."""
    channels, height, width = found["shape"]
    rows = [side_by_side(_array(row).reshape(channels, height, width)) for row in found["rows"]]
    text = f"{len(rows)} of the {found['n']} filters of the first layer, of {height} by {width}"
    text += f", {channels} channels side by side" if channels > 1 else ""
    text += ", in their order; red is positive, blue negative, each on its own scale."
    return Picture("Filters", _sheet("filters", rows, gap=min(channels, 2)), text, wide=True)


def side_by_side(kernel: np.ndarray) -> np.ndarray:
    """Channels of a filter, (channels, rows, columns), as one picture with a gap of NaN between."""
    gap = np.full((*kernel.shape[:2], 1), np.nan)
    return np.concatenate([np.concatenate([one, gap[0]], axis=1) for one in kernel], axis=1)[:, :-1]


def in_own_scale(image: np.ndarray) -> np.ndarray:
    """Numbers over the largest of them; NaN stays."""
    return np.asarray(image / max(float(np.nanmax(np.abs(image), initial=0.0)), 1e-300))


def _sheet(
    name: str, images: Sequence[np.ndarray], columns: int = 8, gap: int = 2, full: float = 7.4
) -> str:
    """Small pictures of one size, each on a scale of its own; the gap is in their pixels.

    A full row is wider, in inches, than pictures with texts: there is none to be read.
    """
    height, width = images[0].shape
    n_rows = math.ceil(len(images) / columns)
    down, along = height + gap, width + gap
    sheet = np.full((n_rows * down - gap, min(len(images), columns) * along - gap), np.nan)
    for i, image in enumerate(images):
        top, left = (i // columns) * down, (i % columns) * along
        sheet[top : top + height, left : left + width] = in_own_scale(image)
    inches = full * sheet.shape[1] / (columns * along - gap)
    figure, axes = _axes((inches, inches * sheet.shape[0] / sheet.shape[1]))
    axes.imshow(sheet, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="none")
    axes.axis("off")
    return _svg(figure, name)


def _defences(rows: list[Mapping[str, Any]], least: float = 1e-16) -> Picture:
    """What a defence costs those who use the answers, and those who copy the model.

    An error below ``least`` is drawn there: 0 has no place on the axis.
    """
    figure, axes = _axes((_WIDE[0], 1.0 + 0.28 * len(rows)))
    names = [name_of(row) for row in rows]
    places = np.arange(len(rows))
    copies = [max(row["error"], least) for row in rows]
    shifts = [row["shift"] or np.nan for row in rows]
    label = "error of the copy"
    axes.semilogx(copies, places, "o", color=_SERIES[1], markersize=8, label=label)
    label = "change of the answers"
    axes.semilogx(
        shifts, places, "D", color=_SERIES[0], markersize=7, fillstyle="none", label=label
    )
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set(xlabel="relative to the deviation")
    axes.grid(axis="x")
    axes.margins(x=0.08, y=0.5 / len(rows))
    figure.legend(loc="outside upper left", ncols=2)
    text = (
        "For each defence that left a copy: how far that copy is off (filled), and how far the "
        "defence itself shifts the answers (open). A copy left of its open mark is better than the "
        "answers that it was made from."
    )
    return Picture("What a defence costs whom", _svg(figure, "defences"), text, wide=True)


def _agreement(certificate: Mapping[str, Any]) -> Picture:
    """How far the worst check is below what counts as agreement."""
    figure, axes = _axes((_WIDE[0], 1.1))
    key = "max_abs_error" if "max_abs_error" in certificate else "max_change"
    error, tolerance = certificate[key] or 0.0, certificate["tolerance"] or 0.0
    least = 1e-16
    axes.semilogx([max(error, least)], [0], "o", color=_SERIES[0], markersize=9)
    axes.axvline(max(tolerance, least), color=_SERIES[1])
    axes.annotate("largest error", (max(error, least), 0), (0, 10), textcoords="offset points")
    axes.annotate("tolerance", (max(tolerance, least), 0), (4, -14), textcoords="offset points")
    axes.margins(x=0.2)
    axes.set(yticks=[], ylim=(-1, 1), xlabel="in units of the answers")
    text = (
        f"The largest error of {certificate['n_checks']:,} fresh checks is {error:.2g}; what "
        f"counts as agreement, the line, is {tolerance:.2g}."
    )
    return Picture("Checks", _svg(figure, "agreement"), text, wide=True)


def _conditions(conditions: Sequence[Mapping[str, Any]]) -> Picture:
    """Delta of every condition that has one: the shortest bar is the narrowest place."""
    figure, axes = _axes(_WIDE)
    shown = [c for c in conditions if c["delta"]]
    names = [c["name"].replace("_", " ") for c in shown]
    axes.barh(names, [c["delta"] for c in shown], color=_SERIES[0], height=0.6)
    axes.set(xscale="log", xlabel="delta with which it holds")
    axes.invert_yaxis()
    fails = [c["name"].replace("_", " ") for c in conditions if c["holds"] is False]
    text = "With which delta each condition of regularity holds; the shortest bar decides"
    text += f". Fails: {', '.join(fails)}." if fails else "."
    return Picture("Conditions of regularity", _svg(figure, "conditions"), text, wide=True)


def _digits(found: Mapping[str, Any]) -> Picture:
    """How many weights of each layer are known to each number of digits."""
    figure, axes = _axes(_WIDE)
    for i, digits in enumerate(found["layers"]):
        share = np.linspace(100.0, 0.0, len(digits))
        colour, label = _SERIES[i % len(_SERIES)], f"layer {i + 1}"
        axes.plot(np.sort(_array(digits)), share, color=colour, label=label)
    axes.set(xlabel="decimal digits", ylabel="% of the weights")
    axes.margins(x=0.02)
    axes.legend()
    text = (
        f"How many of {found['n']:,} weights are known to a number of digits or more, by their "
        "standard errors; one that nothing tells has none."
    )
    return Picture("Digits of the weights", _svg(figure, "digits"), text, wide=True)


_DRAWERS: dict[str, Callable[[Any], Picture]] = {
    "conditions": _conditions,
    "line": _line,
    "comparison": _comparison,
    "singular_values": _singular_values,
    "images": _images,
    "filters": _filters,
    "agreement": _agreement,
    "digits": _digits,
}


def _axes(size: tuple[float, float]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.add_subplot()


def _rug(axes: Any) -> Any:
    """Data along the axis, shares of its height across, a little above its foot."""
    from matplotlib.transforms import ScaledTranslation  # noqa: PLC0415 - optional

    return axes.get_xaxis_transform() + ScaledTranslation(0, 0.07, axes.figure.dpi_scale_trans)


def _array(values: Any) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def _svg(figure: Any, name: str) -> str:
    """A picture as markup for the body of a page, without a date or an address."""
    import matplotlib as mpl  # noqa: PLC0415 - optional

    buffer = io.StringIO()
    # Marks of different pictures must have different names.
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", rf"font: \1px {_FONT}", text)
    text = re.sub(
        r'(?<= id=")(?=(?:figure|axes|patch|line2d|text|matplotlib|xtick|ytick|legend|'
        r'PathCollection|image)[\w.]*")',
        f"{name}-",
        text,
    )
    for colour, variable in _COLOURS.items():
        text = text.replace(colour, variable)
    # It is labelled by its caption; its texts are no reading order.
    return text.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1)
