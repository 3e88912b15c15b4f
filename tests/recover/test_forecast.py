"""What an extraction says before it starts, and where it says it is."""

import logging

import numpy as np
import pytest

import revelu
from revelu.cli.progress import ProgressLine, fitted
from revelu.oracle import Float32, Oracle, degrade
from revelu.recover.deep import Deep
from revelu.recover.fit import Fit
from revelu.recover.shallow import OneHidden
from revelu.tasks.extract.forecast import Forecast, forecast
from revelu.tasks.progress import Progress


@pytest.mark.parametrize("widths", [(10, 100, 1), (30, 100, 3), (64, 100, 10)])
def test_hundred_neurons_take_what_was_foretold(widths):
    network = revelu.zoo.random_network(widths, seed=3)
    ledger = revelu.extract(network, checks=300).ledger
    least, most = forecast(OneHidden(), widths[0], widths[-1], 300, None).n_queries
    assert least <= ledger.by_phase["recover"] <= most


@pytest.mark.parametrize("widths", [(10, 16, 1), (12, 8, 3)])
def test_few_digits_take_what_was_foretold(widths):
    network = revelu.zoo.random_network(widths, seed=3)
    target = Oracle(degrade(Oracle(network, widths[0]), Float32()), widths[0])
    recovery = revelu.extract(target, checks=300)
    told = forecast(Fit(), widths[0], widths[-1], 300, None, width=widths[1])
    assert recovery.status is revelu.Status.RECOVERED
    assert told.n_queries[0] / 2 <= recovery.ledger.by_phase["recover"] <= 2 * told.n_queries[1]


def test_forecast_is_told_before_the_search(caplog):
    seen: list[Progress] = []
    network = revelu.zoo.random_network((5, 4, 1), seed=1)
    with caplog.at_level(logging.INFO, logger="revelu"):
        revelu.extract(network, progress=seen.append, checks=300)
    said = next(i for i, event in enumerate(seen) if event.message.startswith("expected: some "))
    assert seen[said].n_queries == 64
    assert all(event.expected is None for event in seen[:said])
    least, most = seen[said].expected
    assert least < most
    searching = [event for event in seen[said:] if event.phase != "verify"]
    assert {event.expected for event in searching} <= {(least, most), None}
    # What was expected of the search is not said of the certificate, whose end is known.
    checking = [event for event in seen if event.phase == "verify" and event.expected]
    assert checking
    fewest, at_most = checking[0].expected
    assert fewest < least
    assert fewest <= seen[-1].n_queries <= at_most
    # (5 + 1 + 1) 100 + 1 parameters, each of which takes 1 to 1.5 queries.
    wanted = "some 700 to 1,100 queries if there is one hidden layer of 100 neurons"
    assert any(wanted in text for text in caplog.messages)


def test_pace_is_that_of_the_first_answers():
    told = forecast(OneHidden(), 10, 1, 3000, 0.01)
    assert told.seconds == pytest.approx(0.01 * (told.n_queries[1] + 3000))
    assert "seconds at the pace" in str(told)
    assert "seconds" not in str(forecast(OneHidden(), 10, 1, 3000, None))
    assert "2 hours" in str(Forecast(100, (1, 2), 3, 7300.0))
    assert "3 minutes" in str(Forecast(100, (1, 2), 3, 170.0))


def test_nothing_is_foretold_of_other_methods():
    assert forecast(Deep(), 10, 1, 3000, 0.01) is None


@pytest.mark.parametrize(("n", "shown"), [(900, "of 700 to 1,000"), (1200, "over 1,000 expected")])
def test_progress_line_says_where_it_is(n, shown):
    line = ProgressLine(quiet=True)
    line(Progress("recover", n, 5, "at it", expected=(700, 1000)))
    assert shown in line._display.tasks[0].fields["figures"]
    line(Progress("recover", n, 5, "at it"))
    assert not any("of" in figure for figure in line._display.tasks[0].fields["figures"])


def test_progress_says_what_is_left_and_on_its_way():
    seen: list[Progress] = []
    network = revelu.zoo.random_network((5, 4, 1), seed=1)
    revelu.extract(network, progress=seen.append, checks=2000)
    underway = [event for event in seen if event.n_underway]
    largest = max(underway, key=lambda event: event.n_underway)
    assert largest.n_underway >= 56
    assert f"{largest.n_underway:,} on their way" in " ".join(largest.figures())
    assert any(event.seconds_left is not None for event in seen)
    assert not any(event.title.startswith("verify: verif") for event in seen)


@pytest.mark.parametrize("room", [20, 39, 60, 120])
def test_narrow_line_leaves_out_the_middle_and_never_the_count(room):
    event = Progress("recover", 3307, 41, "walking along the surface of neuron 17", None, 75.0)
    title, figures = fitted(event.title, event.figures(), room)
    assert len(title) + len(figures) <= room
    whole = "  ".join(event.figures())
    assert whole.startswith(figures)
    if room == 39:  # a terminal of 50 columns, beside the spinner and the time
        assert figures == "3,307 queries in 41 rounds"
    if room == 120:
        assert (title, figures) == (event.title, whole)


def test_forecast_rounds_to_what_is_known():
    least, most = forecast(OneHidden(), 3, 1, 1, None, width=33).n_queries
    assert (least, most) == (170, 250)
    assert np.all(np.array(forecast(OneHidden(), 1, 1, 1, None, width=1).n_queries) < 100)
