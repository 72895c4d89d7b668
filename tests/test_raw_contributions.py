"""What is shown as a contribution is what was contributed; anything else is called adjusted."""

import io

import numpy as np
import pytest
from rich.console import Console

import edp_bayes as edp
from edp_bayes.cli.report import print_report
from edp_bayes.noise.calibration import _message
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.posterior import posterior_of
from edp_bayes.report.describing import describe
from edp_bayes.results.summaries import contributions_shown

N, PEOPLE = 40, 4
QUICK = {
    "epsilon": [0.1, 0.5],
    "model": edp.SmoothedBootstrap(),
    "draws": 50,
    "random_seed": 1,
    "progressbar": False,
}


def rising():
    """Contributions that double over the databases, the first of them of nobody else's size."""
    rng = np.random.default_rng(2)
    time = np.linspace(0.0, 1.0, N)[:, None]
    part = (1.0 + time) * rng.gamma(20.0, 0.05, (N, PEOPLE))
    part[0, 2] = 9.0
    response = 50.0 + 5.0 * time[:, 0] + rng.normal(size=N) + part.sum(axis=1)
    labels = ["ann", "bob", "cat", "dan"]
    return part, edp.Responses.from_arrays(
        response, contribution=part, individual=labels, additive=True
    )


@pytest.fixture(scope="module")
def case():
    part, responses = rising()
    adversary = edp.Adversary(past=1, trend=True, insiders=["bob"])
    return part, responses, edp.audit(responses, adversary=adversary, **QUICK)


def test_the_largest_contribution_is_in_the_data(case):
    part, _, audit = case
    about = audit.individuals
    expected = np.abs(part[:, [0, 2, 3]]).max(axis=0)
    np.testing.assert_array_equal(about["largest_contribution"], expected)
    np.testing.assert_array_equal(about["signed_contribution"], expected)
    adjusted = about["adjusted_contribution"].to_numpy()
    assert (np.abs(adjusted[[0, 2]] - expected[[0, 2]]) > 0.01).all(), "adjusted to what comes next"


def test_tables_show_it_and_noise_counts_it(case):
    part, _, audit = case
    content = describe(audit, epsilon=0.1, names=True)
    assert content.people.contributes == "largest contribution"
    shown = {row.name: row.contribution for row in content.people.rows}
    assert shown == pytest.approx({"ann": part[:, 0].max(), "cat": 9.0, "dan": part[:, 3].max()})
    # a lag alone held it: whoever contributed it may contribute it again
    assert content.enough.largest == 9.0
    np.testing.assert_allclose(content.enough.scale, [90.0, 18.0])
    released = audit.tree["known"]["released"].to_numpy()
    assert content.enough.spread == pytest.approx(released.std(ddof=1))
    console = Console(width=80, file=io.StringIO())
    print_report(audit, console, prob=0.95)
    (row,) = [line for line in console.file.getvalue().splitlines() if "│ cat" in line]
    assert row.rstrip(" │").endswith(" 9")


def test_noise_says_what_was_contributed(case):
    _, responses, audit = case
    posterior = posterior_of(audit, responses=responses)
    assert posterior.raw.individual.tolist() == posterior.individual.tolist()
    noise = NoiseDistribution((edp.LaplaceNoise(1000.0),))
    with pytest.warns(edp.EdpBayesWarning, match="contributes up to 9"):
        said = _message(posterior, noise, {"method": "laplace", "reached": 1.0})
    assert "contributes up to 9. " in said


def test_without_an_adversary_nothing_is_adjusted():
    part, responses = rising()
    audit = edp.audit(responses, **QUICK)
    assert "adjusted_contribution" not in audit.individuals
    found, name = contributions_shown(audit)
    assert name == "largest contribution"
    np.testing.assert_array_equal(found, part.max(axis=0))


@pytest.mark.full
def test_contributions_to_several_queries_are_adjusted():
    part, responses = rising()
    rng = np.random.default_rng(3)
    other = edp.Responses.from_arrays(
        rng.normal(size=N) + 0.5 * part.sum(axis=1),
        contribution=0.5 * part,
        individual=["ann", "bob", "cat", "dan"],
        query="half",
    )
    audit = edp.audit(edp.Responses.join(responses.replaced(query="all"), other), **QUICK)
    assert "largest_contribution" not in audit.individuals
    assert contributions_shown(audit)[1] == "adjusted contribution"
    page = describe(audit, epsilon=0.1)
    assert page.people.contributes == "adjusted contribution"
    assert len(audit.with_pseudonyms().individuals["individual"]) == PEOPLE
