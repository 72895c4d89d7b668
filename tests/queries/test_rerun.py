"""Any callable, rerun without each individual."""

import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.queries import Mean, Sum
from edp_bayes.responses.databases import Databases

RNG = np.random.default_rng(6)
TABLE = pd.DataFrame(
    {
        "year": np.tile(np.repeat(np.arange(2000, 2020), 3), 2),
        "who": np.where(RNG.random(120) < 0.3, "a", np.tile(["b", "c", "d"], 40)),
        "x": RNG.normal(10.0, 2.0, size=120),
    }
)
DATABASES = Databases.from_table(TABLE, database="year", individual="who")


def respond(function, **options):
    return DATABASES.respond(function, **{"progressbar": False} | options)


def without(frame, year, who):
    return not ((frame["year"] == year) & (frame["who"] == who)).any()


def noisy_mean(frame, rng):
    return frame["x"].mean() + rng.laplace(0.0, 5.0)


def test_responses_are_those_of_the_records_that_remain():
    responses = respond(lambda frame: frame["x"].prod())
    for j, year in enumerate(responses.database):
        mine = TABLE[TABLE["year"] == year]
        assert responses.response[j] == pytest.approx(mine["x"].prod(), rel=1e-14)
        for who in "abcd":
            rest = mine[mine["who"] != who]["x"].prod()
            assert responses.response_without(who)[j] == pytest.approx(rest, rel=1e-12)


def test_the_callable_runs_once_for_each_individual_present():
    calls = []
    responses = respond(lambda frame: calls.append(len(frame)) or frame["x"].sum())
    assert len(calls) == 20 + responses.presence.sum()
    present = TABLE.drop_duplicates(["year", "who"])
    np.testing.assert_array_equal(responses.presence, present.groupby("who").size())
    assert responses.query.endswith("<lambda>")


def test_rows_keep_their_order():
    responses = respond(lambda frame: frame["x"].iloc[0])
    first = TABLE.groupby("year")["x"].first()
    np.testing.assert_array_equal(responses.response, first)


def test_an_empty_database_goes_to_the_callable():
    table = TABLE[(TABLE["year"] != 2004) | (TABLE["who"] == "b")]
    databases = Databases.from_table(table, database="year", individual="who")
    responses = databases.respond(lambda frame: frame["x"].sum(), progressbar=False)
    assert responses.response_without("b")[4] == pytest.approx(0.0, abs=1e-12)
    message = "finite number, found nan on database 2004 without individual 'b'"
    with pytest.raises(InvalidInputError, match=message):
        databases.respond(lambda frame: frame["x"].mean(), progressbar=False)


def test_a_callable_may_change_its_frame():
    def destroy(frame):
        total = frame["x"].sum()
        frame["x"] = 0.0
        frame.index = frame.index + 1000
        return total

    expected = respond(Sum("x"))
    np.testing.assert_allclose(respond(destroy).response, expected.response)
    np.testing.assert_allclose(
        respond(destroy).contribution.toarray(), expected.contribution.toarray(), rtol=1e-9
    )


@pytest.mark.full
@pytest.mark.parametrize("workers", [1, 2, 5, None])
def test_workers_do_not_change_the_responses(workers):
    found = respond(noisy_mean, samples=3, random_seed=11, workers=workers)
    assert found.fingerprint == respond(noisy_mean, samples=3, random_seed=11).fingerprint


def test_one_worker_stays_in_the_calling_thread():
    threads = set()
    respond(lambda frame: threads.add(threading.get_ident()) or frame["x"].sum(), workers=1)
    assert threads == {threading.get_ident()}


def test_several_workers_run_at_once():
    barrier = threading.Barrier(3, timeout=20)

    def meet(frame):
        if len(frame) == 6 and not barrier.broken and meet.count < 3:
            meet.count += 1
            barrier.wait()
        return frame["x"].sum()

    meet.count = 0
    respond(meet, workers=3)
    assert meet.count == 3


# Randomised queries


def test_samples_are_rows_of_their_database():
    responses = respond(noisy_mean, samples=4, random_seed=0)
    assert (responses.samples, responses.response.shape) == (4, (80,))
    np.testing.assert_array_equal(responses.cluster, np.repeat(np.arange(20), 4))
    noise = responses.response.reshape(20, 4) - respond(Mean("x")).response[:, None]
    assert len(np.unique(noise)) == 80
    assert 2.0 < np.abs(noise).mean() < 9.0  # E|Laplace(5)| = 5, with 80 draws


