import dataclasses
import datetime as dt
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.noise import GaussianNoise, LaplaceNoise
from edp_bayes.responses.responses import Responses

N, M = 24, 3
RNG = np.random.default_rng(4)
Y = RNG.normal(size=N)
WITHOUT = Y[:, None] - np.where(RNG.random((N, M)) < 0.5, RNG.normal(size=(N, M)), 0.0)
LABELS = ["ann", "bob", "cy"]
YEARS = np.arange(2000, 2000 + N)


def make(**changes):
    arguments = {
        "response": Y,
        "response_without": WITHOUT,
        "individual": LABELS,
        "database": YEARS,
    }
    return Responses.from_arrays(**(arguments | changes))


def test_contribution_is_the_response_minus_the_response_without():
    responses = make()
    np.testing.assert_array_equal(responses.contribution.toarray(), Y[:, None] - WITHOUT)
    for k, label in enumerate(LABELS):
        np.testing.assert_allclose(responses.response_without(label), WITHOUT[:, k], atol=1e-15)
        np.testing.assert_array_equal(
            responses.contribution_of(label), (Y[:, None] - WITHOUT)[:, k]
        )


def test_sizes_presence_and_largest_contribution():
    responses = make()
    contribution = Y[:, None] - WITHOUT
    assert (responses.n_databases, responses.n_individuals) == (N, M)
    np.testing.assert_array_equal(responses.presence, (contribution != 0).sum(axis=0))
    np.testing.assert_array_equal(responses.largest_contribution, np.abs(contribution).max(axis=0))


def test_rounding_is_no_contribution():
    """Totals that were added up anew for everybody differ in the last place from the total."""
    rng = np.random.default_rng(4)
    records = rng.gamma(2.0, 5.0, (40, 20)) * (rng.random((40, 20)) < 0.1)
    everybody = np.c_[rng.normal(100.0, 10.0, 40), records]
    total = everybody.sum(axis=1)
    without = np.stack([np.delete(everybody, i + 1, axis=1).sum(axis=1) for i in range(20)], axis=1)
    assert (total[:, None] - without)[records == 0.0].any()
    found = Responses.from_arrays(total, without)
    np.testing.assert_array_equal(found.contribution.toarray() != 0.0, records != 0.0)
    np.testing.assert_array_equal(found.presence, (records != 0.0).sum(axis=0))


@pytest.mark.parametrize("name", ["response", "contribution"])
def test_masked_values_are_missing(name):
    arrays = {"response": np.arange(20.0), "contribution": np.full((20, 2), 0.1)}
    hidden = np.zeros(arrays[name].shape, dtype=bool)
    Responses.from_arrays(**{**arrays, name: np.ma.masked_array(arrays[name], hidden)})
    hidden[3] = True
    with pytest.raises(InvalidInputError, match=f"{name} must not be missing, found a masked"):
        Responses.from_arrays(**{**arrays, name: np.ma.masked_array(arrays[name], hidden)})


def test_exact_zeros_are_not_stored_and_absent_individuals_have_no_largest():
    contribution = np.zeros((N, 3))
    contribution[4, 1] = -2.0
    responses = make(response_without=None, contribution=csr_array(contribution))
    assert responses.contribution.nnz == 1
    np.testing.assert_array_equal(responses.largest_contribution, [0.0, 2.0, 0.0])
    np.testing.assert_array_equal(responses.presence, [0, 1, 0])


def test_presence_may_exceed_the_contributions_but_not_fall_short():
    contribution = np.zeros((N, 3))
    contribution[:4, 1] = 1.0
    given = {"response_without": None, "contribution": contribution}
    np.testing.assert_array_equal(make(**given, presence=[2, 5, 0]).presence, [2, 5, 0])
    with pytest.raises(InvalidInputError, match=r"'bob' must lie between 4.*and 24, found 3"):
        make(**given, presence=[2, 3, 0])
    with pytest.raises(InvalidInputError, match="found 25"):
        make(**given, presence=[25, 4, 0])
    with pytest.raises(InvalidInputError, match="one integer for each of 3"):
        make(**given, presence=[1, 4])


