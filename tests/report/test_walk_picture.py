"""The picture of a walk shows what a walk does."""

import importlib.util
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
# Units of the drawing, in which the line is 2.5 wide.
MOST_OFF = 1.0


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("draw_walk", ROOT / "scripts/draw_walk.py")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules["draw_walk"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["draw_walk"]


@pytest.fixture(scope="module")
def course(script):
    return script.course_of_the_page()


def test_points_lie_on_the_line_of_one_neuron(course):
    z = course.network.preactivations(course.points)[1][:, course.neuron]
    assert len(z) > course.walk.frame.size
    np.testing.assert_allclose(z, 0.0, rtol=0, atol=1e-12)


def test_row_is_the_neurons(course):
    assert course.walk.is_accepted
    assert not course.walk.estimate.n_undetermined
    W, V = course.network.weights[:2]
    # The rows below have norm 1 in the frame.
    true = V[course.neuron] * np.linalg.norm(W, axis=1)
    found = course.walk.estimate.theta[: len(true)]
    share = true @ found / (np.linalg.norm(true) * np.linalg.norm(found))
    np.testing.assert_allclose(abs(share), 1.0, rtol=0, atol=1e-12)


def test_questions_are_asked_along_a_wall_and_on_both_sides_of_the_line(course):
    stop, asked = course.first_turn
    W, b = course.network.weights[0], course.network.biases[0]
    sums = W @ stop + b
    wall = np.abs(sums).argmin()
    np.testing.assert_allclose(sums[wall], 0.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.diff(asked @ W[wall]), 0.0, rtol=0, atol=1e-12)
    z = course.network.preactivations(asked)[1][:, course.neuron]
    assert z[1] * z[2] < 0


def test_line_turns_where_rays_stop(course):
    stop, _ = course.first_turn
    away = course.points[1] - stop
    before = course.points[0] - stop
    apart = away[0] * before[1] - away[1] * before[0]
    assert abs(apart) > 0.1 * np.linalg.norm(away) * np.linalg.norm(before)


def off_the_line(path: Path) -> np.ndarray:
    """How far the points found are from the neuron's line as drawn."""
    picture, svg = ET.parse(path).getroot(), "{http://www.w3.org/2000/svg}"  # noqa: S314 - our own
    uses = picture.findall(f".//{svg}g[@id='whole-found']//{svg}use")
    P = np.array([[float(use.get("x")), float(use.get("y"))] for use in uses])
    nearest = np.full(len(P), np.inf)
    for drawn in picture.findall(f".//{svg}g[@id='whole-line']//{svg}path"):
        for part in drawn.get("d").split("M")[1:]:
            Q = np.array(re.findall(r"-?[\d.]+", part), dtype=float).reshape(-1, 2)
            arm = np.diff(Q, axis=0)
            a, arm = Q[:-1][arm.any(axis=1)], arm[arm.any(axis=1)]
            t = ((P[:, None] - a) * arm).sum(axis=2) / (arm**2).sum(axis=1)
            feet = a + t.clip(0, 1)[:, :, None] * arm
            nearest = np.minimum(nearest, np.linalg.norm(P[:, None] - feet, axis=2).min(axis=1))
    return nearest


def test_published_picture_has_the_points_on_the_line(script):
    off = off_the_line(script.DRAWING)
    assert len(off)
    assert off.max() < MOST_OFF


def test_drawing_again_gives_such_a_picture(course, script, tmp_path):
    script.draw(course, tmp_path / "walk.svg")
    off = off_the_line(tmp_path / "walk.svg")
    # All but the seed, which has a mark of its own.
    assert len(off) == len(course.points) - 1
    assert off.max() < MOST_OFF
