"""Results as people look at them in Python: lines, cards of a notebook, pictures, pages."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from revelu.cli.app import app
from revelu.report import views
from revelu.tasks.notebook import NotebookLine, listener
from revelu.tasks.progress import Progress

pytest.importorskip("matplotlib")

TRUTH = revelu.zoo.random_network([5, 4, 2], seed=1)
NOTHING_ASKED = revelu.Ledger(0, 0, {})
SHOWN = ["recovery", "certificate", "diagnosis", "audit", "span", "span recovery", "null"]


@pytest.fixture(scope="module")
def results():
    """One of each, of a small target."""
    wide = revelu.zoo.random_network([9, 3, 1], seed=2)
    recovery = revelu.extract(TRUTH, checks=300, budget=1_000)
    spanned = revelu.recover_span(wide, checks=50, budget=2_000)
    return {
        "recovery": recovery,
        "certificate": recovery.certificate,
        "diagnosis": revelu.diagnose(TRUTH, budget=5_000),
        "audit": revelu.audit(TRUTH, budget=2_000),
        "span": spanned.span,
        "span recovery": spanned,
        "null": spanned.certificate,
    }


@pytest.fixture(params=SHOWN)
def found(results, request):
    return results[request.param]


def test_a_line_says_what_it_is(found):
    line = repr(found)
    assert line.startswith(f"<{type(found).__name__}")
    assert len(line) < 100
    assert "array" not in line


def test_printed_it_says_what_a_command_says(found):
    lines = str(found).splitlines()
    assert lines[0].startswith(f"{type(found).__name__}: ")
    assert max(map(len, lines)) <= 80
    account = found.to_dict()
    statement = (account.get("certificate") or {}).get("statement", "")
    said = [statement, *account.get("evidence", ()), *account.get("advice", ())]
    # A table's labels and the breaks of lines stand between the words.
    words = " ".join(" ".join(line.split()) for line in lines)
    assert all(" ".join(text.split()[:4]) in words for text in said if text)


def test_printed_it_is_what_the_command_line_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TRUTH.save("a.npz")
    found = revelu.extract("a.npz", checks=300, budget=1_000)
    command = ["extract", "a.npz", "--checks", "300", "--budget", "1000"]
    printed = CliRunner(env={"COLUMNS": "80"}).invoke(app, command).stdout.splitlines()
    assert str(found).splitlines()[1:] == [line for line in printed[1:] if line[:4] != "time"]


def test_printed_it_holds_what_brackets_hold():
    evidence = ("it is a tree [bold]",)
    found = revelu.Recovery(
        revelu.Status.NOT_IN_CLASS, None, ledger=NOTHING_ASKED, evidence=evidence
    )
    assert str(found).splitlines() == [
        "Recovery: not recovered: not such a network",
        "evidence  it is a tree [bold]",
    ]


def test_lines_have_what_was_found(results):
    recovery = results["recovery"]
    n = recovery.ledger.n_queries
    assert repr(recovery) == f"<Recovery: recovered, 5-4-2, {n:,} queries>"
    assert repr(recovery.certificate) == "<Certificate: passed, 300 checks>"
    assert "3 of 9 directions" in repr(results["span recovery"])
    nothing = revelu.Recovery(revelu.Status.NOT_IN_CLASS, None, ledger=NOTHING_ASKED)
    assert repr(nothing) == "<Recovery: not in class, 0 queries>"


def test_the_account_is_plain(found):
    account = found.to_dict()
    assert json.loads(json.dumps(account, allow_nan=False)) == account
    assert account["schema"] == 1
    assert account["status"]


def test_a_notebook_gets_a_card_with_a_picture(found):
    card = found._repr_html_()
    assert f"<b>{type(found).__name__}</b>" in card
    assert card.count("<svg") == 1
    # Colours of a page are not known in a notebook.
    assert "var(--" not in card
    assert len(card) < 100_000


def test_a_picture_is_shown_and_saved(found, tmp_path):
    drawn = found.plot()
    assert drawn._repr_svg_().startswith("<svg")
    assert drawn.alternative.endswith(".")
    drawn.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == drawn.svg
    with pytest.raises(revelu.FormatError, match=r"\.svg"):
        drawn.save(tmp_path / "a.png")


def test_a_page_is_written(found, tmp_path):
    found.report(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page
    with pytest.raises(revelu.FormatError, match=r"\.html"):
        found.report(tmp_path / "a.pdf")


def test_what_was_seen_is_escaped():
    evidence = ("<script>alert(1)</script>",)
    found = revelu.Recovery(
        revelu.Status.NOT_IN_CLASS, None, ledger=NOTHING_ASKED, evidence=evidence
    )
    card = found._repr_html_()
    assert "<script>" not in card
    assert "&lt;script&gt;" in card
    with pytest.raises(revelu.InputError, match="nothing to draw"):
        found.plot()


def test_without_matplotlib_a_card_has_no_picture(results, monkeypatch):
    def missing():
        raise revelu.MissingExtraError("pictures need matplotlib")

    monkeypatch.setattr(views, "check_drawable", missing)
    card = results["recovery"]._repr_html_()
    assert "<svg" not in card
    assert "recovered and certified" in card
    with pytest.raises(revelu.MissingExtraError):
        results["recovery"].plot()


def test_a_span_is_still_drawn_to_a_file(results, tmp_path):
    results["span"].plot(tmp_path / "values.png")
    assert (tmp_path / "values.png").stat().st_size > 1_000


# -- progress in a notebook ------------------------------------------------------------------


@pytest.fixture
def notebook(monkeypatch):
    """What IPython's display is given, as if this ran in a cell."""
    said = []

    def display(bundle, *, raw, display_id):
        assert raw
        assert display_id
        said.append(bundle["text/plain"])
        return SimpleNamespace(update=lambda bundle, **_: said.append(bundle["text/plain"]))

    shell = SimpleNamespace(kernel=object())
    fake = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    return said


def test_a_notebook_hears_of_progress(notebook):
    revelu.extract(TRUTH, checks=100, budget=1_000)
    assert notebook
    assert notebook[0].startswith("recover: measuring")


def test_who_is_named_hears_in_its_place(notebook):
    heard = []
    revelu.extract(TRUTH, checks=100, budget=1_000, progress=heard.append)
    assert heard
    assert not notebook


def test_elsewhere_nobody_hears(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert listener(None) is None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert listener(None) is None
    assert listener(print) is print


def test_a_line_changes_no_more_often_than_it_is_seen(notebook):
    line = NotebookLine(sys.modules["IPython"].display.display, pause=np.inf)
    for i in range(5):
        line(Progress("recover", i, 1, "asking"))
    assert notebook == ["recover: asking"]
