"""What holds for any distribution: a lower limit by betting, an upper one by presence."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import edp_bayes as edp
from edp_bayes.utils.shares import highest_share

EPSILON = 0.1


def limit(answers, contribution, **options):
    responses = edp.Responses.from_arrays(
        answers, contribution=np.atleast_2d(np.asarray(contribution, float).T).T, step=None
    )
    return edp.guarantee(responses, epsilon=EPSILON, **options)


def shifted_normal(shift, epsilon=EPSILON):
    """Return H_epsilon of N(shift, 1) and N(0, 1), which is the same both ways."""
    middle = epsilon / shift
    return norm.cdf(shift / 2 - middle) - np.exp(epsilon) * norm.cdf(-shift / 2 - middle)


def steady(shift):
    """Return a sampler of normal answers to which one individual always adds the same."""

    def sample(rng, n):
        return rng.normal(size=n) + shift, np.full(n, shift)

    return sample, shifted_normal(shift)


def sometimes(share, shift):
    """Return one of an individual who is rarely there, and adds much then."""

    def sample(rng, n):
        own = shift * (rng.random(n) < share)
        return rng.normal(size=n) + own, own

    x = np.linspace(-10.0, shift + 10.0, 200_001)
    q = norm.pdf(x)
    p = (1 - share) * q + share * norm.pdf(x, shift)
    growth = np.exp(EPSILON)
    true = max(np.maximum(p - growth * q, 0).sum(), np.maximum(q - growth * p, 0).sum())
    return sample, true * (x[1] - x[0])


def counted(people, share):
    """Return one of counts, in which one is always there."""

    def sample(rng, n):
        others = rng.binomial(people, share, n)
        return others + 1.0, np.ones(n)

    k = np.arange(people + 2)
    p, q = binom.pmf(k - 1, people, share), binom.pmf(k, people, share)
    growth = np.exp(EPSILON)
    return sample, max(np.maximum(p - growth * q, 0).sum(), np.maximum(q - growth * p, 0).sum())


def spiked():
    """Return one whose answers are nearly constant, and sometimes far away."""

    def sample(rng, n):
        rest = np.where(rng.random(n) < 0.9, 0.01, 5.0) * rng.standard_cauchy(n)
        return rest + 0.001, np.full(n, 0.001)

    return sample, None


@pytest.mark.full
@pytest.mark.parametrize(
    ("world", "n"),
    [
        (steady(0.5), 60),
        (steady(0.5), 300),
        (steady(2.0), 60),
        (sometimes(0.1, 5.0), 200),
        (counted(20, 0.3), 150),
    ],
    ids=["half", "half, many", "two", "rarely", "counts"],
)
def test_the_lower_limit_holds_whenever_one_looks(world, n):
    # the limit of all n databases is the largest of those after each, so looks are repeated
    sample, true = world
    found = [float(limit(*sample(np.random.default_rng(k), n))["lower"][0]) for k in range(120)]
    above = np.mean(np.array(found) > true)
    # 5% of 120 is 6; with 12 or more the level would be exceeded at one in fifty
    assert above < 0.1
    assert np.median(found) <= true


def test_the_limit_never_falls_as_databases_are_added():
    sample, _ = steady(2.0)
    answers, own = sample(np.random.default_rng(1), 120)
    limits = [float(limit(answers[:n], own[:n])["lower"][0]) for n in (20, 40, 80, 120)]
    assert limits == sorted(limits)
    assert limits[-1] > 0.4


def test_it_is_of_use_where_an_individual_is_exposed():
    found = [
        float(limit(*steady(2.5)[0](np.random.default_rng(k), 60))["lower"][0]) for k in range(20)
    ]
    assert 0.5 < np.median(found) < shifted_normal(2.5)


def test_nobody_who_adds_nothing_has_a_lower_limit():
    rng = np.random.default_rng(2)
    assert float(limit(rng.normal(size=80), np.zeros(80))["lower"][0]) == 0.0


def test_wild_answers_are_no_harm():
    sample, _ = spiked()
    found = limit(*sample(np.random.default_rng(3), 100))
    assert 0.0 <= float(found["lower"][0]) < 1.0


def test_over_everybody_it_is_shared_and_named_ones_have_their_own():
    rng = np.random.default_rng(4)
    contribution = np.zeros((100, 30))
    contribution[:, 3] = 2.5
    contribution[:, 4:] = rng.gamma(2.0, 0.01, (100, 26))
    answers = rng.normal(size=100) + contribution.sum(axis=1)
    responses = edp.Responses.from_arrays(answers, contribution=contribution)
    found = edp.guarantee(responses, epsilon=[0.1, 1.0], individuals=[3, 0])
    assert found["individual"].values.tolist() == ["3", "0"]
    assert (found["individual_lower"].sel(individual="0") == 0.0).all()
    alone = found["individual_lower"].sel(individual="3")
    assert (found["lower"] > 0.1).all()
    assert (found["lower"] <= alone).all()
    assert float(found["lower"][1]) <= float(found["lower"][0])


def test_the_upper_limit_is_that_of_presence_for_all_at_once():
    rng = np.random.default_rng(5)
    contribution = np.zeros((50, 4))
    contribution[7, 0] = contribution[9, 1] = 1.0
    responses = edp.Responses.from_arrays(rng.normal(size=50), contribution=contribution)
    found = edp.guarantee(responses, epsilon=0.1)
    assert float(found["upper"]) == float(highest_share([1], 50, 1.0 - 0.05 / 4)[0])
    contribution[:, 2] = 0.1
    always = edp.Responses.from_arrays(rng.normal(size=50), contribution=contribution)
    assert float(edp.guarantee(always, epsilon=0.1)["upper"]) == 1.0


def test_an_audit_has_the_same_at_its_epsilons():
    rng = np.random.default_rng(6)
    own = np.full(40, 2.0)
    responses = edp.Responses.from_arrays(rng.normal(size=40) + own, contribution=own)
    audit = edp.audit(responses, epsilon=[0.1, 0.5], draws=50, random_seed=1, progressbar=False)
    found = audit.guarantee(responses)
    assert found.equals(edp.guarantee(responses, epsilon=[0.1, 0.5]))
    assert (found["lower"] <= audit.upper("delta").to_numpy()).all()


def test_what_has_no_guarantee_is_refused():
    rng = np.random.default_rng(7)
    few = edp.Responses.from_arrays(rng.normal(size=12), contribution=np.ones(12))
    with pytest.raises(edp.InvalidInputError, match="at least 16 databases, found 12"):
        edp.guarantee(few, epsilon=0.1)
    with pytest.raises(edp.InputTypeError, match="responses must be Responses"):
        edp.guarantee([1, 2], epsilon=0.1)
    many = edp.Responses.from_arrays(rng.normal(size=20), contribution=np.ones(20))
    with pytest.raises(edp.InvalidInputError, match="prob"):
        edp.guarantee(many, epsilon=0.1, prob=1.0)
    with pytest.raises(edp.InvalidInputError, match="epsilon"):
        edp.guarantee(many, epsilon=-0.1)
