"""What a report claims is what its numbers hold: whole curves, named targets, no zero by a rule."""

import io
import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from report_cases import small_audit, small_responses
from rich.console import Console

import edp_bayes as edp
from edp_bayes import plots
from edp_bayes.cli.report import print_report
from edp_bayes.report.describing import describe
from edp_bayes.report.html import render
from edp_bayes.results.bands import upper_limit

EPSILON = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])


@cache
def plain():
    return small_audit(small_responses([f"p{k}" for k in range(4)]), draws=50)


def curves(count, seed):
    """Curves that fall at rates of their own, so that who is high here is not who is high there."""
    rng = np.random.default_rng(seed)
    start, rate = rng.beta(4.0, 12.0, (count, 1)), rng.gamma(8.0, 0.6, (count, 1))
    bumps = np.cumsum(rng.gamma(0.5, 0.2, (count, EPSILON.size)), axis=1)
    return start * np.exp(-rate * EPSILON - bumps)


def with_draws(draws, **others):
    """An audit whose draws of delta are these, and of the total risk and its bound likewise."""
    audit = plain()
    tree = audit.tree.copy()
    posterior = tree["posterior"].to_dataset()
    chains = posterior.sizes["chain"]
    count = draws.shape[0] // chains
    found = {name: others.get(name, draws) for name in ("delta", "total_risk", "total_risk_bound")}
    dims = ("chain", "draw", "epsilon")
    kept = audit.individual_delta.isel(draw=np.zeros(count, dtype=int))
    tree["posterior"] = (
        posterior.drop_dims("draw")
        .assign({name: (dims, values.reshape(chains, count, -1)) for name, values in found.items()})
        .assign(individual_delta=kept.assign_coords(draw=np.arange(count)))
    )
    del tree["lower_bounds"]
    tree["mixture"].attrs["kernel"] = "gaussian"
    return edp.Audit(tree)


def said_of(audit, **options):
    """Return the words of the page, without its marks and script."""
    page = render(describe(audit, **options))
    page = re.sub(r"<(script|style).*?</\1>", " ", page, flags=re.S)
    return " ".join(re.sub(r"<[^>]*>", "", page).split())


def test_limits_under_the_slider_hold_the_share_of_whole_curves_that_they_claim():
    """Of fresh curves of the same distribution, over repetitions; pointwise limits hold fewer."""
    held = {"simultaneous": [], "pointwise": []}
    fresh = curves(4000, 10**6)
    for seed in range(40):
        draws = curves(400, seed)
        for kind, share in held.items():
            limit = upper_limit(draws, 0.95, kind=kind)
            share.append((fresh <= limit).all(axis=1).mean())
    error = np.std(held["simultaneous"]) / np.sqrt(40) + np.sqrt(0.05 * 0.95 / 4000)
    assert np.mean(held["simultaneous"]) == pytest.approx(0.95, abs=3 * error)
    assert np.mean(held["pointwise"]) < 0.92, "the case must tell the two apart"


@pytest.mark.full
def test_the_slider_shows_limits_of_the_whole_curve():
    draws = curves(2000, 1)
    audit = with_draws(draws)
    content = describe(audit, epsilon=0.1)
    limit = np.array(content.limit)
    assert (draws <= limit).all(axis=1).mean() >= 0.95
    assert (draws <= audit.upper("delta").to_numpy()).all(axis=1).mean() < 0.95
    assert (limit >= audit.upper("delta").to_numpy()).all()
    assert "with 95% probability δ is below it at all ε at once" in said_of(audit, epsilon=0.1)


@pytest.mark.parametrize("quantity", ["delta", "individual_delta"])
def test_a_limit_of_the_whole_curve_is_nowhere_below_that_of_single_points(quantity):
    audit = plain()
    whole, single = (audit.upper(quantity, kind=kind) for kind in ("simultaneous", "pointwise"))
    assert whole.dims == single.dims
    assert (whole >= single).all()
    assert (whole <= audit._quantity(quantity).max(("chain", "draw"))).all()
    with pytest.raises(edp.InvalidInputError, match="kind must be one of"):
        audit.upper(quantity, kind="whole")


@pytest.mark.full
def test_a_mechanism_leaves_room_for_the_unseen_at_all_epsilon():
    same = edp.audit_mechanism([0] * 100, [0] * 100, epsilon=[0.5, 1.0], progressbar=False)
    limit = same.upper(kind="simultaneous")
    assert (limit >= -np.expm1(np.log(0.0501) / 100)).all()


