"""`Audit.released`: never above the full answer, the same draws, and what bad input gets."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.auditing import evaluation
from edp_bayes.loading import load

QUICK = {"draws": 30, "tune": 80, "chains": 2, "random_seed": 1, "progressbar": False}
EPSILON = [0.05, 0.3, 1.0]
RULES = {
    "rounded": {"rounded_to": 2.0, "offset": 0.3},
    "finely": {"rounded_to": 1e-3},
    "worst": {"rounded_to": 2.0, "offset": "worst"},
    "threshold": {"threshold": 21.0},
    "both": {"threshold": 21.0, "rounded_to": 1.0},
    "bins": {"bins": [19.0, 21.0, 22.0]},
    "noise": {"rounded_to": 1.0, "noise_after": edp.LaplaceNoise(0.5)},
}


def responses(noise=None):
    rng = np.random.default_rng(7)
    c = rng.gamma(2.0, 0.05, (30, 6)) * (rng.random((30, 6)) < 0.6)
    c[:, 2] = 0.5 + 0.1 * rng.standard_normal(30)
    y = 20.0 + rng.standard_normal(30) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, query="sales", noise=noise)


@pytest.fixture(scope="module", params=["bootstrap", "mixture", "noisy"])
def audit(request):
    model = {"bootstrap": edp.SmoothedBootstrap()}.get(request.param)
    noise = edp.LaplaceNoise(0.2) if request.param == "noisy" else None
    few = {"draws": 5} if noise else {}
    return edp.audit(responses(noise), epsilon=EPSILON, model=model, **QUICK | few)


@pytest.fixture(scope="module")
def plain():
    return edp.audit(responses(), epsilon=EPSILON, model=edp.SmoothedBootstrap(), **QUICK)


def every_risk(audit):
    """Return delta_i of everybody by brute force: rounded to 2 with offset 0.3."""
    edges = 1.3 + 2.0 * np.arange(-100, 100)
    growth = np.exp(EPSILON)[:, None]
    found = []
    for person in range(6):
        p, q = (np.diff(d.cdf(edges), prepend=0.0, append=1.0) for d in
                audit.source.coupling.pair(person))  # fmt: skip
        p, q = p[..., None, :], q[..., None, :]
        found.append(
            np.maximum(
                np.maximum(p - growth * q, 0.0).sum(axis=-1),
                np.maximum(q - growth * p, 0.0).sum(axis=-1),
            )
        )
    return np.stack(found, axis=2)


@pytest.mark.full
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_is_published_is_never_riskier_than_the_answer(audit, rule):
    released = audit.released(**rule, progressbar=False)
    for name in ("delta", "total_risk", "total_risk_bound", "individual_delta"):
        assert (getattr(released, name) <= getattr(audit, name)).all()
    largest = released.individual_delta.max("individual")
    np.testing.assert_allclose(released.delta, largest, rtol=1e-9, atol=2e-9)
    assert (released.individuals["mean"] <= audit.individuals["mean"] + 1e-12).all()
    for kind in ("pointwise", "simultaneous"):
        band = released.band("delta", kind=kind)
        assert (band["lower"] <= band["median"]).all()
        assert (band["median"] <= band["upper"]).all()
    # no test of what is published is better than the best
    tested = released.tree["lower_bounds"]["individual_delta"]
    assert (tested <= released.individual_delta.sel(draw=tested["draw"]) + 1e-9).all()


def test_risks_are_sums_over_bins(audit):
    released = audit.released(**RULES["rounded"], progressbar=False)
    truth = every_risk(audit)
    np.testing.assert_allclose(released.delta, truth.max(axis=2), rtol=0.0, atol=1e-11)
    total = 1.0 - np.prod(1.0 - truth, axis=2)
    np.testing.assert_allclose(released.total_risk, total, rtol=0.0, atol=1e-10)
    names = released.individual_delta["individual"].to_numpy()
    np.testing.assert_allclose(released.individual_delta, truth[:, :, names], rtol=0.0, atol=1e-11)


def test_epsilon_at_is_where_the_published_curve_falls_to_delta(plain):
    released = plain.released(**RULES["rounded"], progressbar=False)
    target = float(released.delta.sel(epsilon=0.3).median())
    found = released.epsilon_at(target)
    assert (found <= plain.epsilon_at(target) + 1e-3).all()
    again = edp.audit(
        responses(), epsilon=[float(found[0, 0])], model=edp.SmoothedBootstrap(), **QUICK
    ).released(**RULES["rounded"], progressbar=False)
    assert float(again.delta[0, 0, 0]) == pytest.approx(target, rel=0.01)


@pytest.mark.full
def test_bounds_of_the_less_risky_do_not_touch_delta(plain, monkeypatch):
    """Only those who may be the riskiest are reduced; delta is that of everybody."""
    rng = np.random.default_rng(3)
    c = rng.gamma(2.0, 0.1, (40, 12)) * rng.lognormal(0.0, 1.0, 12)
    y = 20.0 + rng.standard_normal(40) + c.sum(axis=1) - c.sum(axis=1).mean()
    many = edp.Responses.from_arrays(y, contribution=c)
    audit = edp.audit(many, epsilon=EPSILON, keep=2, **QUICK)
    everybody = edp.audit(many, epsilon=EPSILON, keep=12, **QUICK)
    for name in ("threshold", "worst"):
        monkeypatch.setattr(evaluation, "BLOCK_NUMBERS", 2**22)
        some = audit.released(**RULES[name], progressbar=False)
        every = everybody.released(**RULES[name], progressbar=False)
        np.testing.assert_allclose(some.delta, every.delta, rtol=1e-9, atol=1e-12)
        exact = 1.0 - np.prod(1.0 - every.individual_delta.to_numpy(), axis=2)
        assert (some.total_risk >= exact - 1e-9).all()
        # whatever the blocks
        monkeypatch.setattr(evaluation, "BLOCK_NUMBERS", 1)
        again = audit.released(**RULES[name], progressbar=False)
        np.testing.assert_array_equal(some.total_risk, again.total_risk)


@pytest.mark.full
def test_it_says_what_is_published(plain, tmp_path):
    released = plain.released(rounded_to=1000, progressbar=False)
    assert released.settings["released"] == {
        "words": "rounded to 1000", "rounded_to": 1000.0, "offset": 0.0, "query": "sales",
    }  # fmt: skip
    assert released.subject[0] == "sales, rounded to 1000"
    assert "sales, rounded to 1000" in repr(released)
    assert "sales" in plain.subject[0]
    assert "rounded" not in plain.subject[0]
    # everything lies in one bin
    assert float(released.delta.max()) == 0.0
    page = released.report(tmp_path / "report.html").read_text()
    assert "sales, rounded to 1000" in page
    assert "What is published is the answer rounded to 1000" in page
    again = load(released.save(tmp_path / "released.nc"))
    assert again.settings["released"]["rounded_to"] == 1000.0
    assert (again.delta == released.delta).all()
    assert "delta" in " ".join(map(str, released.summary().index))
    words = plain.released(rounded_to=2.0, offset="worst", progressbar=False).settings["query"]
    assert words == "sales, rounded to 2 at the worst offset"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "say what is published"),
        ({"rounded_to": 0.0}, "rounded_to must be greater than 0, found 0"),
        ({"rounded_to": 1.0, "offset": "best"}, "offset must be a number or 'worst'"),
        ({"threshold": 1.0, "offset": 1.0}, "an offset is that of a grid"),
        ({"threshold": np.nan}, "threshold must be finite"),
        ({"bins": [2.0, 1.0]}, "bins must be edges in increasing order"),
        ({"bins": [1.0], "threshold": 1.0}, "bins stand alone"),
        ({"rounded_to": 1.0, "threshold": 1.0, "offset": "worst"}, "the worst offset"),
        ({"rounded_to": 1.0, "offset": 1e12}, "rounded_to must be at least 1e-09 of offset"),
        ({"rounded_to": 1.0, "noise_after": 2.0}, "noise_after must be GaussianNoise or"),
        ({"bins": [1.0], "noise_after": edp.GaussianNoise(1.0)}, "noise= of the query"),
        ({"rounded_to": 1e-4, "noise_after": edp.GaussianNoise(1.0)}, "at most 512 rounded"),
        (
            {"rounded_to": 1.0, "offset": "worst", "noise_after": edp.GaussianNoise(1.0)},
            "without noise_after",
        ),
    ],
)
def test_bad_arguments_are_named(plain, options, message):
    with pytest.raises((edp.InvalidInputError, edp.InputTypeError), match=message):
        plain.released(**options, progressbar=False)


@pytest.mark.full
def test_the_fit_and_the_full_answer_are_needed(plain, tmp_path):
    loaded = load(plain.save(tmp_path / "audit.nc"))
    with pytest.raises(edp.InvalidInputError, match="as long as an audit has its fit"):
        loaded.released(rounded_to=1.0)
    released = plain.released(rounded_to=1.0, progressbar=False)
    with pytest.raises(edp.InvalidInputError, match="an answer rounded to 1 already"):
        released.released(rounded_to=2.0)
    with pytest.raises(edp.InvalidInputError, match="for the full answer alone"):
        released.epsilon_at(0.0)
