"""``revelu audit``: what is printed, refused, and told to the shell."""

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.report.sections import _barred, _share, audit_table
from revelu.report.verdicts import verdict
from revelu.tasks.audit.rows import AuditRow, document_rows


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command line in a folder with ``truth.npz`` and inputs, in little time."""
    monkeypatch.chdir(tmp_path)
    revelu.zoo.random_network([4, 6, 3], seed=2).save(tmp_path / "truth.npz")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((20, 4)))
    np.save(tmp_path / "wrong.npy", np.zeros((3, 5)))
    (tmp_path / "text.npy").write_text("no array")
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return lambda *arguments: runner.invoke(app, ["audit", *map(str, arguments)])


@pytest.mark.slow
def test_summary_has_a_line_a_row_and_ends_in_advice(invoke):
    result = invoke("truth.npz", "--inputs", "x.npy", "--price", 3, "--details")
    assert result.exit_code == ExitCode.CERTIFIED
    assert result.stdout.startswith("truth.npz: critical: gives away its weights\n")
    decision, thief = result.stdout.splitlines()[1:3]
    assert decision.startswith("decision")
    assert "in your price for the weights" in thief
    lines = [line.split()[0] for line in result.stdout.splitlines()]
    # A line in words, and one of the table.
    assert lines.count("noise") == 4
    for word in ("as", "float32", "labels", "top-1", "advice", "queries", "time"):
        assert word in lines
    for heading in ("fidelity, given", "same class, given", "cost"):
        assert heading in result.stdout


def test_where_a_target_is_asked_is_said_as_to_extract(invoke):
    boxed = one_object(invoke("truth.npz", "--box", -1, 1, "--budget", 7_000, "--json").stdout)
    assert boxed["domain"].startswith("uniform in [-1, 1]")
    assert boxed["rows"][0]["recovered"] == "weights"
    rows = {row["defence"]: row for row in boxed["rows"]}
    # Labels are asked for everywhere, which a box forbids.
    assert "may not leave the box" in rows["labels"]["not_tried"][0]
    assert rows["labels"]["queries"] is None
    labelled = one_object(invoke("truth.npz", "--labels", "--budget", 3_000, "--json").stdout)
    assert labelled["facts"]["answers"].startswith("labels: ")
    both = invoke("truth.npz", "--labels", "--box", -1, 1)
    assert both.exit_code == ExitCode.USAGE


@pytest.mark.parametrize("budget", [50, 1_500])
def test_a_spent_budget_is_its_own_exit_code(invoke, budget):
    result = invoke("truth.npz", "--budget", budget, "--json")
    assert result.exit_code == ExitCode.EXHAUSTED
    account = one_object(result.stdout)
    assert account["status"] == "budget_exhausted"
    assert account["queries"] <= budget
    assert bool(account["rows"]) == (budget > 100)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("truth.npz", "--inputs", "wrong.npy"), "wrong.npy has 5 columns, truth.npz has 4 inputs"),
        (("truth.npz", "--inputs", "text.npy"), "not a readable .npy file"),
        (("truth.npz", "--inputs", "missing.npy"), "missing.npy: "),
        (("truth.npz", "--price", "-1"), "--price must be"),
        (("missing.npz",), "no such file"),
        (("truth.npz", "--report", "x.pdf"), "ends in .html"),
    ],
)
def test_what_makes_no_sense_is_a_line(invoke, arguments, words):
    result = invoke(*arguments, "--json")
    assert result.exit_code == ExitCode.USAGE
    assert words in one_object(result.stdout)["error"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "-"), (1.0, "100.00%"), (0.99999999, "> 99.99%"), (0.5, "50.00%"), (-2.0, "< 0%")],
)
def test_all_is_said_of_nothing_less(value, shown):
    assert _share(value).text == shown


@pytest.mark.slow
def test_regressors_have_no_classes(invoke, tmp_path):
    revelu.zoo.random_network([4, 2, 1], seed=1).save(tmp_path / "one.npz")
    result = invoke("one.npz", "--report", "page.html")
    assert result.exit_code == ExitCode.CERTIFIED
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    # All fields stand at its end.
    text = result.stdout + page.partition("Every field")[0]
    for words in ("same class", "labels", "class kept"):
        assert words not in text


def test_a_page_of_what_was_cut_is_not_green():
    row = dict.fromkeys(AuditRow.__dataclass_fields__)
    row |= {"defence": "none", "recovered": "nothing", "notes": [], "not_tried": []}
    row |= {"implied_by": "", "extrapolated": False, "cut": False}
    account = {"status": "finished", "severity": "low", "missing": [], "rows": [row]}
    assert verdict("audit", account).tone == "good"
    account["rows"] = [row, {**row, "defence": "2 digits", "cut": True}]
    assert verdict("audit", account).tone == "warn"
    assert audit_table(account).rows[1][1].tone == "warn"


def test_nothing_is_not_called_certified():
    def note(recovered, **more):
        row = AuditRow("labels", recovered, certified=True, **more).vouched
        return audit_table({"rows": document_rows((row,))}).rows[0][1].note

    assert note("span") == "certified"
    assert note("nothing") == ""
    # More may be given away than a span that is certified.
    assert note("span", cut=True) == "cut short"


@pytest.mark.parametrize(("shares", "bars"), [([1.0, 0.9999], 0), ([1.0, 0.5], 2)])
def test_bars_are_where_they_differ(shares, bars):
    cells = _barred([_share(share) for share in shares])
    assert sum(cell.share is not None for cell in cells) == bars
