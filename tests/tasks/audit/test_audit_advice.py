"""What follows from the rows of an audit, of rows made by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ks_2samp

from revelu.oracle import Noisy, Normalised, Oracle, Rounded, degrade
from revelu.recovery import Recovery, Status
from revelu.tasks.audit.advice import advice
from revelu.tasks.audit.attack import Finding
from revelu.tasks.audit.changes import changes, exceeds
from revelu.tasks.audit.conclusion import concluded, decision, serves
from revelu.tasks.audit.defences import Defence, defences, in_turn
from revelu.tasks.audit.implied import broken_by, with_implied
from revelu.tasks.audit.nature import not_as_network
from revelu.tasks.audit.outcome import Spent, what_next
from revelu.tasks.audit.rows import AuditRow, document_rows

DATA = "10 inputs"


def made(defence, recovered, kept=1.0, shift=0.0, queries=100, **more):
    return AuditRow(defence, recovered, queries=queries, labels_kept=kept, shift=shift, **more)


def by_digits(finer, coarser):
    """Whether answers of one defence can be made of those of another, by their digits alone."""
    n = {"none": 17, "float32": 7, "labels": 0}
    digits = [n[name] if name in n else int(name.split()[0]) for name in (finer, coarser)]
    return digits[0] > digits[1]


# What defences make of each other.

LISTED = {d.name: d for d in defences(1.0, 3, 0, probabilities=False)}


@pytest.mark.parametrize(
    ("finer", "coarser", "makes"),
    [
        ("none", "labels", True),
        ("none", "float32", True),
        ("float32", "6 digits", True),
        ("6 digits", "2 digits", True),
        ("2 digits", "6 digits", False),
        ("noise 1e-4", "noise 1e-2", True),
        ("noise 1e-2", "noise 1e-4", False),
        # Of an answer far from 0 digits are coarser than noise, near 0 finer.
        ("6 digits", "noise 1e-2", False),
        ("noise 1e-4", "2 digits", False),
        ("6 digits", "labels", False),
        ("labels", "top-1 probability", False),
        ("none", "none", False),
        # Noise hides the steps of a grid that is much finer.
        ("grid 2^-16", "noise 1e-2", True),
        ("grid 2^-16", "2 digits", False),
        ("6 digits", "grid 2^-16", False),
    ],
)
def test_what_can_be_made_of_what(finer, coarser, makes):
    assert LISTED[finer].makes(LISTED[coarser]) is makes


def test_noise_that_was_clipped_is_added_to_where_it_is_faint():
    noises = (1e-4, 5e-3, 1e-2)
    listed = defences(0.3, 3, 0, probabilities=True, noises=noises)
    none, faint, half, loud = (d for d in listed if d.name == "none" or d.name[0:5] == "noise")
    assert none.makes(loud)
    assert faint.makes(loud)
    # Clipping has moved these by half the noise that others have.
    assert not half.makes(loud)
    assert not loud.makes(faint)
    P = np.tile([0.98, 0.015, 0.005], (100_000, 1))
    more = Noisy(np.sqrt(loud.sigma**2 - faint.sigma**2), 5), Normalised()
    made_of_faint = degrade(lambda _: faint.of(P), *more)(P)
    for j in range(3):
        assert ks_2samp(made_of_faint[:, j], loud.of(P)[:, j]).pvalue > 1e-3


def test_the_order_of_attacks():
    listed = defences(1.0, 1, 0, probabilities=False)
    names = [listed[i].name for i in in_turn(listed)]
    assert names[:6] == ["none", "float32", "4 digits", "6 digits", "2 digits", "3 digits"]
    assert names[6:] == ["noise 1e-2", "noise 1e-4", "grid 2^-16"]
    one = [Defence("none"), Defence("n", (Noisy(1.0, 0),), sigma=1.0), Defence("r", (Rounded(2),))]
    assert sorted(in_turn(one)) == [0, 1, 2]


# Rows are monotone.


def test_cut_rows_give_away_what_coarser_ones_do():
    cut = made("4 digits", "nothing", shift=1e-4, cut=True)
    coarser = made("2 digits", "function", shift=1e-2, queries=50, error=1e-3)
    other = made("labels", "span", shift=None, cut=True)
    finer = made("float32", "weights", shift=1e-8, error=1e-8)
    first, second, *rest = with_implied([cut, coarser, other, finer], by_digits)
    assert (first.recovered, first.extrapolated, first.cut) == ("function", True, False)
    assert (first.defence, first.shift, first.queries) == ("4 digits", 1e-4, 50)
    assert first.implied_by == "2 digits"
    assert "2 digits can be made of these answers" in first.notes[0]
    assert [second, *rest] == [coarser, other, finer]
    # Finer answers than these cannot be made of them.
    assert with_implied([cut, finer], by_digits) == [cut, finer]


def test_no_row_gives_away_less_than_a_coarser_one():
    rows = [made("none", "nothing"), made("6 digits", "span"), made("3 digits", "function")]
    rows += [made("2 digits", "nothing"), made("labels", "span", shift=None)]
    kinds = [r.recovered for r in with_implied(rows, by_digits)]
    assert kinds == ["function", "function", "function", "span", "span"]
    assert with_implied(rows, by_digits)[0].implied_by == "3 digits"
    # What is implied by a row whose attack was cut, and found little, stays open.
    open_row = with_implied([made("2 digits", "nothing", cut=True), rows[-1]], by_digits)[0]
    assert (open_row.recovered, open_row.is_judged) == ("span", False)


def test_only_weights_spare_an_attack():
    rows = [made("3 digits", "function"), made("2 digits", "weights", implied_by="x")]
    assert broken_by("6 digits", rows, by_digits) is None
    rows.append(made("2 digits", "weights"))
    assert broken_by("6 digits", rows, by_digits) == rows[-1]
    assert broken_by("2 digits", rows, by_digits) is None


# Advice.


def test_advice_takes_the_coarsest_of_what_serves():
    rows = [
        made("none", "weights", queries=300),
        made("4 digits", "function", queries=200),
        made("3 digits", "nothing", kept=0.9995),
        made("2 digits", "nothing", kept=0.98),
        made("labels", "span", shift=None),
    ]
    said = advice(rows, 3, DATA)
    assert "3 digits (100.0% of classes)" in said[0]
    assert "nothing by these attacks" in said[0]
    assert "the span of the first layer" in said[1]
    assert "about 200 queries (4 digits)" in said[2]
    assert (concluded(rows, 3).kind, concluded(rows, 3).best) == ("helps", rows[2])
    assert [serves(r, 3) for r in rows] == [True, True, True, False, False]
    assert not serves(made("2 digits", "nothing", shift=0.02), 1)
    assert advice([], 3, "") == ()
    assert concluded([], 3).kind == "inconclusive"


def test_no_defence_is_advised_that_gives_away_as_much():
    rows = [made("none", "weights"), made("4 digits", "function"), made("2 digits", "weights")]
    label = made("labels", "span", shift=None)
    said = advice([*rows, label], 3, DATA)[0]
    assert said == (
        "none of these numeric defences helps: all that keep the class give away the weights or a "
        "copy of the function; labels leave the span of the first layer"
    )
    assert "labels" not in advice([*rows, replace(label, cut=True)], 3, DATA)[0]
    # Digits that change classes hide more, and serve no one.
    rows.append(made("3 digits", "nothing", kept=0.5))
    assert concluded(rows, 3).kind == "none helps"
    assert "copy of the function; 3 digits do not keep the class" in advice(rows, 3, DATA)[0]


@pytest.mark.parametrize("found", ["nothing", "span"])
def test_nothing_is_concluded_where_the_answers_as_they_are_were_cut(found):
    rows = [made("none", found, cut=True), made("4 digits", "span"), made("2 digits", "nothing")]
    said = advice(rows, 3, DATA, run_again="--max-seconds 500")
    assert said[0].startswith("inconclusive: run again with --max-seconds 500; what ")
    assert "the answers as they are" in said[0]
    assert concluded(rows, 3).best is None
    assert not any("least" in text or "helps:" in text for text in said)


@pytest.mark.parametrize("found", ["nothing", "span"])
def test_a_row_that_was_cut_is_no_defence_and_spoils_no_other(found):
    first, held = made("none", "weights"), made("4 digits", "nothing")
    cut = made("2 digits", found, cut=True)
    best = concluded([first, held, cut], 3)
    assert (best.kind, best.best, best.unknown) == ("helps", held, ("2 digits",))
    none = concluded([first, made("4 digits", "weights"), cut], 3)
    assert (none.kind, none.best, none.unknown) == ("none helps", None, ("2 digits",))
    said = advice([first, held, cut], 3, DATA, run_again="--max-seconds 500")[0]
    assert "what 2 digits give away is not known" in said
    assert said.endswith("run again with --max-seconds 500")
    # Where no other was tried to its end nothing is said of defences.
    assert concluded([first, cut], 3).kind == "inconclusive"


def test_a_defence_that_leaves_a_copy_is_none():
    first, held = made("none", "weights"), made("noise 1e-2", "nothing")
    # Whether its attack was cut or not: nearly the function is all there is to give away.
    near = made("4 digits", "nothing", cut=True, fidelity=0.946)
    found = concluded([first, near], 3)
    assert (found.kind, found.unknown) == ("none helps", ())
    assert concluded([first, near, held], 3).best == held
    partly = replace(near, fidelity=0.7, cut=False)
    found = concluded([first, partly], 3)
    assert (found.kind, found.best) == ("helps", partly)
    assert "a copy that explains 70.0%" in decision(found, [first, partly], 3)


def test_rows_that_were_not_begun_are_named():
    rows = [made("none", "weights"), made("float32", "weights")]
    found = concluded(rows, 3, ["2 digits"])
    assert (found.kind, found.unknown) == ("inconclusive", ("2 digits",))
    withheld = concluded(rows, 3, ["labels", "top-1 probability"])
    assert (withheld.kind, withheld.unknown) == ("none helps", ())


def test_a_decision_is_a_sentence():
    first = made("none", "weights", queries=500)
    rows = [first, made("4 digits", "function", queries=700)]

    def said(rows):
        return decision(concluded(rows, 3), rows, 3)

    assert said(rows) == "no defence that was tried helps; limits below 500 queries do"
    label = made("labels", "span", shift=None)
    assert said([*rows, label]) == (
        "no defence of numbers that was tried helps; labels alone and limits below 500 queries do"
    )
    assert said([*rows, replace(label, cut=True)]) == said(rows)
    held = made("noise 1e-2", "nothing")
    assert said([*rows, held, label]) == (
        "noise 1e-2 helps: it gives away nothing by these attacks; so do labels alone and limits "
        "below 500 queries"
    )
    cut = made("2 digits", "nothing", cut=True)
    assert said([*rows, cut]).endswith("; what 2 digits give away is not known")
    assert said([made("none", "nothing")]) == "no defence is needed against these attacks"
    near = made("none", "nothing", undecided=True, fidelity=0.853)
    assert said([near]) == (
        "not known: no network that these attacks recover was found, and a copy of 85.3% was made"
    )
    assert said([made("none", "nothing", cut=True)]).startswith("not known yet: what the answers")
    assert decision(concluded([], 3), [], 3) == ""


def test_labels_are_advised_where_they_were_seen_to_give_away_less():
    first = made("none", "weights", queries=50)

    def said(label, first=first):
        return advice([first, label], 3, DATA)[1]

    label = made("labels", "span", shift=None, queries=900)
    assert said(label).startswith("where the class is all that callers need, answer labels: ")
    assert said(replace(label, tries=3)).endswith(
        "the span of the first layer for 900 queries, and 3 searches for the network found none"
    )
    # What was cut may give away more than it shows.
    assert said(replace(label, cut=True)) == (
        "labels alone are not advised: they give away the span of the first layer, and whether "
        "they give away more is not known"
    )
    nothing = made("labels", "nothing", shift=None, cut=True)
    assert said(nothing).endswith("not advised: what they give away is not known")
    for recovered, what in (("weights", "the weights"), ("function", "a copy of the function")):
        assert said(replace(label, recovered=recovered)) == (
            f"labels alone are no defence: they give away {what} for 900 queries, where numbers "
            "do for 50"
        )
        numbers = advice([first, replace(label, recovered=recovered)], 3, DATA)[0]
        assert numbers.endswith("give away the weights, and so do labels")
    # As much as the answers as they are.
    assert "no defence" in said(label, made("none", "span"))
    assert "answer labels" in said(label, made("none", "span", cut=True))


def test_what_gives_nothing_away_needs_no_defence():
    rows = [made("none", "nothing"), made("2 digits", "nothing", cut=True)]
    assert advice(rows, 3, DATA)[0].endswith("no defence is needed")
    assert "no limit on queries follows" in advice(rows, 3, DATA)[1]


def test_advice_is_three_lines_at_most():
    first = made("none", "weights")
    rows = [first, made("2 digits", "nothing"), made("labels", "span", shift=None)]
    assert len(advice(rows, 3, DATA)) == len(advice(rows[:2], 1, DATA)) == 3


# Against a baseline.


def compared(old, new):
    found = changes(document_rows(old), document_rows(new))
    return {change.defence: change.direction for change in found}


def test_what_became_of_rows_since_a_baseline():
    old = (made("none", "weights"), made("2 digits", "span"), made("labels", "span", shift=None))
    assert compared(old, old) == {}
    assert compared(old, (replace(old[0], queries=109), *old[1:])) == {}
    assert compared(old, (replace(old[0], queries=200), *old[1:])) == {"none": "better"}
    assert compared(old, (replace(old[0], queries=50), *old[1:])) == {"none": "worse"}
    assert compared(old, (old[0], replace(old[1], recovered="function"), old[2])) == {
        "2 digits": "worse"
    }
    assert compared(old, (old[0], replace(old[1], recovered="nothing"), old[2])) == {
        "2 digits": "better"
    }
    # What was cut shows less than there may be.
    hidden = replace(old[1], recovered="nothing", cut=True)
    assert compared(old, (old[0], hidden, old[2])) == {"2 digits": "unknown"}
    assert compared((old[0], hidden, old[2]), old) == {"2 digits": "unknown"}
    assert compared(old, old[:2]) == {"labels": "unknown"}
    assert compared(old[:2], old) == {"labels": "unknown"}


def test_what_fails_an_audit():
    rows = document_rows((made("none", "function"),))
    assert [exceeds(rows, kind) for kind in ("weights", "function", "span")] == [False, True, True]
    cut = document_rows((made("none", "span", cut=True),))
    assert [exceeds(cut, kind) for kind in ("weights", "span")] == [None, True]
    assert exceeds([], "weights") is None
    # What a forest answers these attacks say nothing of.
    other = document_rows((made("none", "nothing", not_in_class=True),))
    assert [exceeds(other, kind) for kind in ("weights", "span")] == [None, None]


def test_a_certificate_is_one_of_what_a_row_says():
    span = made("labels", "span", certified=True)
    assert span.vouched == span
    assert not replace(span, recovered="nothing").vouched.certified
    assert not replace(span, cut=True).vouched.certified


def test_a_limit_follows_from_the_row_that_was_attacked():
    rows = [made("none", "weights"), made("3 digits", "weights", queries=7, implied_by="2 digits")]
    rows.append(made("2 digits", "weights", queries=7))
    assert "at about 7 queries (2 digits)" in advice(rows, 3, DATA)[1]


def test_what_serves_no_one_is_named_where_it_gives_away_less():
    rows = [made("none", "weights"), made("float32", "weights")]
    rows += [made("3 digits", "nothing", kept=0.5), made("2 digits", "weights", kept=0.5)]
    said = advice(rows, 3, DATA)[0]
    assert said.endswith("give away the weights; 3 digits do not keep the class")


def test_labels_as_they_are_have_advice_of_their_own():
    network = Recovery(Status.RECOVERED, None, ledger=None, classes=(0.0, 1.0))
    first = made("none", "weights", finding=Finding(9, network, None, False, False, ()))
    rows = [first, replace(first, defence="2 digits"), made("noise 1e-2", "weights", shift=0.1)]
    assert advice(rows, 1, DATA)[0] == (
        "no digits and no noise hide labels, for who rounds has these again: they give away the "
        "weights"
    )


def test_no_more_time_is_advised_where_it_shows_nothing():
    """As of logits that were rounded, which an attack takes for steps."""

    def ended(status, *, cut):
        network = Recovery(status, None, ledger=None)
        return Finding(9, network, None, cut, False, ())

    first = made("none", "weights")
    steps = not_as_network(
        made("logits to 2 decimals", "nothing", finding=ended(Status.NOT_IN_CLASS, cut=False))
    )
    cut = made("2 digits", "nothing", cut=True, finding=ended(Status.BUDGET_EXHAUSTED, cut=True))
    assert (steps.in_vain, cut.in_vain) == (True, False)
    assert not steps.is_judged
    oracle = Oracle(lambda X: X, 2)
    spent = Spent(60.0, 10.0, {row.defence: 5.0 for row in (first, steps, cut)}, longer=3.0)
    assert what_next(oracle, [first, steps], (), spent) == ""
    assert what_next(oracle, [first, steps, cut], (), spent) == "--max-seconds 120"
