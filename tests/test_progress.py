"""Bars appear after two seconds, from another thread, and never when silent."""

import time

import pytest

from edp_bayes.utils import progress


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_BAR", 0.02)


@pytest.fixture
def started(monkeypatch):
    from rich.progress import Progress

    bars = []
    start = Progress.start

    def spy(self):
        bars.append(self)
        start(self)

    monkeypatch.setattr(Progress, "start", spy)
    return bars


def slow(count, pause):
    for k in range(count):
        time.sleep(pause)
        yield k


def test_a_bar_shows_while_the_first_item_is_still_worked_on(started):
    seen = []
    for item in progress.track(range(2), "Items", total=2, show=True):
        time.sleep(0.1)
        seen.append((item, len(started)))
    assert seen == [(0, 1), (1, 1)]
    assert not started[0].live.is_started


def test_work_of_unknown_length_shows_a_bar(started):
    with progress.working("Work", show=True):
        time.sleep(0.1)
        assert started[0].live.is_started
    assert not started[0].live.is_started


@pytest.mark.parametrize("show", [True, False])
def test_nothing_shows_for_what_is_quick_or_silent(started, show):
    pause = 0.0 if show else 0.1
    assert list(progress.track(slow(2, pause), "Items", total=2, show=show)) == [0, 1]
    with progress.working("Work", show=show):
        time.sleep(pause)
    assert started == []


def test_an_error_ends_the_bar(started):
    def fail():
        with progress.working("Work", show=True):
            time.sleep(0.1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not started[0].live.is_started
