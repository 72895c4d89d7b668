"""What an adversary has seen: expectations, pictures and the section of the report."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes import plots
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.report.describing import describe
from edp_bayes.results.past import _places, past_of, written

mpl.use("agg")

N = 60
DAYS = np.arange("2020-01-06", "2021-12-01", 7, dtype="M8[D]")[:N]
PROBS = (0.5, 0.9)


def responses_of(database=DAYS):
    rng = np.random.default_rng(2)
    y = np.zeros(N)
    for t in range(1, N):
        y[t] = 0.8 * y[t - 1] + rng.normal()
    contribution = rng.gamma(2.0, 0.2, (N, 4))
    return edp.Responses.from_arrays(
        50.0 + y + contribution.sum(axis=1),
        contribution=contribution,
        database=database,
        individual=["ann", "bob", "cy", "dee"],
        additive=True,
    )


def audited(known, database=DAYS, **options):
    return edp.audit(
        responses_of(database),
        epsilon=[0.05, 0.2],
        model=edp.FiniteMixture(components=1),
        adversary=known,
        draws=250,
        random_seed=1,
        progressbar=False,
        **options,
    )


@pytest.fixture(scope="module")
def audit():
    return audited(edp.Adversary(past=1))


@pytest.fixture(scope="module")
def growing():
    """A changing scale and an insider, with one of the databases in question."""
    known = edp.Adversary(past=1, changing_scale=True, insiders=["cy"])
    return audited(known, at=DAYS[20])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_expectations_are_those_of_the_regression(audit):
    past, y = past_of(audit, PROBS), responses_of().response
    np.testing.assert_allclose(past.seen, y)
    slope, intercept = np.polyfit(y[:-1], y[1:], 1)
    fitted = intercept + slope * y
    spread = (y[1:] - fitted[:-1]).std()
    np.testing.assert_allclose(past.median, fitted, atol=0.2 * spread)
    lower, upper = past.interval(0.9)
    np.testing.assert_allclose(upper - lower, 2 * 1.645 * spread, rtol=0.15)
    # the next database is a week after the last one
    assert past.at == N - 1
    assert past.expected["place"].to_numpy()[-1] == DAYS[-1] + np.timedelta64(7, "D")
    assert past.first == 1


def test_intervals_hold_as_many_as_they_say(audit):
    past = past_of(audit, PROBS)
    y = past.seen.to_numpy()[1:]
    for prob in PROBS:
        lower, upper = (end.to_numpy()[:-1] for end in past.interval(prob))
        assert ((lower <= y) & (y <= upper)).mean() == pytest.approx(prob, abs=0.12)


def test_the_next_database_is_that_of_the_audit(audit):
    past = past_of(audit, PROBS)
    values = audit.mixture.sample(100, 3)
    lower, upper = past.interval(0.9)
    expected = np.quantile(values, [0.05, 0.95])
    np.testing.assert_allclose([lower[-1], upper[-1]], expected, atol=0.1)


def test_a_database_seen_may_be_in_question_and_insiders_are_subtracted(growing):
    past, data = past_of(growing, PROBS), responses_of()
    assert past.at == 19
    assert past.less
    np.testing.assert_allclose(past.seen, data.response - data.contribution_of("cy"))
    assert past.expected.sizes["place"] == N - 1
    lower, upper = past.interval(0.9)
    width = (upper - lower).to_numpy()
    growth = float(growing.tree["known"]["growth"].mean())
    assert width[-1] / width[0] == pytest.approx(np.exp(growth), rel=0.1)


def test_keys_in_no_order_are_numbered():
    keys = [f"week {k}" for k in np.random.default_rng(1).permutation(N)]
    past = past_of(audited(edp.Adversary(season=12.0, own=True), keys), PROBS)
    np.testing.assert_array_equal(past.seen["place"], np.arange(1, N + 1))


@pytest.mark.full
def test_the_plot_shows_expectations_and_both_densities(audit, tmp_path):
    loaded = edp.load(audit.save(tmp_path / "audit.nc"))
    pc = loaded.plot_past(ci_prob=0.9, individual="bob", backend="none")
    past = past_of(audit, PROBS)
    np.testing.assert_allclose(pc.get_viz("median", "series")["y"], past.median)
    for visual, prob in (("outer_band", 0.9), ("inner_band", 0.5)):
        lower, upper = past.interval(prob)
        np.testing.assert_allclose(pc.get_viz(visual, "series")["y_bottom"], lower)
        np.testing.assert_allclose(pc.get_viz(visual, "series")["y_top"], upper)
    np.testing.assert_allclose(pc.get_viz("responses", "series")["y"], past.seen)
    place = {"with": 0.0, "without": 0.0}
    for distribution in place:
        curve = pc.get_viz(f"density_{distribution}", "density")
        y, density = np.asarray(curve["y"]), np.asarray(curve["x"])
        step = y[1] - y[0]
        assert density.sum() * step == pytest.approx(1.0, abs=0.05)
        place[distribution] = (y * density).sum() * step
    # upright, about the expectation, and what bob contributes apart
    assert place["with"] == pytest.approx(float(past.median[-1]), abs=0.15)
    assert place["with"] - place["without"] == pytest.approx(0.4, abs=0.15)


def test_matplotlib_draws_both_on_one_axis_of_responses(audit, growing):
    for one in (audit, growing):
        pc = plots.plot_past(one, backend="matplotlib")
        series, density = (pc.get_viz("plot", name) for name in ("series", "density"))
        assert series.get_ylim() == density.get_ylim()
        labels = [text.get_text() for text in series.figure.legends[0].get_texts()]
        assert labels[0] == "expected: 89% interval"
    assert "less what insiders contributed" in series.get_title()
    assert density.get_title() == "2020-05-25"


def test_an_audit_without_adversary_has_no_past():
    plain = audited(None)
    with pytest.raises(InvalidInputError, match="has no adversary"):
        plain.plot_past()
    assert describe(plain).seen == ()


@pytest.mark.full
def test_the_report_shows_what_was_seen(audit, growing, tmp_path):
    (seen,) = describe(audit, prob=0.9).seen
    assert seen.responses == tuple(responses_of().response)
    assert (seen.first, seen.at, seen.label) == (2, N - 1, "the next database")
    page = audit.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Answers and what was expected of them" in page
    assert "in question: the next database" in page
    # beside the released responses the series would tell what the insider contributed
    assert describe(growing).seen == ()
    assert describe(growing, names=True).seen[0].less


def test_curves_say_against_whom(audit, tmp_path):
    against = f"against {audit.against}"
    for draw in (plots.plot_delta, plots.plot_total_risk):
        axes = draw(audit, backend="matplotlib").get_viz("plot")
        assert " ".join(axes.get_title().split("\n")[1:]).endswith(f"individuals, {against}")
        assert max(map(len, axes.get_title().split("\n"))) <= 70
        drawn = axes.figure.canvas.get_renderer()
        assert axes.title.get_window_extent(drawn).width < axes.figure.bbox.width
    page = audit.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"at each \u03b5, {against}:" in page


@pytest.mark.parametrize(
    ("keys", "first", "following"),
    [
        ([f"2020-{m:02d}" for m in range(1, 10)], "2020-01", "2020-10"),
        ([f"2021-03-{d:02d}" for d in range(1, 10)], "2021-03-01", "2021-03-10"),
    ],
)
def test_keys_that_are_written_as_dates_stand_as_dates(keys, first, following):
    places = _places(np.array(keys, dtype=object), following=True)
    assert places.dtype == np.dtype("datetime64[ns]")
    text = written(places)
    assert (text[0], text[-1]) == (first, following)


@pytest.mark.parametrize("keys", [["2020-13", "2020-14"], ["2020-02", "2020-01"], ["a", "b"]])
def test_other_text_is_numbered(keys):
    np.testing.assert_array_equal(_places(np.array(keys), following=False), [1, 2])


@pytest.mark.full
def test_the_report_shows_dates_at_the_responses_seen(tmp_path):
    weeks = np.datetime64("2020-01-06") + 7 * np.arange(N)
    dated = audited(edp.Adversary(past=1), weeks.astype(str).tolist())
    (seen,) = describe(dated).seen
    assert len(seen.dates) == N + 1
    page = dated.report(tmp_path / "report.html").read_text(encoding="utf-8")
    shown = [date for date in seen.dates if f">{date}</text>" in page]
    assert len(shown) == 4
