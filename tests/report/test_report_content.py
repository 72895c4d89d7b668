"""What a report says, compared with the result itself."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest
import xarray as xr
from report_cases import EPSILON, HOSTILE, several_properties, small_audit, small_responses
from scipy.stats import norm

import edp_bayes as edp
from edp_bayes.black_box.auditing import audit_mechanism
from edp_bayes.property_audit import audit_property
from edp_bayes.report import describe
from edp_bayes.report.figures import histogram, privacy_figures
from edp_bayes.report.pseudonyms import UNCLEAR, WITHHELD, namer
from edp_bayes.report.sections.records import NAMES
from edp_bayes.report.sections.words import in_words
from edp_bayes.results.base import NOBODY_KNOWN
from edp_bayes.statistical_privacy import PropertyQuery, Subsampling
from edp_bayes.utils.defaults import PROB
from edp_bayes.utils.formatting import about
from edp_bayes.utils.sentences import Name, Sentence, restored


@pytest.fixture(scope="module")
def content(audit):
    return describe(audit, prob=0.9, names=True, epsilon=0.1)


@pytest.mark.full
def test_curves_are_those_of_the_audit(audit, content):
    assert content.epsilon == tuple(EPSILON)
    assert content.epsilon[content.at] == 0.1
    for curve, name in ((content.curve, "delta"), (content.total.curve, "total_risk")):
        for kind in ("pointwise", "simultaneous"):
            band = audit.band(name, kind=kind, prob=0.9)
            np.testing.assert_array_equal(getattr(curve, kind).lower, band["lower"])
            np.testing.assert_array_equal(getattr(curve, kind).upper, band["upper"])
        np.testing.assert_array_equal(curve.median, band["median"])
    bound = audit.band("total_risk_bound", prob=0.9)["upper"]
    assert (np.array(content.total.bound) >= content.total.curve.simultaneous.upper).all()
    np.testing.assert_array_equal(content.total.bound, bound)


def test_the_table_holds_everybody_by_falling_risk(audit, content):
    rows = content.people.rows
    median = audit.individuals["median"].sel(epsilon=0.1)
    assert [row.median for row in rows] == sorted(median.to_numpy().tolist(), reverse=True)
    assert {row.name for row in rows} == set(HOSTILE)
    with_draws = [row for row in rows if row.interval]
    assert {row.name for row in with_draws} == set(audit.individual_delta["individual"].to_numpy())
    assert 4 < len(with_draws) < len(rows)
    for row in with_draws:
        draws = audit.individual_delta.sel(individual=row.name, epsilon=0.1).to_numpy()
        low, high = row.interval[0], row.interval[2]
        assert ((draws >= low) & (draws <= high)).mean() >= 0.9
        assert ((draws > low) & (draws < high)).mean() <= 0.9
        assert row.median == pytest.approx(np.median(draws))
        assert row.interval[1] == pytest.approx(row.median)
    assert content.people.rest.counts == ()


def test_densities_and_their_ratio_are_those_of_the_draws(audit, content):
    riskiest = [row.name for row in content.people.rows if row.interval]
    assert [distributions.name for distributions in content.distributions] == riskiest[:6]
    distributions = content.distributions[0]
    group = audit.tree["densities"].sel(individual=distributions.name)
    p, q = (group[f"density_{distribution}"].astype(float) for distribution in ("with", "without"))
    np.testing.assert_allclose(distributions.present.median, p.median(("chain", "draw")))
    at = group["x"].to_numpy().searchsorted(distributions.ratio_x)
    ratio = np.log(p / q).median(("chain", "draw")).to_numpy()
    np.testing.assert_allclose(distributions.ratio.median, ratio[at], rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(at, np.arange(group.sizes["x"]))


@pytest.mark.full
def test_without_a_wish_the_verdict_is_that_of_the_default_target(audit):
    content = describe(audit, prob=0.95)
    upper = audit.upper("delta", kind="simultaneous").to_numpy()
    assert content.limit == tuple(upper)
    assert content.epsilon[content.at] == content.verdict.epsilon == 0.1
    assert content.verdict.delta == 1.0 / 12.0
    assert content.verdict.claim.startswith(f"Met: against {NOBODY_KNOWN}, at epsilon = 0.1")
    whole = describe(audit, epsilon=0.3, delta=0.02)
    assert whole.epsilon[whole.at] == 0.2
    assert (whole.verdict.epsilon, whole.verdict.delta) == (0.3, 0.02)
    with pytest.raises(edp.InvalidInputError, match=r"from 0.02 to 0.8, found 0.9"):
        describe(audit, epsilon=0.9)


@pytest.mark.full
def test_pseudonyms_stand_everywhere_and_contributions_are_rounded(audit):
    hidden, open_ = describe(audit, epsilon=0.1), describe(audit, epsilon=0.1, names=True)
    said = [dataclasses.asdict(hidden), hidden.verdict.helps]
    everything = json.dumps(said, ensure_ascii=False, default=str)
    for name in HOSTILE:
        assert json.dumps(name, ensure_ascii=False)[1:-1] not in everything
        assert repr(name)[1:-1] not in everything
    assert "Anna" not in everything
    assert "Anna" in " ".join(check.sentence for check in open_.failed)
    assert hidden.failed[0].sentence != open_.failed[0].sentence
    assert open_.pseudonyms is None
    for row, exact in zip(hidden.people.rows, open_.people.rows, strict=True):
        assert row.median == exact.median
        assert exact.contribution <= row.contribution < 1.1 * exact.contribution
        assert float(f"{row.contribution:.2g}") == pytest.approx(row.contribution)


@pytest.mark.full
def test_a_result_whose_sentences_are_plain_text_hides_names_too(audit):
    older = audit.to_datatree()
    rows = json.loads(older.attrs["checks"])
    plain = [row | {"sentence": str(restored(row["sentence"]))} for row in rows]
    older.attrs |= {"checks": json.dumps(plain), "warnings": json.dumps(audit.warnings)}
    older = edp.Audit(older)
    assert older.warnings == audit.warnings
    assert older.checks.equals(audit.checks)
    hidden = describe(older, epsilon=0.1)
    assert "Anna" not in json.dumps([dataclasses.asdict(hidden), hidden.verdict.helps], default=str)
    assert UNCLEAR in {check.sentence for check in hidden.failed}
    named = describe(older, epsilon=0.1, names=True)
    assert named.checks == describe(audit, epsilon=0.1, names=True).checks


def test_noise_that_is_always_enough_hides_the_largest_contribution(audit, content):
    largest = float(audit.individuals["largest_contribution"].max())
    np.testing.assert_allclose(content.enough.scale, largest / EPSILON)
    scale = content.enough.scale[content.at]
    y = audit.tree["observed_data"]["response"].to_numpy()
    # Two Laplace distributions, moved by at most that contribution, differ by at most exp(epsilon).
    t = np.linspace(y.min() - 9.0, y.max() + 9.0, 4001)
    gap = (np.abs(t[:, None] - y + largest) - np.abs(t[:, None] - y)) / scale
    assert np.abs(gap).max() == pytest.approx(content.epsilon[content.at])


@pytest.mark.full
def test_calibrated_noise_is_shown(audit):
    from edp_bayes.noise import LaplaceNoise
    from edp_bayes.noise.distribution import NoiseDistribution

    record = {"method": "laplace", "epsilon": 0.1, "delta": 0.0, "reached": 0.97}
    anna = Name("'Anna Meier'", "Anna Meier")
    record["message"] = Sentence("But individual ", anna, " contributes up to 4.")
    noise = NoiseDistribution((LaplaceNoise(3.0),), record=record)
    noise = NoiseDistribution.from_json(noise.to_json())
    assert noise.record == record
    row, plain = describe(audit, noise=[noise, LaplaceNoise(2.0)]).noise
    assert (row.method, row.distribution, row.epsilon, row.reached) == (
        "laplace",
        "LaplaceNoise",
        0.1,
        0.97,
    )
    assert (row.absolute, row.deviation) == (3.0, pytest.approx(3.0 * np.sqrt(2.0)))
    assert row.message == f"But individual {namer(audit, names=False, key=None)('Anna Meier')} " + (
        "contributes up to 4."
    )
    assert describe(audit, noise=noise, names=True).noise[0].message == record["message"]
    (elsewhere,) = describe(several_properties(), noise=noise).noise
    assert elsewhere.message == f"But individual {WITHHELD} contributes up to 4."
    assert (plain.method, plain.reached) == ("given", None)
    assert len(describe(audit, noise=noise).noise) == 1
    with pytest.raises(edp.InputTypeError, match="noise must be"):
        describe(audit, noise="much")


@pytest.mark.full
def test_verified_noise_says_what_risk_is_left(audit):
    from edp_bayes.noise import FixedBandwidth, LaplaceNoise, verify

    found = verify(
        small_responses(), LaplaceNoise(50.0), epsilon=[0.02, 0.5], model=FixedBandwidth(3.0)
    )
    (row,) = describe(audit, noise=found, prob=0.9).noise
    assert row.method == "given, verified"
    middle = float(found.delta.isel(epsilon=0).median())
    assert f"At ε = 0.02 with this noise, δ is {about(middle)} (90% interval" in row.message
    assert found.probability(epsilon=0.5) == 1.0
    assert row.message.endswith("nobody has any risk in 100% of the draws.")


@pytest.mark.full
def test_a_hundred_thousand_are_a_thousand_rows_and_a_histogram(large_audit):
    content = describe(large_audit, epsilon=0.001)
    people = content.people
    assert (people.total, len(people.rows)) == (100_000, 1000)
    median = large_audit.individuals["median"].sel(epsilon=0.001).to_numpy()
    rest = np.sort(median)[::-1][1000:]
    assert people.rest.without == int((rest == 0).sum())
    assert sum(people.rest.counts) == int((rest > 0).sum()) > 5_000
    for k, count in enumerate(people.rest.counts):
        low, high = (10.0 ** people.rest.exponents[j] for j in (k, k + 1))
        assert count == int(((rest >= low) & (rest < high)).sum())
    bars = histogram(people.rest).bars
    assert [label for *_, label in bars] == [f"{c:,}" for c in people.rest.counts if c]


def test_every_setting_stands_in_the_report(audit, content):
    said = dict(content.settings)
    assert said["fingerprint"] == audit.settings["fingerprint"]
    assert said["random seed"] == "4"
    for name, number in audit.settings["versions"].items():
        assert said[f"versions: {name}"] == number
    words = {NAMES.get(name, name.split(":")[0].replace("_", " ")) for name in audit.settings}
    assert words <= {name.split(":")[0] for name in said}
    assert said["epsilon"] == ", ".join(map(str, EPSILON))
    assert said[NAMES["screened_out"]].endswith("throughout")


def test_every_check_is_there_and_the_failed_ones_come_first(audit, content):
    passed = [check.passed for check in content.checks]
    assert passed == sorted(passed)
    table = audit.checks
    assert {check.name for check in content.checks} >= set(table.index)
    assert len(content.failed) >= (~table["passed"].astype(bool)).sum() > 0
    for doubt in audit.warnings:
        assert any(doubt in check.sentence or check.sentence in doubt for check in content.failed)


@pytest.mark.full
def test_a_fine_grid_is_thinned_and_keeps_the_place_of_the_verdict():
    grid = np.linspace(0.0, 2.0, 1001)
    draws = np.exp(-3.0 * grid) * np.linspace(0.5, 1.0, 20)[:, None]
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset(
                {"delta": (("chain", "draw", "epsilon"), draws[None])},
                coords={"chain": [0], "draw": np.arange(20), "epsilon": grid},
            )
        }
    )
    tree.attrs = {"settings": "{}", "checks": "[]", "warnings": '["a doubt"]'}
    content = describe(edp.Audit(tree), epsilon=0.3335)
    assert len(content.epsilon) <= 202
    assert content.epsilon[content.at] == grid[166]
    assert [check.sentence for check in content.failed] == ["a doubt"]


def test_figures_stay_in_their_frame(content):
    linear, logarithmic = privacy_figures(content)
    assert (linear.y.logarithmic, logarithmic.y.logarithmic) == (False, True)
    for figure in (linear, logarithmic):
        assert len(figure.cursor) == len(content.epsilon)
        ends = sorted((figure.y.start, figure.y.stop))
        for mark in (*figure.areas, *figure.lines):
            points = mark.path.strip("MZ").split("L")
            for x, y in (map(float, point.split(",")) for point in points):
                assert 0 <= x <= figure.width
                assert ends[0] <= y <= ends[1]
    # Lower risks are drawn lower, and the median lies in the band.
    heights = [float(p.split(",")[1]) for p in linear.lines[-1].path.strip("MZ").split("L")]
    assert heights == sorted(heights)


def test_a_mechanism_is_described_by_its_local_epsilon():
    rng = np.random.default_rng(1)
    samples = [rng.random(2000) < share for share in (0.75, 0.25)]
    result = audit_mechanism(*samples, epsilon=[0.5, 1.0], random_seed=1, progressbar=False)
    content = describe(result, prob=0.9)
    assert (content.kind, content.total, content.people, content.enough) == (
        "mechanism",
        None,
        None,
        None,
    )
    (worst,) = content.local
    assert (worst.lower, worst.upper) == result.local_epsilon_interval(0.9)
    assert any("tau = 0.01" in sentence for sentence in content.assumptions)
    assert dict(content.settings)["fingerprint"] == result.settings["fingerprint"]


@pytest.mark.full
def test_a_property_is_described_by_its_probability():
    result = audit_property(103, 1000, epsilon=[0.0, 0.1, 0.5], random_seed=1, progressbar=False)
    content = describe(result, prob=0.9, epsilon=0.1)
    (row,) = content.properties
    assert row.prob[0] < 0.103 < row.prob[2]
    np.testing.assert_allclose(row.delta[1], result.delta.sel(epsilon=0.1).median(), rtol=1e-2)
    assert content.kind == "property"
    assert not any("below" in sentence for sentence in content.assumptions)


@pytest.mark.full
def test_a_property_query_is_exact():
    query = PropertyQuery(1000, 0.1, mechanism=Subsampling(size=100), known=3)
    content = describe(query)
    assert content.exact
    assert content.verdict.limit == query.delta(epsilon=0.1)
    assert content.verdict.status == ("met" if query.delta(epsilon=0.1) <= 0.001 else "not met")
    assert content.curve.median[5] == query.delta(epsilon=content.epsilon[5])
    assert content.crossings[0].median == query.epsilon_at(0.01)
    assert any("knows 3 of the other entries" in sentence for sentence in content.assumptions)


def test_anything_else_is_refused():
    with pytest.raises(edp.InputTypeError, match="or a PropertyQuery, found dict"):
        describe({})


@pytest.mark.full
def test_compound_and_dated_individuals_have_their_names():
    towns = [("north", 1), ("south", 2), ("south", 3)]
    content = describe(small_audit(small_responses(towns), draws=50, chains=1), names=True)
    assert {row.name for row in content.people.rows} == {"north, 1", "south, 2", "south, 3"}
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")
    dated = describe(small_audit(small_responses(days), draws=50, chains=1), names=True)
    assert all(row.name.startswith("2020-01-0") for row in dated.people.rows)
    hidden = describe(small_audit(small_responses(towns), draws=50, chains=1))
    assert "north" not in " ".join(check.sentence for check in hidden.checks)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")
@pytest.mark.parametrize("trend", [0.0, 0.2])
def test_the_command_line_the_report_and_the_summary_say_the_same(trend):
    from io import StringIO

    from rich.console import Console

    from edp_bayes.cli.report import print_report
    from edp_bayes.utils.formatting import at_most

    rng = np.random.default_rng(5)
    contribution = rng.gamma(2.0, 0.2, (40, 6))
    response = 20.0 + rng.normal(size=40) + trend * np.arange(40) + contribution.sum(axis=1)
    audit = edp.audit(
        edp.Responses.from_arrays(response, contribution=contribution),
        epsilon=[0.1, 0.5, 1.5],
        model=edp.SmoothedBootstrap(),
        draws=60,
        random_seed=2,
        progressbar=False,
    )
    out = StringIO()
    print_report(audit, Console(file=out, width=600), prob=PROB)
    printed, content = out.getvalue(), describe(audit, prob=PROB)
    table = audit.summary(ci_prob=PROB)
    at = content.at
    said = f"delta[{content.epsilon[at]:.12g}]"
    names = {
        f"delta[{float(name[6:-1]):.12g}]": name for name in table.index if name[:6] == "delta["
    }
    assert content.curve.median[at] == pytest.approx(table.loc[names[said], "median"])
    if audit.withheld is None:
        for sentence in content.verdict.sentences:
            assert sentence in printed
        assert table.attrs["verdict"] == str(content.verdict)
        limit = at_most(content.limit[at], resting=content.resting)
        assert f"{limit}, with 95% probability; its median is" in content.claims[at]
    else:
        assert content.withheld == audit.withheld
        assert audit.withheld in printed
        assert "its median is" not in printed
    for one in content.crossings:
        row = next(line for line in printed.splitlines() if f" {one.target:g} " in line)
        assert all(word in row for word in one.words)
        if np.isfinite(one.median):
            median = table.loc[f"epsilon_at[{one.target:g}]", "median"]
            assert one.median == pytest.approx(median)
    if content.failed:
        assert f"{len(content.failed)} of {len(content.checks)} checks failed" in printed
    else:
        assert "No check failed" in printed


@pytest.mark.full
def test_limits_in_words_hold_in_95_percent_of_the_draws(audit):
    content = describe(audit)
    assert content.prob == 0.95
    numbers = [[float(x) for x in re.findall(r"\d+(?:\.\d+)?", said)] for said in content.words]
    (_, power, _), (guessed, _, advantage), (after, _, times, exceeded, _), (end, mu, _) = numbers
    found = audit.membership_probability(prior=0.5)
    for limit, draws in (
        (power, audit.power(0.05)),
        (guessed, found["guessed"]),
        (advantage, audit.advantage()),
        (exceeded, found["exceeded"].isel(epsilon=-1)),
    ):
        assert (draws.to_numpy() <= limit).mean() >= 0.95
        assert (draws.to_numpy() > 0.8 * limit).any()
    assert 0.0 <= after - 100.0 / (1.0 + math.exp(-EPSILON[-1])) < 1.0
    assert times == after / 50.0
    assert end == EPSILON[-1]
    normal = norm.cdf(mu / 2 - EPSILON / mu) - np.exp(EPSILON) * norm.cdf(-mu / 2 - EPSILON / mu)
    assert 0.95 <= (audit.delta.to_numpy() <= normal).all(axis=-1).mean() < 1.0


@pytest.mark.full
def test_what_a_grid_does_not_tell_is_not_in_words():
    alone = small_audit(small_responses(), epsilon=[0.1])
    assert [said.split()[0] for said in in_words(alone)] == ["A", "A", "Up"]
    always = np.full((30, 1), 1e6)  # alone reveals an individual
    responses = edp.Responses.from_arrays(np.arange(30.0) + 1e6, contribution=always)
    assert not any("(mu)" in said for said in in_words(small_audit(responses)))
