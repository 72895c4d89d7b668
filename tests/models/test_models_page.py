"""The page on models: its code runs, and says what stands there."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import edp_bayes as edp
from edp_bayes.diagnostics import check_databases

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
OWN = Path(__file__).parents[2] / "docs" / "models" / "your_own.md"
SEVERAL = OWN.with_name("several_queries.md")


@pytest.mark.full
def test_a_density_of_your_own_runs():
    own = OWN.read_text(encoding="utf-8").partition("## A density of your own")[2]
    (block,) = re.findall(r"```python\n(.*?)```", own.partition("\n## ")[0], flags=re.S)
    names: dict = {}
    with pytest.warns(edp.EdpBayesWarning, match="The largest contribution"):
        exec(compile(block, str(OWN), "exec"), names)
    found = names["audit"].tree["parameters"]
    # Busy weeks were 6 more, and three in ten.
    assert (
        abs(float((found["locations"][..., 1] - found["locations"][..., 0]).median()) - 6.0) < 1.0
    )
    assert abs(float(found["share"].median()) - names["busy"].mean()) < 0.1


@pytest.fixture(scope="module")
def examples():
    """Return the names that the code of each example leaves."""
    own = PAGE.read_text(encoding="utf-8").partition("## Two worked examples")[2]
    blocks = re.findall(r"```python\n(.*?)```", own.partition("\n## ")[0], flags=re.S)
    assert len(blocks) == 2
    names: dict = {}
    found = []
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        found.append(dict(names))
    return found


def true_risk(person):
    """Return the risk under the distribution that the example draws its databases from."""
    patterns = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    each = np.prod(np.where(patterns, [0.9, 0.8], [0.1, 0.2]), axis=1)
    weights = 0.6 * each + 0.4 * (np.arange(4) == 0)
    cleo = np.array([0.2, 0.8])
    present = np.array([[*pattern, c] for pattern in patterns for c in (0, 1)])
    w, amounts = np.outer(weights, cleo).ravel(), np.array([1.0, 1.5, 1.0])
    x = np.linspace(10.0, 35.0, 200_001)

    def density(there):
        places, sd = 20.0 + there @ amounts, np.sqrt(1.0 + 0.01 * there.sum(axis=1))
        return sum(part * norm.pdf(x, *at) for part, *at in zip(w, places, sd, strict=True))

    p, q = density(present), density(present * (np.arange(3) != person))
    growth = np.exp([0.1, 0.5])
    both = [[np.maximum(a - g * b, 0.0).sum() for g in growth] for a, b in ((p, q), (q, p))]
    return np.max(both, axis=0) * (x[1] - x[0])


@pytest.mark.full
def test_in_a_household_an_absence_tells_of_the_others(examples):
    audit = examples[0]["audit"]
    parameters = audit.tree["parameters"].to_dataset()
    w = parameters["weights"].sel(component=["neither", "Ann", "Ben", "both"]).to_numpy()
    given, without = w[..., 3] / (w[..., 1] + w[..., 3]), w[..., 2] / (w[..., 0] + w[..., 2])
    assert np.quantile(given - without, 0.01) > 0.4  # 0.8 and 0.1 are true
    assert given.mean() == pytest.approx(0.79, abs=0.01)
    assert without.mean() == pytest.approx(0.05, abs=0.01)
    # both come by one latent presence
    comes, joins = parameters["household_comes"].to_numpy(), parameters["member_joins"].to_numpy()
    np.testing.assert_allclose(w[..., 3], comes * joins.prod(axis=-1), rtol=1e-9)


@pytest.mark.full
def test_what_the_household_states_of_presence_withholds_nothing(examples):
    audit, responses = examples[0]["audit"], examples[0]["responses"]
    assert audit.withheld is None
    assert "off what the model states" in audit.checks.loc["presence", "sentence"]
    assert not check_databases(responses)["presence"].passed


@pytest.mark.full
def test_without_ann_the_component_of_both_is_that_of_ben(examples):
    home = examples[0]
    audit, model = home["audit"], edp.PyMCMixture(home["household"], contributions=home["names"])
    draws = audit.tree["parameters"].to_dataset()
    drawn = model.to_mixture(draws, home["responses"])
    p, p_i = drawn.pair("Ann")
    w = p_i.weights > 0.0
    assert (w.sum(axis=-1) == 4).all()
    located = p_i.locations[w].reshape(*p_i.weights.shape[:2], 4)
    order = np.argsort(located, axis=-1, kind="stable")
    sorted_places = np.take_along_axis(located, order, axis=-1)
    ben = draws["locations"].sel(component="Ben").to_numpy()
    np.testing.assert_allclose(sorted_places[..., 2], ben, rtol=1e-9)
    np.testing.assert_allclose(sorted_places[..., 3], ben, rtol=1e-9)
    mean = (draws["weights"] * draws["locations"]).sum("component").to_numpy()
    np.testing.assert_allclose((p.weights * p.locations).sum(axis=-1), mean, rtol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize(("label", "person"), [("Ann", 0), ("Ben", 1)])
def test_the_bands_of_the_household_cover_their_true_risks(examples, label, person):
    draws = examples[0]["audit"].individual_delta.sel(individual=label)
    low, high = draws.quantile([0.01, 0.99], ("chain", "draw")).to_numpy()
    wanted = true_risk(person)
    assert ((low < wanted) & (wanted < high)).all(), (low, wanted, high)


@pytest.mark.full
def test_whose_amounts_grow_has_the_largest_risk(examples):
    grown = examples[1]["grown"]
    assert grown.individual_delta.mean(("chain", "draw")).isel(epsilon=0).idxmax() == 2
    assert 1.4 < float(grown.tree["parameters"]["next_amount"].mean(("chain", "draw"))[2]) < 1.8


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The effect of Potentials:UserWarning")
def test_the_model_of_several_queries_predicts():
    (block,) = re.findall(r"```python\n(.*?)```", SEVERAL.read_text(encoding="utf-8"), flags=re.S)
    names: dict = {}
    exec(compile(block, str(SEVERAL), "exec"), names)
    predicted = names["found"]["predictions"]["response"].isel(database=0)
    observed = names["joined"].response
    error = observed.std(axis=0) / np.sqrt(len(observed))
    assert (np.abs(predicted.mean(("chain", "draw")) - observed.mean(axis=0)) < 4.0 * error).all()
    np.testing.assert_allclose(predicted.std(("chain", "draw")), observed.std(axis=0), rtol=0.3)
    assert names["draws"]["log_likelihood"]["response"].dims == ("chain", "draw", "database")