def test_one_individual_may_be_a_vector():
    responses = Responses.from_arrays(Y, response_without=Y - 1.0)
    assert responses.n_individuals == 1
    np.testing.assert_allclose(responses.contribution.toarray()[:, 0], 1.0)
    np.testing.assert_array_equal(responses.individual, [0])


def test_samples_of_a_database_form_a_cluster():
    y = RNG.normal(size=60)
    contribution = np.zeros((60, 2))
    contribution[[0, 2, 3, 59], 0] = 1.0
    responses = Responses.from_arrays(y, contribution=contribution, samples=3)
    assert responses.n_databases == 20
    np.testing.assert_array_equal(responses.cluster, np.arange(60) // 3)
    np.testing.assert_array_equal(responses.presence, [3, 0])
    with pytest.raises(InvalidInputError, match="vector of 7 sample"):
        Responses.from_arrays(y, contribution=contribution, samples=7)


def test_arrays_are_copied_and_read_only():
    y, contribution = Y.copy(), csc_array(Y[:, None] - WITHOUT)
    responses = make(response=y, response_without=None, contribution=contribution)
    before = responses.fingerprint
    y[:] = 0.0
    contribution.data[:] = 7.0
    assert responses.response[0] == Y[0]
    np.testing.assert_array_equal(responses.contribution.toarray(), Y[:, None] - WITHOUT)
    for array in (
        responses.response,
        responses.contribution.data,
        responses.contribution.indices,
        responses.contribution.indptr,
        responses.individual,
        responses.database,
        responses.presence,
        responses.largest_contribution,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
    assert make().fingerprint == before
    with pytest.raises(AttributeError):
        responses.samples = 2


def test_the_matrix_can_be_sliced_and_multiplied():
    responses = make()
    np.testing.assert_array_equal(
        responses.contribution[:, [1]].toarray()[:, 0], responses.contribution_of("bob")
    )
    np.testing.assert_allclose(responses.contribution.T @ Y, (Y[:, None] - WITHOUT).T @ Y)


def test_fingerprint_follows_the_data_and_nothing_else():
    base = make().fingerprint
    assert len(base) == 64
    assert base == make(noise=LaplaceNoise(1.0), query="other").fingerprint
    assert base == make(response_without=None, contribution=Y[:, None] - WITHOUT).fingerprint
    changed = Y.copy()
    changed[3] += 1e-12
    others = {
        make(response=changed).fingerprint,
        make(individual=["ann", "bob", "di"]).fingerprint,
        make(database=YEARS + 1).fingerprint,
        make(response_without=WITHOUT + np.eye(N, M)).fingerprint,
        # the same people at the same places contribute twice as much
        make(response_without=2.0 * WITHOUT - Y[:, None]).fingerprint,
    }
    assert len(others | {base}) == 6


def test_fingerprint_is_the_same_in_another_process():
    script = (
        "import numpy as np; from edp_bayes.responses.responses import Responses;"
        "y = np.arange(20.0) ** 2;"
        "labels = ['a', ('b', 1)];"
        "r = Responses.from_arrays(y, contribution=np.eye(20, 2), individual=labels);"
        "print(r.fingerprint)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_individuals_are_found_by_their_label():
    assert make().index_of("cy") == 2
    tuples = [(40.0, 1), (40.0, 2), (42.5, 1)]
    assert make(individual=tuples).index_of((np.float64(42.5), np.int64(1))) == 2
    assert make(individual=tuples).index_of([40.0, 2]) == 1
    assert make(individual=np.array([7, 8, 9], dtype=np.uint8)).index_of(8) == 1
    days = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[ns]")
    for label in ("2024-01-02", dt.datetime(2024, 1, 2), np.datetime64("2024-01-02", "ns")):
        assert make(individual=days).index_of(label) == 1


@pytest.mark.parametrize("label", ["dora", 0, None, ["ann"], {}])
def test_an_unknown_individual_is_named(label):
    with pytest.raises(
        InvalidInputError, match=r"unknown individual.*there are 'ann', 'bob', 'cy'"
    ):
        make().index_of(label)


def test_labels_keep_their_type():
    mixed = make(individual=[1, "1", (1, "1")])
    assert mixed.individual.tolist() == [1, "1", (1, "1")]
    assert [mixed.index_of(label) for label in mixed.individual] == [0, 1, 2]
    assert make(individual=[1, 2, 3]).individual.dtype == np.int64
    assert make(individual=np.array(["a", "b", "c"])).individual.dtype == object


def test_noise_is_kept():
    assert make(noise=GaussianNoise(2.0)).noise == GaussianNoise(2.0)
    with pytest.raises(InputTypeError, match=r"noise must be .* found 2\.0"):
        make(noise=2.0)


def test_non_finite_values_name_database_and_individual():
    bad = Y.copy()
    bad[5] = np.nan
    with pytest.raises(InvalidInputError, match="response of database 2005 is nan"):
        make(response=bad)
    for value in (np.nan, np.inf):
        without = WITHOUT.copy()
        without[7, 1] = value
        with pytest.raises(InvalidInputError, match="individual 'bob' to database 2007"):
            make(response_without=without)


def test_a_sample_that_is_not_finite_names_its_database():
    y = RNG.normal(size=60)
    y[7] = np.inf
    with pytest.raises(InvalidInputError, match="database 2 is inf"):
        Responses.from_arrays(y, contribution=np.ones(60), samples=3)


def test_few_databases():
    with pytest.raises(InvalidInputError, match="at least 8 databases are needed, found 7"):
        Responses.from_arrays(Y[:7], contribution=np.ones(7))
    for n in (8, 19):
        with pytest.warns(EdpBayesWarning, match=f"only {n} databases"):
            responses = Responses.from_arrays(Y[:n], contribution=np.ones(n))
        assert len(responses.warnings) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Responses.from_arrays(Y[:20], contribution=np.ones(20)).warnings == ()


def test_warnings_point_at_the_caller():
    with pytest.warns(EdpBayesWarning) as caught:
        Responses.from_arrays(Y[:10], contribution=np.ones(10))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("level", [0.0, 3.5, 1e9])
def test_constant_responses(level):
    y = np.full(N, level)
    y[0] = np.nextafter(level, np.inf) if level else 0.0
    with pytest.raises(InvalidInputError, match="constant response has no density"):
        Responses.from_arrays(y, contribution=np.ones(N))


def test_heavy_ties_are_doubtful_and_a_few_are_not():
    y = np.sqrt(np.arange(100.0, 124.0))  # on no grid
    y[:12] = np.repeat([10.65, 10.8, 10.95], 4)
    assert Responses.from_arrays(y, contribution=np.ones(24)).warnings == ()
    y[13] = 10.65
    with pytest.warns(EdpBayesWarning, match="13 of 24 responses are tied"):
        responses = Responses.from_arrays(y, contribution=np.ones(24))
    assert "discrete response" in responses.warnings[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"response_without": None}, "found neither"),
        ({"contribution": WITHOUT}, "found both"),
        ({"response_without": WITHOUT[1:]}, r"shape \(24,\), response_without \(23, 3\)"),
        ({"response_without": WITHOUT[None]}, r"\(1, 24, 3\)"),
        ({"individual": ["a", "b"]}, r"\(24, 2\).*found \(24, 3\)"),
        ({"database": YEARS[1:]}, r"shape \(23,\) for 23 databases.*found shape \(24,\)"),
        ({"individual": ["ann", "bob", "ann"]}, "distinct, found 'ann' 2 times"),
        ({"individual": np.array([3, 4, 3])}, "distinct, found 3 2 times"),
        ({"database": np.zeros(N)}, r"database labels must be distinct, found 0\.0 24 times"),
        ({"individual": ["ann", None, "cy"]}, "missing, found None at position 1"),
        ({"individual": [1.0, 2.0, np.nan]}, "missing, found nan at position 2"),
        ({"individual": [(1, None), (1, 2), (2, 2)]}, "missing"),
        ({"individual": np.ones((3, 2))}, r"1 dimension, found shape \(3, 2\)"),
        ({"response": WITHOUT}, r"vector.*found shape \(24, 3\)"),
        ({"response_without": np.empty((N, 0)), "individual": []}, "at least one individual"),
        ({"samples": 0}, "samples must be at least 1"),
    ],
)
def test_values_that_cannot_be_used(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        make(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"response": Y.astype(str)}, "response must be numeric"),
        ({"response": Y + 1j}, "response must be numeric, found complex128"),
        ({"response_without": WITHOUT.astype(object)}, "must be numeric, found object"),
        ({"response_without": [[1.0], [2.0, 3.0]]}, "numeric array"),
        ({"response_without": csc_array(WITHOUT)}, "response_without must be dense"),
        ({"individual": "ann"}, "must be a sequence, found 'ann'"),
        ({"individual": [["a"], ["b"], ["c"]]}, "hashable"),
        ({"samples": 1.5}, "samples must be an integer"),
    ],
)
def test_types_that_cannot_be_used(changes, message):
    with pytest.raises(InputTypeError, match=message):
        make(**changes)