@pytest.mark.full
def test_a_target_that_is_not_reached_is_said_and_no_other_epsilon_is_chosen():
    audit = with_draws(0.2 + curves(400, 2))
    content = describe(audit)
    assert content.epsilon[content.at] == 0.1
    assert content.limit[-1] > 0.2
    said = said_of(audit)
    assert content.verdict.status == "not met"
    assert content.verdict.claim in said
    assert "The target is the default: epsilon = 0.1 and delta = 0.1, that of fewer" in said
    out = io.StringIO()
    print_report(audit, Console(file=out, width=400), prob=0.95)
    assert out.getvalue().splitlines()[0] == content.verdict.claim
    assert describe(audit, epsilon=0.4).verdict.epsilon == 0.4


@pytest.mark.full
def test_one_probability_on_a_page():
    for options, share in (({}, "95%"), ({"prob": 0.8}, "80%")):
        content = describe(plain(), epsilon=0.1, **options)
        assert f"{100 * content.prob:g}%" == share
        limit = plain().upper("delta", prob=content.prob, kind="simultaneous")
        assert content.limit == tuple(limit.to_numpy())
        said = said_of(plain(), epsilon=0.1, **options)
        start = said.index("Verdict")
        body = said[start : said.index("Checks", start)]
        body = re.sub(r"\d+(\.\d+)?% (before|of cases|above)|likelier than \d+%", "", body)
        assert set(re.findall(r"\d+(?:\.\d+)?%", body)) == {share}


@pytest.mark.full
def test_no_median_bounds_the_total_risk():
    draws = curves(2000, 3)
    total = 1.0 - (1.0 - draws) ** 2
    audit = with_draws(draws, total_risk=total, total_risk_bound=np.minimum(2.0 * draws, 1.0))
    content = describe(audit, epsilon=0.1)
    bound = np.array(content.total.bound)
    assert (np.minimum(2.0 * draws, 1.0) <= bound).all(axis=1).mean() >= 0.95
    said = said_of(audit, epsilon=0.1)
    assert "(medians)" not in said
    assert "and the upper end of that of the sum of all risks" in said
    out = io.StringIO()
    print_report(audit, Console(file=out, width=120), prob=0.95)
    assert "the last column is the upper end of the 95% simultaneous band of that" in " ".join(
        out.getvalue().split()
    )
    pc = plots.plot_total_risk(audit, backend="none", ci_prob=0.95)
    shown = pc.viz["upper_bound"]["total_risk"].item()
    np.testing.assert_allclose(shown["y"], bound)


@pytest.mark.full
def test_a_zero_of_a_normal_mixture_is_below_something_and_rests_on_its_shape():
    audit = with_draws(np.zeros((400, EPSILON.size)))
    assert not audit.exact_zeros
    said = said_of(audit, epsilon=0.1)
    resting = "below 1e-6, resting on how narrow the model lets the distribution of the answer be"
    assert f"the largest risk of any of 4 individuals is {resting}" in said
    assert "its median is below 1e-6." in said
    assert not re.search(r"(at most|exactly|is|median) 0[,. ](?!\d)", said.split("Assumptions")[0])
    out = io.StringIO()
    print_report(audit, Console(file=out, width=400), prob=0.95)
    assert f"the largest risk of any of 4 individuals is {resting}" in out.getvalue()
    rows = [line for line in out.getvalue().splitlines() if line.startswith("│")]
    assert not any(re.search(r"│ +0 +│|\b0 to 0\b", row) for row in rows if "p0" not in row[:9])


@pytest.mark.full
def test_a_zero_of_laplace_kernels_is_exactly_that():
    rng = np.random.default_rng(4)
    part = 1e-6 * rng.gamma(2.0, 1.0, (40, 3))
    responses = edp.Responses.from_arrays(rng.normal(size=40), contribution=part)
    model = edp.SmoothedBootstrap(kernel="laplace")
    options = {"epsilon": [0.1, 0.5], "draws": 50, "random_seed": 1, "progressbar": False}
    audit = edp.audit(responses, model=model, **options)
    assert float(audit.delta.max()) == 0.0
    assert audit.exact_zeros
    assert (
        "the largest risk of any of 3 individuals is exactly 0, resting on the Laplace"
        in said_of(audit)
    )
    normal = edp.audit(responses, model=edp.SmoothedBootstrap(kernel="gaussian"), **options)
    assert not normal.exact_zeros
    assert "is below 1e-6, resting on how narrow" in said_of(normal)


def test_a_zero_of_nobody_s_contributions_rests_on_nothing():
    audit = with_draws(np.zeros((400, EPSILON.size)))
    about = audit.tree["individuals"].to_dataset()
    none = {
        name: xr.zeros_like(about[name]) for name in ("largest_contribution", "signed_contribution")
    }
    audit.tree["individuals"] = about.assign(none)
    assert audit.exact_zeros
    assert "individuals is exactly 0, with 95% probability; its median is 0." in said_of(audit)
