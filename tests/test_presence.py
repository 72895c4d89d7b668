"""Presence by component against closed forms, and what it must not depend on."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.special import expit, logsumexp

import edp_bayes as edp
from edp_bayes.coupling.contributions import presence as module
from edp_bayes.coupling.contributions.posterior import ContributionDraws, ContributionPosterior
from edp_bayes.coupling.contributions.presence import PresencePosterior
from edp_bayes.coupling.contributions.presence_sampler import PRESENCES
from edp_bayes.coupling.curves.one_answer import LARGEST_SHARE
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.distributions.noise import GaussianNoise

DRAWS = 4000
RHO = 0.4


def two_groups(came, *, distance=20.0):
    """Databases of two components far apart, 30 and 20, and who comes to how many of each."""
    rest = np.r_[np.zeros(30), np.full(20, distance)] + 0.1 * np.sin(np.arange(50))
    contribution = np.zeros((50, len(came)))
    for column, (low, high) in enumerate(came):
        contribution[:low, column] = contribution[30 : 30 + high, column] = 0.5
    return edp.Responses.from_arrays(
        rest + contribution.sum(axis=1), contribution=sp.csc_array(contribution)
    )


def of_one(rest, contribution):
    """Responses of an individual alone beside the rest."""
    return edp.Responses.from_arrays(
        rest + contribution, contribution=sp.csc_array(contribution[:, None])
    )


def mixture(draws=DRAWS, distance=20.0):
    parts = ([0.6, 0.4], [0.0, distance], [1.0, 1.0])
    return Mixture(*(np.broadcast_to(part, (1, draws, 2)) for part in parts))


def distribution(people, rho=RHO, draws=DRAWS, *, size=0.5, spread=0.1, components=2):
    parts = (np.full((draws, people), part) for part in (size, 0.0, spread * size))
    return ContributionDraws(np.full((draws, people, components), rho), *parts)


def drawn(came, **distribution_options):
    posterior = PresencePosterior(mixture(), two_groups(came), 3)
    return posterior.draw(np.arange(len(came)), distribution(len(came), **distribution_options))


def scaled(shares, rho, weights=(0.6, 0.4)):
    """Shares whose mean is rho, at most one."""
    return np.minimum(shares * rho / (shares @ np.array(weights))[..., None], 1.0)


@pytest.mark.parametrize("came", [(12, 8), (20, 2), (9, 10), (3, 2)])
def test_shares_of_components_far_apart_have_their_closed_form(came):
    shares = drawn([came], size=1e-4)[:, 0]  # so small that only the counts tell of them
    a, b = PRESENCES, PRESENCES * (1.0 - RHO) / RHO
    evidence = 0.0
    for count, every in zip(came, (30, 20), strict=True):
        evidence += stats.betabinom.logpmf(count, every, a, b)
        evidence -= stats.binom.logpmf(count, every, RHO)
    own = (shares != RHO).any(axis=1)
    assert stats.binomtest(int(own.sum()), DRAWS, expit(evidence)).pvalue > 1e-3
    rng = np.random.default_rng(8)
    each = [
        rng.beta(a + count, b + every - count, 20_000)
        for count, every in zip(came, (30, 20), strict=True)
    ]
    expected = scaled(np.stack(each, axis=-1), RHO)
    for k in (0, 1):
        assert stats.ks_2samp(shares[own, k], expected[:, k]).pvalue > 1e-3


def of_a_grid(responses, weights, locations, size, rho):
    """Chance of shares of their own, and their means: everything but the shares summed out."""
    nodes = (np.arange(200) + 0.5) / 200
    c = responses.contribution.toarray()[:, 0]
    rest = (responses.response - c)[:, None]

    def masses(share):
        """Of every database and component, given whether they were there."""
        explained = min(share * (1.0 - share) * size**2, LARGEST_SHARE)
        density = stats.norm.pdf(rest, locations - share * size, np.sqrt(1.0 - explained))
        return weights * density * np.where(c != 0.0, share, 1.0 - share)[:, None]

    def log_likelihood(shares):
        """Of every pair of shares."""
        first, second = np.moveaxis([masses(share) for share in shares], -1, 0)
        return sum(np.log(first[:, None, j] + second[None, :, j]) for j in range(c.size))

    pair = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1)
    prior = stats.beta(PRESENCES, PRESENCES * (1.0 - rho) / rho).logpdf(pair).sum(axis=-1)
    log_mass = log_likelihood(nodes) + prior - 2.0 * np.log(nodes.size)
    evidence = logsumexp(log_mass)
    expected = np.einsum("ab,abk->k", np.exp(log_mass - evidence), scaled(pair, rho, weights))
    return expit(evidence - log_likelihood([rho]).item()), expected


@pytest.mark.parametrize(("distance", "came"), [(1.5, (15, 4)), (2.0, (18, 3)), (2.0, (10, 6))])
def test_shares_of_components_that_overlap_are_those_of_a_grid(monkeypatch, distance, came):
    usual = module.SWEEPS
    responses = two_groups([came], distance=distance)
    posterior = PresencePosterior(mixture(distance=distance), responses, 3)
    locations = np.array([0.0, distance])
    chance, expected = of_a_grid(responses, np.array([0.6, 0.4]), locations, 0.5, RHO)
    # few sweeps have not quite forgotten where they begin
    for sweeps, about, near in ((usual, 0.09, 0.006), (30, 0.025, 0.006)):
        monkeypatch.setattr(module, "SWEEPS", sweeps)
        shares = posterior.draw(np.arange(1), distribution(1, spread=1e-6))[:, 0]
        own = (shares != RHO).any(axis=1)
        assert own.mean() == pytest.approx(chance, abs=about)
        assert shares[own].mean(axis=0) == pytest.approx(expected, abs=near)


@pytest.mark.full
def test_shares_of_a_large_contribution_are_those_of_a_grid(monkeypatch):
    """Three standard deviations: the components of the responses are those of their presence."""
    size, rho, n = 3.0, 0.5, 20
    rest = np.random.default_rng(0).standard_normal(n)
    contribution = np.repeat([size, 0.0], n // 2)
    responses = of_one(rest, contribution)
    parts = ([0.5, 0.5], [0.0, size], [1.0, 1.0])
    p = Mixture(*(np.broadcast_to(part, (1, DRAWS, 2)) for part in parts))
    chance, expected = of_a_grid(responses, *map(np.array, parts[:2]), size, rho)
    assert chance > 0.999
    for sweeps, about, near in ((module.SWEEPS, 0.02, 0.1), (60, 0.005, 0.012)):
        monkeypatch.setattr(module, "SWEEPS", sweeps)
        posterior = PresencePosterior(p, responses, 3)
        shares = posterior.draw(np.arange(1), distribution(1, rho, size=size, spread=1e-6))[:, 0]
        own = (shares != rho).any(axis=1)
        assert own.mean() == pytest.approx(1.0, abs=about)
        assert shares[own].mean(axis=0) == pytest.approx(expected, abs=near)


@pytest.mark.full
@pytest.mark.parametrize("size", [1.0, 3.0, 6.0])
def test_the_band_of_a_large_contribution_holds_the_truth(size):
    """From one presence in all components delta came out at two thirds of the truth."""
    rng = np.random.default_rng(1)
    n = 400
    rest = rng.standard_normal(n)
    contribution = np.where(rng.random(n) < 0.5, size * (1.0 + 0.1 * rng.standard_normal(n)), 0.0)
    responses = of_one(rest, contribution)
    audit = edp.audit(
        responses,
        epsilon=[0.1],
        model=edp.DirichletProcessMixture(),
        draws=100,
        tune=300,
        chains=2,
        random_seed=1,
        progressbar=False,
    )
    p = Mixture([0.5, 0.5], [0.0, size], [1.0, np.hypot(1.0, 0.1 * size)])
    q = Mixture(1.0, 0.0, 1.0)
    truth = max(float(edp.hockey_stick(*pair, epsilon=0.1)) for pair in ((p, q), (q, p)))
    band = audit.band("delta", kind="pointwise", prob=0.95)
    assert band["lower"].item() < truth < band["upper"].item()
    assert band["upper"].item() - band["lower"].item() < 0.16
    assert band["median"].item() == pytest.approx(truth, abs=0.05)


def test_presence_on_the_whole_is_kept():
    shares = drawn([(20, 2), (12, 8)])
    assert ((shares < 1.0).all(axis=2)).any(axis=0).all()
    inside = (shares < 1.0).all(axis=2)
    np.testing.assert_allclose((shares @ [0.6, 0.4])[inside], RHO, rtol=1e-12)


@pytest.mark.full
def test_many_who_come_by_chance_do_not_make_the_largest_risk_larger():
    """Their shares differ by chance alone, and the largest risk is that of the luckiest."""
    rng = np.random.default_rng(5)
    people, n = 200, 41
    own = 0.1 * (1.0 + 0.3 * rng.standard_normal((n, people)))
    contribution = np.where(rng.random((n, people)) < 0.2, own, 0.0)
    responses = edp.Responses.from_arrays(
        rng.standard_normal(n) + contribution.sum(axis=1), contribution=sp.csc_array(contribution)
    )
    quick = edp.models.SamplerSettings(
        draws=150, tune=500, chains=1, random_seed=1, progressbar=False
    )
    coupling = edp.DirichletProcessMixture().fit(responses, quick).coupling
    largest = [
        np.median(each.curves(np.arange(people), np.array([0.02])).max(axis=1))
        for each in (coupling, replace(coupling, presence=None))
    ]
    assert largest[0] < 1.25 * largest[1]


def test_an_individual_rare_has_the_same_shares_when_no_absence_is_passed_over(monkeypatch):
    responses = two_groups([(1, 3)], distance=2.0)
    found = []
    for few in (5, 0):
        monkeypatch.setattr(module, "FEW", few)
        posterior = PresencePosterior(mixture(distance=2.0), responses, 3)
        found.append(posterior.draw(np.arange(1), distribution(1, 0.08))[:, 0, 1])
    assert stats.ks_2samp(*found).statistic < 0.05
    assert found[0].mean() == pytest.approx(found[1].mean(), rel=0.05)


def test_shares_do_not_depend_on_who_else_is_drawn():
    came = [(12, 8), (30, 20), (1, 3), (20, 2)]
    posterior = PresencePosterior(mixture(50), two_groups(came), 3)
    together = posterior.draw(np.arange(4), distribution(4, draws=50))
    alone = PresencePosterior(mixture(50), two_groups(came), 3).draw(
        np.array([3, 2]), distribution(2, draws=50)
    )
    np.testing.assert_array_equal(together[:, [3, 2]], alone)


def test_known_presence_stays():
    posterior = PresencePosterior(mixture(20), two_groups([(12, 8)]), 3)
    for rho in (0.0, 1.0):
        assert (posterior.draw(np.arange(1), distribution(1, rho, 20)) == rho).all()


def test_components_too_light_for_a_database_keep_the_presence():
    light = Mixture(
        *(
            np.broadcast_to(part, (1, 200, 3))
            for part in ([0.6, 0.399, 0.001], [0.0, 20.0, 10.0], [1.0, 1.0, 1.0])
        )
    )
    posterior = PresencePosterior(light, two_groups([(20, 2)]), 3)
    shares = posterior.draw(np.arange(1), distribution(1, draws=200, components=3))[:, 0]
    assert (shares[:, 2] == RHO).all()
    assert (shares[:, 0] > shares[:, 1]).mean() > 0.95


def test_many_samples_of_a_database_count_as_one():
    once = two_groups([(20, 2)])
    samples = 9
    many = edp.Responses(
        np.repeat(once.response, samples),
        sp.csc_array(np.repeat(once.contribution.toarray(), samples, axis=0)),
        once.individual,
        once.database,
        presence=once.presence,
        samples=samples,
    )
    shares = [
        PresencePosterior(mixture(), responses, 3).draw(np.arange(1), distribution(1))[:, 0]
        for responses in (once, many)
    ]
    for k in (0, 1):
        assert stats.ks_2samp(shares[0][:, k], shares[1][:, k]).pvalue > 1e-3


def test_known_noise_widens_what_is_compared():
    """Responses spread by noise: without it half of them would be of the wrong component."""
    rng = np.random.default_rng(4)
    came = rng.random(400) < np.repeat([0.8, 0.1], 200)
    rest = np.repeat([0.0, 3.0], 200) + 0.1 * rng.standard_normal(400)
    contribution = sp.csc_array(np.where(came, 0.01, 0.0)[:, None])
    noise = GaussianNoise(1.0)
    responses = edp.Responses.from_arrays(
        rest + contribution.toarray()[:, 0] + rng.normal(0.0, noise.scale, 400),
        contribution=contribution,
        noise=noise,
    )
    narrow = Mixture(
        *(np.broadcast_to(part, (1, 100, 2)) for part in ([0.5, 0.5], [0.0, 3.0], [0.1, 0.3]))
    )
    tiny = distribution(1, 0.45, 100, size=0.01)
    shares = PresencePosterior(narrow, responses, 3).draw(np.arange(1), tiny)[:, 0]
    assert shares.mean(axis=0) == pytest.approx([0.8, 0.1], abs=0.07)


def test_the_risk_of_an_individual_who_comes_with_few_is_that_of_their_own_shares():
    responses = two_groups([(25, 0)])
    plain = RegressionCoupling(mixture(100), ContributionPosterior.fit(responses, 3))
    coupling = RegressionCoupling.fit(mixture(100), responses, 3)
    epsilon = np.array([0.3, 0.6])
    with_shares, without = (c.curves(np.arange(1), epsilon)[:, 0] for c in (coupling, plain))
    assert (with_shares.mean(axis=0) > 1.3 * without.mean(axis=0)).all()
    p, q = coupling.pair(0)
    exact = np.maximum(
        edp.hockey_stick(p[0], q[0], epsilon=epsilon), edp.hockey_stick(q[0], p[0], epsilon=epsilon)
    )
    np.testing.assert_allclose(with_shares, exact, rtol=1e-7, atol=1e-11)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize("rho", [0.5, 0.2])
def test_a_contribution_that_makes_a_component_of_its_own_is_found(kernel, rho):
    """Six standard deviations: they are in the databases of the one and in none of the other."""
    rng = np.random.default_rng(2)
    came = rng.random(200) < rho
    contribution = np.where(came, 6.0 + 0.3 * rng.standard_normal(200), 0.0)
    rest = rng.standard_normal(200) if kernel == "gaussian" else rng.laplace(size=200)
    responses = of_one(rest, contribution)
    parts = ([1.0 - rho, rho], [0.0, 6.0], [1.0, np.hypot(1.0, 0.3)])
    p = Mixture(*(np.broadcast_to(part, (1, 100, 2)) for part in parts), kernel=kernel)
    steady = distribution(1, rho, 100, size=6.0, spread=0.05)
    shares = PresencePosterior(p, responses, 3).draw(np.arange(1), steady)[:, 0]
    assert np.median(shares[:, 0]) < 0.05
    assert np.median(shares[:, 1]) > 0.85
