"""Audits of targets that are saturated where they are asked: what is not known is called so."""

import numpy as np
import pytest

import revelu
from revelu.oracle import softmax
from revelu.report.page import page
from revelu.report.sections import audit_table
from revelu.report.verdicts import verdict

# In raw units: N(0, I) lies thirty deviations off, where a class has all but 1e-14.
MEAN, DEVIATION = 60.0, 2.0
NETWORK = revelu.zoo.random_network([3, 4, 3], seed=5)
# Behind less noise a search for where the target decides may get there.
BLOCKED = {"noise 1e-2", "top-1 probability"}
MOST_QUERIES = 4_000


def target(X):
    return softmax(1.5 * NETWORK((X - MEAN) / DEVIATION))


@pytest.fixture(scope="module")
def found():
    return revelu.audit(target, dim_in=3, remote=True, budget=MOST_QUERIES)


@pytest.fixture(scope="module")
def in_domain():
    domain = revelu.Domain.gaussian(np.full(3, MEAN), np.full(3, DEVIATION))
    return revelu.audit(target, dim_in=3, remote=True, domain=domain, budget=MOST_QUERIES)


@pytest.mark.slow
def test_rows_without_digits_are_undecided(found):
    blocked = {row.defence for row in found.rows if row.saturated}
    assert blocked >= BLOCKED
    for row in found.rows:
        if row.saturated:
            assert (row.recovered, row.cut, row.is_judged) == ("nothing", True, False)


@pytest.mark.slow
def test_a_domain_decides_them(in_domain):
    """The same defences give the network away where the target decides."""
    noisy = [row for row in in_domain.rows if row.defence.startswith("noise")]
    assert {row.recovered for row in noisy} <= {"function", "weights"}
    assert not any(row.saturated for row in in_domain.rows)
    assert not any("saturated" in text for text in in_domain.warnings)
    assert "--like" not in in_domain.run_again


def test_advice_names_a_domain(found):
    assert found.best == ""
    assert found.conclusion == "none helps"
    assert found.run_again.startswith("--like DATA")
    first = found.advice[0]
    assert first.endswith(f"run again with {found.run_again}")
    assert "away is not known, for the target is saturated" in first
    assert "noise 1e-2" in first
    (said,) = [text for text in found.warnings if "saturated" in text]
    assert "saturated on N(0, I)" in said
    assert "--like DATA" in said
    assert all(name in said for name in BLOCKED)
    document = found.to_dict()
    assert said in document["warnings"]
    assert {row["defence"] for row in document["rows"] if row["saturated"]} >= BLOCKED


def test_tables_call_them_undecided_and_not_good(found):
    table = audit_table(found.to_dict())
    cells = {row[0].text: row[1] for row in table.rows}
    for name in BLOCKED:
        assert (cells[name].text, cells[name].tone) == ("undecided", "warn")
        assert "saturated" in cells[name].note
        assert cells[name].mark == "~…"
        assert "cut short" not in cells[name].note


def test_the_page_warns_in_its_banner(found):
    banner = page("audit", {"target": "t", **found.to_dict()}).split("</header>")[0]
    assert "the target is saturated on N(0, I)" in banner
    assert "the target is saturated where it was asked" in banner
    assert "--like DATA" in banner


def test_a_target_without_digits_as_it_is_is_undecided():
    """A service that rounds to four decimals: on N(0, I) all its answers are one."""

    def rounded(X):
        return np.round(target(X), 4)

    account = revelu.audit(rounded, dim_in=3, remote=True, budget=MOST_QUERIES).to_dict()
    assert account["rows"][0]["recovered"] == "nothing"
    assert all(row["saturated"] and row["cut"] for row in account["rows"])
    assert (account["severity"], account["conclusion"]) == ("unknown", "inconclusive")
    assert verdict("audit", account) == (
        "unknown: undecided: it is saturated where it was asked",
        "warn",
    )
    assert account["advice"][0].startswith("inconclusive: run again with --like DATA")


@pytest.mark.slow
@pytest.mark.parametrize("domain", [None, revelu.Domain.gaussian([1e6] * 3, [2.0] * 3)])
def test_what_is_affine_where_it_was_asked_is_warned_of(domain):
    """No line through N(0, I) is long enough to meet a bend of such units."""
    network = revelu.zoo.random_network([3, 4, 1], seed=5)
    found = revelu.audit(
        lambda X: network((X - 1e6) / DEVIATION), dim_in=3, domain=domain, budget=3_000
    )
    warned = [text for text in found.warnings if "affine" in text and "--like DATA" in text]
    assert len(warned) == (domain is None)
    assert ("no hidden layer" in found.facts["depth"]) == (domain is None)
    shown = page("audit", {"target": "t", **found.to_dict()})
    assert "<b>Undecided</b>: the target is saturated" in shown
