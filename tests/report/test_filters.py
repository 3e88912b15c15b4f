"""Filters as small pictures: on a page, and in characters."""

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.network import LayeredNetwork
from revelu.network.layers import Convolution, Dense, Relu
from revelu.report.pictures import pictures
from revelu.report.shades import BLOCKS, LETTERS, filters_in_shades
from revelu.tasks.report_data import ReportData

EDGE = np.array([[-1.0, 0.0, 1.0]] * 3)


def network_of(kernels):
    """A network whose first layer has these filters."""
    shape = (kernels.shape[1], 8, 8)
    conv = Convolution(kernels, np.zeros(len(kernels)), shape)
    return LayeredNetwork([conv, Relu(), Dense(np.ones((2, conv.size_out)), np.zeros(2))])


@pytest.mark.parametrize(("encoding", "ramp"), [("utf-8", BLOCKS), ("cp1252", LETTERS)])
def test_numbers_are_inked_by_their_size_and_sign(encoding, ramp):
    drawn = filters_in_shades(np.stack([EDGE, -2.0 * EDGE])[:, None], encoding, 80, 2)
    blank, _, zero, _, full = (2 * mark for mark in ramp)
    first, second = f"|{blank}{zero}{full}|", f"|{full}{zero}{blank}|"
    lines = drawn.splitlines()
    assert lines[0].split() == ["1", "2"]
    assert lines[1:4] == [f"{first}  {second}"] * 3
    assert drawn.encode(encoding).decode(encoding) == drawn


def test_a_filter_of_zeros_is_drawn():
    lines = filters_in_shades(np.zeros((1, 1, 2, 2)), None, 80, 1).splitlines()
    assert lines[1] == f"|{LETTERS[2] * 4}|"


def test_lines_are_no_longer_than_they_may_be():
    kernels = np.random.default_rng(0).standard_normal((40, 3, 5, 5))
    # A filter takes 34 marks, and a gap of 2 beside another one.
    for width, n in ((80, 2), (70, 2), (69, 1), (10, 1)):
        lines = filters_in_shades(kernels, "utf-8", width, 32).splitlines()
        assert len(lines[0].split()) == n
        assert {len(line) for line in lines if line.startswith("|")} == {34 * n + 2 * (n - 1)}
        assert lines[-1] == "and 8 more"


def test_inspect_draws_the_filters_of_a_file(tmp_path):
    path = tmp_path / "edges.onnx"
    network_of(EDGE[None, None]).save(path)
    result = CliRunner().invoke(app, ["inspect", f"{path}"])
    assert result.exit_code == 0
    marks = {line.strip("|") for line in result.stdout.splitlines() if line.startswith("|")}
    assert marks in ({" " * 2 + r[2] * 2 + r[4] * 2} for r in (BLOCKS, LETTERS))
    as_csv = CliRunner().invoke(app, ["inspect", f"{path}", "--csv"])
    assert "|" not in as_csv.stdout


def test_a_page_has_the_filters_and_not_the_rows_of_all_places():
    rng = np.random.default_rng(1)
    network = network_of(rng.standard_normal((45, 3, 3, 3)))
    figures = ReportData().of(network)
    assert set(figures) == {"filters"}
    shown = figures["filters"]
    assert (shown["shape"], shown["n"], len(shown["rows"])) == ([3, 3, 3], 45, 40)
    np.testing.assert_allclose(shown["rows"][0], network.filters[0].ravel(), rtol=1e-2)
    (drawn,) = pictures({"figures": figures})
    assert "40 of the 45 filters" in drawn.alternative
    assert "3 channels side by side" in drawn.alternative
    dense = revelu.zoo.random_network([64, 3, 1], seed=0)
    assert "filters" not in ReportData().of(dense)
