"""What holds for any distribution: a lower limit by betting, an upper one by presence."""

import numpy as np
import pytest
from scipy.stats import binom, norm

import edp_bayes as edp
from edp_bayes.auditing.betting_sets import MODELLED, earlier_densities, fitted_at
from edp_bayes.models.sampling import SamplerSettings
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


def two_scales(shift):
    """Return one who always adds the same to answers of which most are near each other."""

    def sample(rng, n):
        scale = np.where(rng.random(n) < 0.7, 0.2, 3.0)
        return scale * rng.normal(size=n) + shift, np.full(n, shift)

    x = np.linspace(-20.0, 20.0, 400_001)
    p, q = (0.7 * norm.pdf(x, at, 0.2) + 0.3 * norm.pdf(x, at, 3.0) for at in (shift, 0.0))
    return sample, np.maximum(p - np.exp(EPSILON) * q, 0).sum() * (x[1] - x[0])


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
        (two_scales(0.4), 100),
    ],
    ids=["half", "half, many", "two", "rarely", "counts", "two scales"],
)
def test_the_lower_limit_holds_whenever_one_looks(world, n):
    # the limit of all n databases is the largest of those after each, so looks are repeated
    sample, true = world
    found = [float(limit(*sample(np.random.default_rng(k), n))["lower"][0]) for k in range(120)]
    above = np.mean(np.array(found) > true)
    # 5% of 120 is 6; with 12 or more the level would be exceeded at one in fifty
    assert above < 0.1
    assert np.median(found) <= true


@pytest.mark.full
def test_the_limit_never_falls_as_databases_are_added():
    sample, _ = steady(2.0)
    answers, own = sample(np.random.default_rng(1), 120)
    limits = [float(limit(answers[:n], own[:n])["lower"][0]) for n in (20, 40, 80, 120)]
    assert limits == sorted(limits)
    assert limits[-1] > 0.4


@pytest.mark.full
def test_it_is_of_use_where_an_individual_is_exposed():
    found = [
        float(limit(*steady(2.5)[0](np.random.default_rng(k), 60))["lower"][0]) for k in range(5)
    ]
    assert 0.5 < np.median(found) < shifted_normal(2.5)


def with_one_exposed(seed, n=60, people=12):
    rng = np.random.default_rng(seed)
    contribution = rng.gamma(2.0, 0.05, (n, people)) * (rng.random((n, people)) < 0.6)
    contribution[:, 3] = 1.5
    return rng.normal(size=n) + contribution.sum(axis=1), contribution


@pytest.mark.full
def test_earlier_databases_alone_choose_the_sets():
    answers, contribution = with_one_exposed(1)
    later = answers.copy(), contribution.copy()
    later[0][40:] -= 5.0
    later[1][40:] *= 3.0
    responses = edp.Responses.from_arrays(answers, contribution=contribution, step=None)
    others = edp.Responses.from_arrays(later[0], contribution=later[1], step=None)
    found, other = (
        earlier_densities(one, edp.DirichletProcessMixture(), random_seed=2)
        for one in (responses, others)
    )
    for one, two in zip(found, other, strict=True):
        assert np.array_equal(one[:40], two[:40])
        assert (one[8:40] > 0.0).all()
        assert not np.array_equal(one[40:], two[40:])
        assert (one[:8] == 0.0).all()


def test_the_densities_are_those_of_the_posterior_of_the_earlier_databases():
    answers, contribution = with_one_exposed(2)
    responses = edp.Responses.from_arrays(answers, contribution=contribution, step=None)
    model = edp.DirichletProcessMixture()
    found = earlier_densities(responses, model, random_seed=3)
    start, stop = fitted_at(60)[-2:]
    seen = edp.Responses.from_arrays(answers[:start], contribution=contribution[:start], step=None)
    settings = SamplerSettings(draws=100, tune=200, chains=1, random_seed=3, progressbar=False)
    p, q = model.fit(seen, settings).coupling.pair(3)
    at = answers[start:stop]
    assert np.allclose(found.with_at_with[start:stop, 3], p.pdf(at).mean((0, 1)))
    assert np.allclose(found.without_at_with[start:stop, 3], q.pdf(at).mean((0, 1)))
    assert np.allclose(found.with_at_without[start:stop, 3], p.pdf(at - 1.5).mean((0, 1)))
    assert np.allclose(found.without_at_without[start:stop, 3], q.pdf(at - 1.5).mean((0, 1)))


