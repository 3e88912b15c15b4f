"""``--report``: pages that stand alone, say what the account says, and execute nothing."""

import html
import itertools
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from typer.testing import CliRunner

import revelu
from conftest import one_object
from revelu.cli.app import app
from revelu.cli.exit_codes import ExitCode
from revelu.report.page import page
from revelu.report.verdicts import verdict

TRUTH = revelu.zoo.random_network([64, 3, 3], seed=3)
LARGEST = 300_000
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\" ' & {{ 7 * 7 }}"
VOID = {"meta", "link", "br", "img", "hr", "input", "image", "path", "use"}


class Page(HTMLParser):
    """What a page has in it."""

    def __init__(self, text):
        super().__init__()
        self.text, self.tags, self.headings, self.open = text, [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in {"h1", "h2", "h3"}:
            self.headings.append((tag, ""))
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open and self.open[-1] in {"h1", "h2", "h3"}:
            tag, text = self.headings[-1]
            self.headings[-1] = (tag, text + data)

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run the command line in a folder with targets and samples."""
    monkeypatch.chdir(tmp_path)
    TRUTH.save(tmp_path / "truth.npz")
    np.save(tmp_path / "x.npy", np.random.default_rng(0).uniform(size=(4, 64)))
    small = revelu.zoo.random_network([4, 2, 1], seed=1)
    X = np.random.default_rng(0).standard_normal((200, 4))
    np.savez(tmp_path / "samples.npz", X=X, y=small(X)[:, 0])
    Z = np.random.default_rng(0).standard_normal((4000, 4))
    np.savez(tmp_path / "rules.npz", X=Z, y=(Z[:, 0] >= 2.0).astype(float))
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return lambda *arguments: runner.invoke(app, list(map(str, arguments)))


def check_page(text):
    """What holds of every page."""
    found = Page(text)
    assert len(text.encode()) < LARGEST
    assert [tag for tag, _ in found.headings].count("h1") == 1
    assert found.headings[0][0] == "h1"
    assert found.named("html")[0]["lang"] == "en"
    # Nothing from elsewhere, and nothing that runs.
    assert not found.named("script")
    assert "default-src 'none'" in found.named("meta")[3]["content"]
    for tag, attributes in found.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:")), (tag, value)
    assert not re.findall(r"(?:@import|url\((?!#))", text)
    # Headings of tables, and names of pictures and regions.
    names = [attributes["id"] for _, attributes in found.tags if attributes.get("id")]
    assert len(set(names)) == len(names)
    assert len(found.named("caption")) == len(found.named("table"))
    assert all(attributes.get("scope") in {"col", "row"} for attributes in found.named("th"))
    for _, attributes in found.tags:
        if attributes.get("role") == "img":
            assert attributes["aria-labelledby"] in names
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in names
    references = re.findall(r'(?:url\(#|href="#)([^")]+)', text)
    assert set(references) <= set(names)
    return found


COMMANDS = {
    "extract": ["extract", "truth.npz"],
    "span": ["span", "truth.npz"],
    "obfuscate": ["obfuscate", "truth.npz", "--inputs", "x.npy", "-o", "y.npy"],
    "diagnose": ["diagnose", "truth.npz"],
    "verify": ["verify", "truth.npz", "truth.npz"],
    "compare": ["compare", "truth.npz", "truth.npz"],
    "learn": ["learn", "samples.npz"],
    "halfspaces": ["learn", "rules.npz", "--halfspaces", "or"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_writes_a_page(invoke, tmp_path, name):
    result = invoke(*COMMANDS[name], "--report", "page.html", "--json")
    account = one_object(result.stdout)
    # A page is written whether so few samples suffice or not.
    finished = account.get("status") not in {"unverified", "partial"}
    expected = ExitCode.CERTIFIED if finished else ExitCode.NOT_CERTIFIED
    assert (result.exit_code, result.stderr) == (expected, "")
    assert finished or COMMANDS[name][0] == "learn"
    assert account["outputs"][-1] == "page.html"
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    found = check_page(text)
    assert verdict(COMMANDS[name][0], account).words[1:] in text.replace("&#39;", "'")
    if account.get("certificate"):
        statement = account["certificate"]["statement"]
        assert statement[1:] in text.replace("&gt;", ">").replace("&#39;", "'")
    if account.get("queries"):
        assert ("h2", "Ledger") in found.headings
        assert f"{account['queries']:,}" in text
        assert sum(account["by_phase"].values()) == account["queries"]
    drawn = {"line", "comparison", "singular_values", "images", "digits"} & set(account["figures"])
    assert len(found.named("figure")) == len(drawn)
    assert len([tag for tag, _ in found.tags if tag == "svg"]) == len(drawn)


def test_pictures_show_what_was_recovered(invoke):
    result = invoke("extract", "truth.npz", "--report", "page.html", "--json")
    figures = one_object(result.stdout)["figures"]
    line, compared = figures["line"], figures["comparison"]
    np.testing.assert_allclose(line["recovered"], line["target"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(compared["recovered"], compared["target"], rtol=0, atol=1e-4)
    assert compared["largest_error"] < 1e-8
    assert 1 <= len(line["kinks"]) <= 3
    assert figures["singular_values"]["values"][0] == 1.0
    rows = np.array(figures["images"]["rows"])
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    true = TRUTH.weights[0] / np.linalg.norm(TRUTH.weights[0], axis=1)[:, None]
    assert np.abs(rows @ true.T).max(axis=1).min() > 0.999


@pytest.mark.slow
def test_what_is_for_researchers_is_folded(invoke, tmp_path):
    invoke("extract", "truth.npz", "--report", "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown, _, folded = text.partition("For researchers: on a random line, singular values")
    assert "<h3>Recovered against target</h3>" in shown
    for title in ("On a random line", "Singular values"):
        assert f"<h3>{title}</h3>" in folded.partition("</details>")[0]


@pytest.mark.slow
def test_cells_tell_their_column_where_tables_are_stacked(audited):
    found = Page(audited[1])
    columns = [words for tag, words in _headings_of_columns(audited[1])]
    labels = {
        attributes["data-label"] for attributes in found.named("td") if attributes.get("data-label")
    }
    assert {"recovered", "fidelity", "queries"} <= labels <= set(columns)


def _headings_of_columns(text):
    return re.findall(r'<th (scope="col")[^>]*>([^<]+)</th>', text)


def test_no_field_is_cut(audited):
    for value in json.loads(audited[0].stdout)["advice"]:
        assert html.unescape(audited[1]).count(value) >= 1


def test_pictures_are_within_the_budget(invoke):
    plain = one_object(invoke("extract", "truth.npz", "--json", "--checks", 100).stdout)
    n = plain["queries"]
    limited = ("extract", "truth.npz", "--json", "--checks", 100, "--budget", n)
    account = one_object(invoke(*limited, "--report", "page.html").stdout)
    assert account["queries"] == n
    assert "no further queries" in account["figures"]["note"]
    assert "line" not in account["figures"]
    assert "figures" not in plain


def test_refusals_come_before_any_question(invoke, tmp_path):
    for path, words in (
        ("page.txt", "ends in .html"),
        ("nowhere/page.html", "does not exist"),
    ):
        result = invoke("extract", "truth.npz", "--report", path, "--json")
        assert result.exit_code == ExitCode.USAGE
        assert words in one_object(result.stdout)["error"]
    (tmp_path / "t.html").write_text("")
    assert invoke("compare", "t.html", "truth.npz", "--report", "t.html").exit_code == 2


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """An audit of a hostile target that stops, as a page and as an account."""
    folder = tmp_path_factory.mktemp("audit")
    code = f"""
import revelu
truth = revelu.zoo.random_network([5, 3, 3], seed=3)
asked = 0
def target(X):
    global asked
    asked += len(X)
    if asked > 7000:
        raise RuntimeError({HOSTILE!r})
    return truth(X)
"""
    (folder / "hostile_target.py").write_text(code, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        arguments = ["audit", "hostile_target:target", "--trust", "--dim-in", "5", "--json"]
        result = CliRunner().invoke(app, [*arguments, "--price", "1", "--report", "page.html"])
    return result, (folder / "page.html").read_text(encoding="utf-8")


def test_a_target_that_stops_leaves_a_page(audited):
    result, text = audited
    assert result.exit_code == ExitCode.TARGET
    account = one_object(result.stdout)
    assert account["status"] == "error"
    assert account["rows"][0]["recovered"] == "weights"
    assert account["rows"][0].keys() >= {
        "defence",
        "recovered",
        "fidelity",
        "label_agreement",
        "queries",
        "cost",
    }
    assert len(account["rows"]) + len(account["missing"]) == 11
    assert account["missing"][-1] == "labels"
    found = check_page(text)
    assert ("h2", "Advice") in found.headings
    for name in account["missing"]:
        assert name in text
    assert "could not be judged" in text
    assert "alert(1)" in result.stderr


def test_whatever_a_target_says_is_text(audited):
    text = audited[1]
    assert "&lt;script&gt;alert(1)" in text
    assert "<script" not in text
    assert "<img" not in text
    assert "{{ 7 * 7 }}" in text.replace("&#39;", "'")


def test_hostile_accounts_are_text_everywhere():
    certificate = {"statement": HOSTILE, "n_checks": 3, "max_abs_error": 1.0}
    account = {
        "target": HOSTILE,
        "status": "unverified",
        "method": HOSTILE,
        "certificate": certificate,
        "evidence": [HOSTILE],
        "warnings": [HOSTILE],
        "by_phase": {HOSTILE: 3},
        "versions": {"revelu": HOSTILE},
        "facts": {HOSTILE: HOSTILE},
        "figures": {"note": HOSTILE},
        "seed": HOSTILE,
        HOSTILE: HOSTILE,
    }
    text = page("extract", account)
    check_page(text)
    assert text.count("&lt;script&gt;") > 10


def colours(dark):
    """The variables of the style sheet."""
    sheet = (files("revelu.report") / "page.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", sheet, re.DOTALL)
    assert len(blocks) == 2
    return dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[dark]))


def luminance(colour):
    """Relative luminance, WCAG 2.2."""
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out(dark):
    c = colours(dark)
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    for text, ground in itertools.product(("ink", "muted", "accent"), ("paper", "card")):
        assert contrast(c[text], c[ground]) >= 4.5
    for tone in ("good", "warn", "bad"):
        assert contrast(c[tone], c[f"{tone}-wash"]) >= 4.5
        assert contrast(c[tone], c["paper"]) >= 4.5
    for i in range(4):
        assert contrast(c[f"series-{i}"], c["card"]) >= 3.0


@pytest.mark.parametrize("widths", [[4, 6, 1], [4, 5, 6, 2], [4, 5, 4, 4, 1]])
def test_networks_are_affine_between_their_kinks(widths):
    network = revelu.zoo.random_network(widths, seed=2)
    x0, v = np.random.default_rng(5).standard_normal((2, 4))
    kinks = network.kinks_on_line(x0, v, (-3.0, 3.0))
    assert (np.diff(kinks) > 0).all()
    ends = np.concatenate([[-3.0], kinks, [3.0]])
    for left, right in itertools.pairwise(ends):
        t = np.linspace(left, right, 5)
        Y = network(x0 + t[:, None] * v)
        np.testing.assert_allclose(np.diff(Y, 2, axis=0), 0.0, atol=1e-10)
    # And bent at most of them: a neuron may be read by none that is on.
    step = 1e-6
    T = kinks[:, None] + step * np.array([-1.0, 0.0, 1.0])
    bent = [np.abs(np.diff(network(x0 + t[:, None] * v), 2, axis=0)).max() > 1e-9 for t in T]
    assert np.mean(bent) > 0.6