def test_every_way_of_construction_is_checked():
    arguments = {
        "response": Y,
        "contribution": csc_array(np.ones((N, 1))),
        "individual": ["a"],
        "database": YEARS,
        "presence": [N],
    }
    assert Responses(**arguments).query == "query"
    with pytest.raises(InvalidInputError, match="constant"):
        Responses(**arguments | {"response": np.ones(N)})
    with pytest.raises(InputTypeError, match=r"scipy\.sparse"):
        Responses(**arguments | {"contribution": np.ones((N, 1))})


@pytest.mark.parametrize(
    ("given", "ranks"),
    [
        (["week 10", "week 2", "week 1"], [2, 1, 0]),
        ([30.0, -1.0, 4.0], [2, 0, 1]),
        ([("b", 1), ("a", 10), ("a", 9)], [2, 1, 0]),
        (["1", 1, ("1",)], [1, 0, 2]),
        ([dt.date(2024, 5, 1), dt.date(2023, 5, 1), dt.date(2023, 12, 1)], [2, 0, 1]),
        (None, [0, 1, 2]),
    ],
)
def test_ranks_are_those_of_sorted_labels(given, ranks):
    responses = Responses.from_arrays(
        np.arange(20.0), contribution=np.ones((20, 3)), individual=given
    )
    assert responses.rank.tolist() == ranks


def test_warnings_of_the_records_stand_with_those_of_the_responses_each_once():
    tied = np.r_[np.zeros(15), np.arange(1.0, 10.0)]
    with pytest.warns(EdpBayesWarning) as caught:
        own = Responses.from_arrays(tied, contribution=np.ones(24)).warnings
    assert own == tuple(str(one.message) for one in caught)
    contribution = csc_array(np.ones((24, 1)))
    with pytest.warns(EdpBayesWarning, match="tied"):
        responses = Responses(
            tied, contribution, ["a"], np.arange(24), [24], warnings=("a record",)
        )
    assert responses.warnings == (*own, "a record")
    with pytest.warns(EdpBayesWarning, match="tied"):
        again = dataclasses.replace(responses, query="other")
    assert again.warnings == responses.warnings
    older = pickle.loads(pickle.dumps(responses))
    object.__setattr__(older, "doubts", ("a record",))  # as versions before held them, too
    assert pickle.loads(pickle.dumps(older)).warnings == responses.warnings
