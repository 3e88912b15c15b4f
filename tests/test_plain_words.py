"""The pages of the documentation can be read: sentences are short, and pages begin and end well."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages import blocks

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# Pages of formulas and derivations, and one that has a subject of its own to state.
LONG = {"explanation/walks.md", "architecture.md", "guides/audit.md"}
# Pages whose sentences have one claim each.
SHORT = {
    *("explanation/depth.md", "explanation/precision.md", "explanation/certificates.md"),
    *("guides/samples.md", "guides/rules.md", "reference/results.md", "reference/methods.md"),
    *("glossary.md", "tutorial.md", "figures.md"),
}
MOST_OF_SHORT, MOST = 25, 35


def sentences(text: str) -> Iterator[str]:
    """Split Markdown into sentences; code counts as a word, and a cell of a table by itself."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "Code", text)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", "Formula", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for part in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. |\||#|>)", text):
        # A title, and what a program prints.
        if part.lstrip().startswith(("#", ">")):
            continue
        for cell in part.split("|") if part.lstrip().startswith("|") else [part]:
            line = re.sub(r"^([-*>]|\d+\.)\s+", "", " ".join(cell.split()))
            yield from filter(None, re.split(r'(?<=[.!?:;])\s+(?=[A-Z*(\["]|revelu)', line))


def name(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


def test_sentences_are_split_as_people_read_them():
    text = (
        "# A title\n\nOne, `two three`. Then [four](a.md): Five six.\n\n| a b | c |\n\n- d\n- e f"
    )
    assert list(sentences(text)) == [
        *("One, Code.", "Then four:", "Five six.", "a b", "c", "d", "e f"),
    ]


def test_the_pages_named_here_exist():
    assert {*SHORT, *LONG} <= set(map(name, PAGES))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_sentences_are_short(path):
    most = MOST_OF_SHORT if name(path) in SHORT else MOST
    if name(path) in LONG:
        return
    found = sentences(path.read_text(encoding="utf-8"))
    long = [sentence for sentence in found if len(sentence.split()) > most]
    assert not long, f"over {most} words: {long}"


@pytest.mark.parametrize("word", ["N(0, I)", "domain", "box", "tolerance", "skip"])
def test_the_glossary_has_the_words_of_every_account(word):
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| {re.escape(word)} \|", text, re.MULTILINE)


def test_figures_beside_what_the_tutorial_prints_are_of_it():
    """A number of the explanation below an account stands in the account."""
    path = DOCS / "tutorial.md"
    text = path.read_text(encoding="utf-8")
    printed = next(block.code for block in blocks(path) if block.language == "text")
    told = text[text.index("Line by line:") : text.index("## Check it again")]
    figures = re.findall(r"\d[\d,]*\d|\d", re.sub(r"\(\S+\)|N\(0, I\)", "", told))
    known = re.findall(r"\d[\d,]*\d|\d", printed)
    checks = [int(x.replace(",", "")) for x in re.findall(r"([\d,]+) (?:fresh|more)", printed)]
    known.append(f"{sum(checks):,}")
    assert figures
    assert set(figures) <= {*known, "32", "0"}


def test_a_warning_that_a_page_quotes_is_what_the_tutorial_prints():
    printed = " ".join((DOCS / "tutorial.md").read_text(encoding="utf-8").split())
    page = (DOCS / "explanation" / "precision.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^> (.+)$", page, re.MULTILINE)
    assert quoted
    assert all(line in printed for line in quoted)


@pytest.mark.parametrize("page", sorted(SHORT))
def test_a_page_begins_with_what_it_gives_and_ends_with_a_next_step(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    first = text.split("\n\n")[1]
    assert re.match(r"This (page|guide) |In ten minutes you ", first), first
    assert "`revelu " in text.rstrip().split("\n\n")[-1]