def test_with_and_without_share_their_noise():
    responses = respond(noisy_mean, samples=4, random_seed=0)
    expected = respond(Mean("x"))
    np.testing.assert_allclose(
        responses.contribution.toarray(),
        np.repeat(expected.contribution.toarray(), 4, axis=0),
        rtol=1e-9,
        atol=1e-12,
    )
    np.testing.assert_array_equal(responses.presence, expected.presence)


def test_the_seed_decides_and_samples_extend():
    base = respond(noisy_mean, samples=2, random_seed=1)
    more = respond(noisy_mean, samples=3, random_seed=1).response.reshape(20, 3)
    np.testing.assert_array_equal(more[:, :2], base.response.reshape(20, 2))
    assert base.fingerprint != respond(noisy_mean, samples=2, random_seed=2).fingerprint
    assert respond(noisy_mean, samples=2).fingerprint != respond(noisy_mean, samples=2).fingerprint


def test_a_single_sample_is_randomised_too():
    assert respond(noisy_mean, samples=1, random_seed=3).samples == 1


@pytest.mark.parametrize(
    ("query", "options", "error", "message"),
    [
        (Mean("x"), {"samples": 2}, InvalidInputError, "mean:x is not randomised; .* noise="),
        (Mean("x"), {"random_seed": 2}, InvalidInputError, "not randomised"),
        (len, {"random_seed": 2}, InvalidInputError, "random_seed needs samples"),
        (noisy_mean, {"samples": 0}, InvalidInputError, "samples must be at least 1"),
        (noisy_mean, {"samples": 1, "random_seed": -1}, InvalidInputError, "not be negative"),
        (noisy_mean, {"samples": 1, "random_seed": "x"}, InputTypeError, "must be an integer"),
        (len, {"workers": 0}, InvalidInputError, "workers must be at least 1"),
        (len, {"noise": 1.0}, InputTypeError, "noise must be"),
    ],
)
def test_options_that_cannot_be_used(query, options, error, message):
    with pytest.raises(error, match=message):
        respond(query, **options)


# Faulty callables


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_callable_names_database_and_individual(workers):
    def fail(frame):
        if frame["year"].iloc[0] == 2007 and without(frame, 2007, "c"):
            raise KeyError("tariff")
        return frame["x"].sum()

    message = "failed on database 2007 without individual 'c': KeyError: 'tariff'"
    with pytest.raises(InvalidInputError, match=message) as caught:
        respond(fail, workers=workers)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_failure_on_a_whole_database_names_no_individual():
    with pytest.raises(InvalidInputError, match=r"database 2000: ZeroDivisionError"):
        respond(lambda frame: 1 / 0, workers=1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_names_its_place(value):
    def sometimes(frame):
        bad = frame["year"].iloc[0] == 2011 and without(frame, 2011, "d")
        return value if bad else frame["x"].sum()

    message = f"found {value} on database 2011 without individual 'd'"
    with pytest.raises(InvalidInputError, match=message):
        respond(sometimes)


@pytest.mark.parametrize("value", ["3", None, [1.0], np.ones(1), 1j, pd.Series([1.0])])
def test_a_value_that_is_not_a_number(value):
    with pytest.raises(InputTypeError, match=r"one number, found .* on database 2000"):
        respond(lambda frame: value, workers=1)


def test_numbers_of_many_types_are_taken():
    import pyarrow.compute as pc

    expected = respond(Sum("x")).response
    table = pl.from_pandas(TABLE)
    for form, total in [
        (table, lambda frame: frame["x"].sum()),
        (table.to_arrow(), lambda frame: pc.sum(frame["x"])),
        (TABLE, lambda frame: np.array(frame["x"].sum())),
        (TABLE, lambda frame: np.float32(frame["x"].sum())),
    ]:
        databases = Databases.from_table(form, database="year", individual="who")
        found = databases.respond(total, progressbar=False).response
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_an_interrupt_stops_the_work():
    calls = []

    def interrupted(frame):
        calls.append(1)
        time.sleep(0.002)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return frame["x"].sum()

    with pytest.raises(KeyboardInterrupt):
        respond(interrupted, workers=2)
    assert len(calls) < 30