@pytest.mark.full
def test_of_many_individuals_those_with_small_contributions_share_a_kernel():
    rng = np.random.default_rng(3)
    contribution = rng.gamma(2.0, 0.01, (30, 80))
    contribution[:, 70] = 2.5
    answers = rng.normal(size=30) + contribution.sum(axis=1)
    responses = edp.Responses.from_arrays(answers, contribution=contribution, step=None)
    named = int(np.argmin(responses.largest_contribution))
    model = edp.DirichletProcessMixture()
    alone, asked = (
        earlier_densities(responses, model, named=who, random_seed=1) for who in ((), (named,))
    )
    width = 0.9 * answers[:29].std(ddof=1) * 29**-0.2
    kernel = norm.pdf((answers[29] - answers[:29]) / width).mean() / width
    assert np.isclose(alone.with_at_with[29, named], kernel)
    assert not np.isclose(asked.with_at_with[29, named], kernel)
    assert np.isclose(alone.with_at_with[29], kernel).sum() == 80 - MODELLED
    assert not np.isclose(alone.with_at_with[29, 70], kernel)


@pytest.mark.full
def test_the_limit_is_that_of_the_answer_with_its_known_noise():
    shift, scale = 2.0, 3.0
    sample, _ = steady(shift)
    answers, own = sample(np.random.default_rng(4), 300)
    responses = edp.Responses.from_arrays(answers, contribution=own, noise=edp.GaussianNoise(scale))
    noisy = float(edp.guarantee(responses, epsilon=EPSILON)["lower"][0])
    assert noisy <= shifted_normal(shift / np.hypot(1.0, scale))
    assert limit(answers, own)["lower"][0] > 0.5


def test_answers_that_do_not_vary_at_first_are_no_harm():
    rng = np.random.default_rng(5)
    own = np.zeros(80)
    own[12:] = 3.0
    answers = own + np.where(np.arange(80) < 12, 0.0, rng.normal(size=80))
    assert 0.0 < float(limit(answers, own)["lower"][0]) < 1.0


def test_sets_are_chosen_on_the_scale_of_a_transform():
    rng = np.random.default_rng(6)
    own = np.full(60, 3.0)
    answers = np.exp(rng.normal(size=60)) + own
    responses = edp.Responses.from_arrays(answers, contribution=own, transform="log")
    found = float(edp.guarantee(responses, epsilon=EPSILON)["lower"][0])
    # in 60 databases every answer without them is below 3 or so, and every one with them above
    assert found > 0.5


def test_a_model_and_a_seed_may_be_given():
    answers, own = steady(2.5)[0](np.random.default_rng(7), 40)
    default, named, other = (
        limit(answers, own, **options)
        for options in ({}, {"random_seed": 0}, {"model": edp.SmoothedBootstrap()})
    )
    assert default.equals(named)
    assert float(other["lower"][0]) > 0.1
    with pytest.raises(edp.InputTypeError, match="model must be a density model"):
        limit(answers, own, model="normal")
    with pytest.raises(edp.InvalidInputError, match="random_seed must not be negative"):
        limit(answers, own, random_seed=-1)


@pytest.mark.full
def test_narrow_parts_of_a_distribution_are_seen():
    # a kernel of the width of all answers reaches 0 here
    sample, true = two_scales(0.4)
    found = []
    for k in range(4):
        answers, own = sample(np.random.default_rng(k), 100)
        responses = edp.Responses.from_arrays(answers, contribution=own, step=None)
        found.append(float(edp.guarantee(responses, epsilon=0.5)["lower"][0]))
    assert 0.1 < np.mean(found) < true


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


@pytest.mark.full
def test_an_audit_has_the_same_at_its_epsilons():
    rng = np.random.default_rng(6)
    own = np.full(40, 2.0)
    responses = edp.Responses.from_arrays(rng.normal(size=40) + own, contribution=own)
    audit = edp.audit(responses, epsilon=[0.1, 0.5], draws=50, random_seed=1, progressbar=False)
    found = audit.guarantee(responses)
    assert found.equals(edp.guarantee(responses, epsilon=[0.1, 0.5]))
    assert audit.guarantee().equals(found)
    # it is of the whole answer: a lower limit of that is none of what is published of it
    for without in (edp.Audit(audit.tree), audit.released(rounded_to=0.5, progressbar=False)):
        with pytest.raises(edp.InvalidInputError, match="responses= must be given"):
            without.guarantee()
    assert edp.Audit(audit.tree).guarantee(responses).equals(found)
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
