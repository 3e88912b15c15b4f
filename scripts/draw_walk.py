"""Draw a walk along the line on which a neuron of the second layer is 0.

    python scripts/draw_walk.py             write docs/walk.svg (needs matplotlib)

The network has two inputs, so that the neuron's surface is a line.  Its first layer is given, but
for the signs; all that is drawn besides was asked and found by the code that recovers networks.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from revelu import Network, zoo
from revelu.oracle import Oracle, measure_noise
from revelu.recover.deep.frame import KnownLayers
from revelu.recover.deep.seeds import SeedSearch
from revelu.recover.deep.stack import Stack
from revelu.recover.deep.surface import Surface
from revelu.recover.deep.walk import Walk, WalkTuning
from revelu.types import FloatArray

DRAWING = Path(__file__).parents[1] / "docs" / "walk.svg"
COLORS = {"wall": "#b8c4cc", "line": "#86bbd8", "found": "#33658a", "asked": "#f26419"}


@dataclass(frozen=True, eq=False)
class Course:
    """A walk that has ended, and how it began.

    Attributes
    ----------
    network : Network
        The truth.
    walk : Walk
    stops : ndarray, shape (n, 2)
        Where the rays from the seed stop, one for each way to go.
    asked : ndarray, shape (n, 4, 2)
        The questions that found the first points beyond a wall, four on each line.
    """

    network: Network
    walk: Walk
    stops: FloatArray
    asked: FloatArray

    @property
    def points(self) -> FloatArray:
        """What was found, the seed first, shape (n, 2)."""
        return self.walk.points.X

    @property
    def neuron(self) -> int:
        """Whose line this is, of the second layer."""
        return int(np.abs(self.network.preactivations(self.points[:1])[1]).argmin())

    @property
    def first_turn(self) -> tuple[FloatArray, FloatArray]:
        """The stop and the questions to which the first point belongs, shape (2,) and (4, 2)."""
        stop, asked = (
            np.linalg.norm(places - self.points[1], axis=1).argmin()
            for places in (self.stops, self.asked.mean(axis=1))
        )
        return self.stops[stop], self.asked[asked]


def walk_along(network: Network, seed: int) -> Course:
    """Walk from the first seed on a segment."""
    rng = np.random.default_rng(seed)
    oracle = Oracle(network, 2)
    noise = measure_noise(oracle, seed)
    W, b = network.weights[0], network.biases[0]
    sizes = np.linalg.norm(W, axis=1) * rng.choice([-1.0, 1.0], len(b))
    frame = KnownLayers(Stack(2), W / sizes[:, None], b / sizes)
    start, end = 2.0 * rng.standard_normal((2, 2))
    breaks = [frame.stack.with_layer(frame.W, frame.b).breaks(start, end - start, 0.0, 1.0)]
    first = SeedSearch().find(oracle, noise, start[None], end[None], breaks, rng)[0]

    # All entries are to be known.
    walk = Walk(frame, first, noise, rng, WalkTuning(refine=2.0))
    surface = Surface(frame, walk.signs, walk.estimate.drawn(walk.scale))
    aside = np.array([-first.normal[1], first.normal[0]])
    both = walk.points.joined(walk.points)
    stops = surface.trace(both, np.array([aside, -aside]), walk.tuning.rays)
    if stops is None:
        raise ValueError("no ray from the seed meets a wall")

    steps = walk.run()
    asked = questions = next(steps)
    with suppress(StopIteration):
        while True:
            if len(walk.points) == 1:
                asked = questions
            questions = steps.send(oracle(questions))
    return Course(network, walk, stops.at.X, asked.reshape(-1, 4, 2))


def draw(course: Course, path: Path) -> None:
    """Draw the whole line, and the first turn from near."""
    import matplotlib as mpl  # noqa: PLC0415 - optional
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "revelu"}):
        figure = Figure(figsize=(7, 3.9), layout="constrained")
        whole, near = figure.subplots(1, 2)
        whole.set_label("whole")
        near.set_label("near")
        middle = (course.points.max(axis=0) + course.points.min(axis=0)) / 2
        _draw_lines(whole, course, middle, 1.1 * np.abs(course.points - middle).max())

        stop, asked = course.first_turn
        _draw_lines(near, course, stop, 1.4 * np.abs(asked - stop).max())
        ahead = np.stack([stop, stop + 2.5 * (asked.mean(axis=0) - stop)])
        near.plot(*ahead.T, "--", color="black", lw=0.8, label="straight on")
        near.plot(*asked.T, "o-", color=COLORS["asked"], ms=4, lw=0.8, label="asked")

        for axes in (whole, near):
            found = axes.plot(*course.points[1:].T, ".", color=COLORS["found"], label="found")
            found[0].set(zorder=3, gid=f"{axes.get_label()}-found")
            axes.plot(*course.stops.T, "o", color="black", mfc="none", ms=8, label="first stops")
            axes.plot(*course.points[0], "*", color="black", ms=11, label="seed")
        handles = {
            label: handle
            for axes in (whole, near)
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=7, fontsize=8)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _draw_lines(axes: Any, course: Course, middle: FloatArray, radius: float) -> None:
    """Draw the walls and the neuron's line in a square."""
    x, y = (np.linspace(m - radius, m + radius, 400) for m in middle)
    first, second = course.network.preactivations(
        np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    )
    for z in first.T:
        axes.contour(x, y, z.reshape(400, 400), [0.0], colors=COLORS["wall"], linewidths=0.8)
    z = second[:, course.neuron].reshape(400, 400)
    line = axes.contour(x, y, z, [0.0], colors=COLORS["line"], linewidths=2.5)
    line.set_gid(f"{axes.get_label()}-line")
    axes.plot([], [], color=COLORS["wall"], lw=0.8, label="walls")
    axes.plot([], [], color=COLORS["line"], lw=2.5, label="where z = 0")
    axes.set(aspect="equal", xticks=[], yticks=[], xlim=x[[0, -1]], ylim=y[[0, -1]])


def course_of_the_page() -> Course:
    """Walk as the page shows it."""
    return walk_along(zoo.random_network([2, 8, 4, 1], seed=15), seed=14)


def main() -> None:
    """Write the picture."""
    draw(course_of_the_page(), DRAWING)


if __name__ == "__main__":
    main()
