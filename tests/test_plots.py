import io
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes import plots
from edp_bayes.exceptions import EdpBayesWarning, InvalidInputError

mpl.use("agg")

PROB = 0.9
CURVES = {"delta": plots.plot_delta, "total_risk": plots.plot_total_risk}
PLOTS = (*CURVES.values(), plots.plot_density, plots.plot_individuals)


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(1)
    contribution = rng.gamma(2.0, 0.2, (40, 6)) * np.array([4.0, 1, 1, 2, 1, 1])
    response = rng.normal(10.0, 1.0, 40) + contribution.sum(axis=1)
    responses = edp.Responses.from_arrays(
        response,
        response[:, None] - contribution,
        individual=["ann", "bob", "cy", "dee", "eve", "fay"],
        query="sum:kwh",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        return edp.audit(
            responses,
            epsilon=np.linspace(0.05, 2.5, 12),
            model=edp.SmoothedBootstrap(kernel="laplace"),
            keep=4,
            draws=100,
            chains=2,
            random_seed=1,
            progressbar=False,
        )


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def drawn(collection, visual, variable):
    """The arguments that the backend "none" recorded for one visual."""
    return collection.get_viz(visual, variable)


@pytest.mark.parametrize("quantity", CURVES)
def test_bands_and_median_are_those_of_the_audit(audit, quantity):
    pc = CURVES[quantity](audit, ci_prob=PROB, backend="none")
    for kind in ("simultaneous", "pointwise"):
        band = audit.band(quantity, kind=kind, prob=PROB)
        element = drawn(pc, f"{kind}_band", quantity)
        np.testing.assert_array_equal(element["x"], audit.epsilon)
        np.testing.assert_array_equal(element["y_bottom"], band["lower"])
        np.testing.assert_array_equal(element["y_top"], band["upper"])
    line = drawn(pc, "median", quantity)
    np.testing.assert_array_equal(line["y"], band["median"])


@pytest.mark.parametrize("quantity", CURVES)
@pytest.mark.parametrize("kind", ["simultaneous", "pointwise"])
def test_one_kind_of_band_only(audit, quantity, kind):
    pc = CURVES[quantity](audit, kind=kind, backend="none")
    found = {str(name) for name in pc.viz.children if name.endswith("_band")}
    assert found == {f"{kind}_band"}


def test_total_risk_has_its_bounds(audit):
    pc = plots.plot_total_risk(audit, backend="none")
    low, high = (drawn(pc, name, "total_risk")["y"] for name in ("lower_bound", "upper_bound"))
    np.testing.assert_array_equal(low, audit.band("delta")["lower"])
    band = audit.band("total_risk")
    np.testing.assert_array_equal(
        high, np.maximum(audit.band("total_risk_bound")["upper"], band["upper"])
    )
    assert (high >= band["upper"]).all()
    shown = plots.plot_total_risk(audit, backend="matplotlib").get_viz("plot", "total_risk")
    assert shown.get_ylim()[1] >= high.max()
    middle = drawn(pc, "median", "total_risk")["y"]
    assert (low <= middle + 1e-12).all()
    assert (middle <= high + 1e-12).all()


def test_delta_has_no_bounds(audit):
    pc = plots.plot_delta(audit, backend="none")
    assert not {"lower_bound", "upper_bound"} & set(pc.viz.children)


def test_legend_states_kind_and_probability(audit):
    pc = plots.plot_total_risk(audit, ci_prob=PROB, backend="matplotlib")
    words = [text.get_text() for text in pc.get_viz("figure").legends[0].get_texts()]
    assert words == [
        "90% simultaneous band",
        "90% pointwise band",
        "posterior median",
        "min(1, sum of risks), upper end of 90% band",
        "largest risk, lower end of 90% band",
    ]


def test_probability_follows_arviz(audit):
    import arviz_base

    with arviz_base.rc_context({"stats.ci_prob": 0.77}):
        pc = plots.plot_delta(audit, kind="pointwise", backend="matplotlib")
        element = drawn(plots.plot_delta(audit, backend="none"), "pointwise_band", "delta")
    assert pc.get_viz("figure").legends[0].get_texts()[0].get_text() == "77% pointwise band"
    band = audit.band("delta", kind="pointwise", prob=0.77)
    np.testing.assert_array_equal(element["y_top"], band["upper"])


def test_a_property_has_one_database_and_a_critical_entry():
    audit = edp.audit_property(
        {"older": 9}, 500, epsilon=[0.1, 0.5], random_seed=1, progressbar=False
    )
    ax = plots.plot_delta(audit, backend="matplotlib").get_viz("plot", "delta")
    assert ax.get_title() == "Privacy curve of the share with 'older'\n1 database, 500 individuals"
    assert ax.get_ylabel() == "delta: risk of the critical entry"


def test_matplotlib_axes_hold_the_data(audit):
    pc = plots.plot_delta(audit, ci_prob=PROB, backend="matplotlib")
    ax = pc.get_viz("plot", "delta")
    assert ax.get_xlabel() == "epsilon"
    assert "delta" in ax.get_ylabel()
    assert ax.get_title() == "Privacy curve of sum:kwh\n40 databases, 6 individuals"
    top = float(audit.band("delta", prob=PROB)["upper"].max())
    low, high = ax.get_ylim()
    assert low == 0
    assert top <= high <= max(1.02, 1.06 * top)
    assert ax.get_xlim() == pytest.approx((0.05, 2.5))


def test_logarithmic_axis(audit):
    pc = plots.plot_delta(audit, log=True, backend="matplotlib")
    ax = pc.get_viz("plot", "delta")
    assert ax.get_yscale() == "log"
    low, high = ax.get_ylim()
    assert 0 < low < high


def test_density_with_and_without_the_riskiest(audit):
    pc = plots.plot_density(audit, ci_prob=PROB, backend="none")
    group = audit.tree["densities"].to_dataset().isel(individual=0).astype(float)
    tail = 0.5 * (1 - PROB)
    for distribution in ("with", "without"):
        draws = group[f"density_{distribution}"].stack(s=("chain", "draw"))
        element = drawn(pc, f"band_{distribution}", "density")
        np.testing.assert_array_equal(element["x"], group["x"])
        ends = draws.quantile([tail, 1 - tail], "s", method="weibull")
        np.testing.assert_allclose(element["y_bottom"], ends[0], rtol=1e-9)
        np.testing.assert_allclose(element["y_top"], ends[1], rtol=1e-9)
    line = drawn(pc, "median_with", "density")["y"]
    assert np.trapezoid(line, group["x"]) == pytest.approx(1.0, abs=0.15)


def test_density_of_nobody_in_particular_is_that_of_the_riskiest_at_its_epsilon(audit):
    tree = audit.tree.copy()
    posterior = tree["posterior"].to_dataset()
    last = {"individual": -1, "epsilon": -1}
    risk = posterior["individual_delta"].copy()
    risk[last] = risk.isel(epsilon=-1).max("individual") + 0.1
    tree["posterior"] = xr.DataTree(posterior.assign(individual_delta=risk))
    changed = edp.Audit(tree)
    for epsilon in audit.epsilon.to_numpy()[[0, -1]]:
        riskiest = plots.forest.riskiest(changed, epsilon)["individual"].to_numpy()[0]
        pc = plots.plot_density(changed, epsilon=epsilon, backend="matplotlib")
        words = pc.get_viz("figure").legends[0].get_texts()[0].get_text()
        assert words.startswith(f"with {riskiest}: ")
    assert riskiest == audit.individual_delta["individual"].to_numpy()[-1]


def test_ratio_is_taken_draw_by_draw(audit):
    pc = plots.plot_density(audit, individual="dee", epsilon=0.3, backend="none")
    group = audit.tree["densities"].to_dataset().sel(individual="dee").astype(float)
    element = drawn(pc, "median_ratio", "ratio")
    ratio = group["log_ratio"].median(("chain", "draw"))
    np.testing.assert_allclose(element["y"], ratio, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(element["x"], group["x"])
    edge = drawn(pc, "epsilon", "ratio")["y"]
    nearest = float(audit.epsilon.sel(epsilon=0.3, method="nearest"))
    np.testing.assert_array_equal(edge, nearest)
    np.testing.assert_array_equal(drawn(pc, "minus_epsilon", "ratio")["y"], -nearest)


def test_density_legend_names_individual_and_band(audit):
    pc = plots.plot_density(audit, individual="dee", ci_prob=PROB, backend="matplotlib")
    words = [text.get_text() for text in pc.get_viz("figure").legends[0].get_texts()]
    assert words[0] == "with dee: median, 90% pointwise band"
    assert words[1] == "without dee: median, 90% pointwise band"
    assert words[2] == "log ratio: median, 90% pointwise band"


def test_densities_that_vanish_in_the_tails_stay_finite(audit):
    tree = audit.tree.copy()
    group = tree["densities"].to_dataset()
    tree["densities"] = xr.DataTree(group.where(group["density_with"] > 1e-3, 0.0))
    pc = plots.plot_density(edp.Audit(tree), backend="none")
    for name in ("median_ratio", "band_ratio"):
        for key in ("y", "y_bottom", "y_top"):
            element = drawn(pc, name, "ratio")
            assert np.isfinite(element.get(key, 0.0)).all()


@pytest.mark.parametrize(
    "people",
    [
        [1, "1"],
        [(1, 2), ("1", "2")],
        list(np.arange("2020-01-01", "2020-01-03", dtype="datetime64[D]")),
        ["ann", "bob"],
    ],
)
def test_the_density_is_that_of_the_label_asked_for(people):
    rng = np.random.default_rng(3)
    contribution = np.c_[rng.normal(0.2, 0.05, 40), rng.normal(1.0, 0.05, 40)]
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 40), contribution=contribution, individual=people
    )
    found = edp.audit(
        responses,
        epsilon=[0.1],
        model=edp.SmoothedBootstrap(),
        individuals=people,
        draws=20,
        random_seed=1,
        progressbar=False,
    )
    kept = found.tree["densities"].to_dataset()
    for position, label in enumerate(people):
        mine = kept.isel(individual=int(np.flatnonzero(_order(kept, found) == position)[0]))
        pc = plots.plot_density(found, individual=label, backend="none")
        shown = drawn(pc, "median_without", "density")["y"]
        np.testing.assert_allclose(
            shown, mine["density_without"].median(("chain", "draw")), rtol=1e-5
        )


def _order(kept, audit):
    """Column of each individual whose densities were kept, by its label in the audit."""
    everybody = audit.tree["individuals"]["individual"].to_numpy().tolist()
    return np.array([everybody.index(label) for label in kept["individual"].to_numpy().tolist()])


def test_unknown_individual_is_refused_by_name(audit):
    with pytest.raises(InvalidInputError, match="'zoe' were not kept; there are 'ann'"):
        plots.plot_density(audit, individual="zoe", backend="none")


def test_individuals_by_falling_median(audit):
    pc = plots.plot_individuals(audit, epsilon=0.3, ci_prob=PROB, backend="none")
    nearest = audit.epsilon.sel(epsilon=0.3, method="nearest")
    draws = audit.individual_delta.sel(epsilon=nearest)
    points = pc.viz["point_estimate"]["delta_i"]
    heights = {}
    for label in draws["individual"].to_numpy():
        element = points.sel(individual=label).item()
        one = draws.sel(individual=label)
        assert element["x"].item() == pytest.approx(float(one.median()))
        heights[label] = element["y"].item()
        twig = pc.viz["twig"]["delta_i"].sel(individual=label).item()
        ends = one.quantile([0.05, 0.95], ("chain", "draw"))
        np.testing.assert_allclose(np.sort(twig["x"]), ends, rtol=1e-9)
    medians = draws.median(("chain", "draw")).to_series()
    assert sorted(heights, key=heights.get) == list(medians.sort_values().index)


def test_individuals_axis_states_interval(audit):
    pc = plots.plot_individuals(audit, ci_prob=PROB, ci_kind="hdi", backend="matplotlib")
    ax = pc.get_viz("plot", column="forest")
    assert ax.get_xlabel() == "delta_i: median, 50% and 90% highest-density intervals"
    assert ax.get_title() == "Riskiest individuals at epsilon = 0.05"
    assert ax.get_xlim()[0] == 0


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("backend", ["none", "matplotlib"])
def test_every_plot_on_every_backend(audit, plot, backend):
    pc = plot(audit, backend=backend)
    assert pc.backend == backend


@pytest.mark.parametrize("plot", PLOTS[:3])
def test_visuals_are_styled_or_left_out(audit, plot):
    name = "median_with" if plot is plots.plot_density else "median"
    variable = {plots.plot_delta: "delta", plots.plot_total_risk: "total_risk"}.get(plot, "density")
    pc = plot(audit, backend="none", visuals={name: {"color": "red"}, "title": False})
    assert drawn(pc, name, variable)["color"] == "red"
    assert "title" not in pc.viz.children
    assert name not in plot(audit, backend="none", visuals={name: False}).viz.children
    with pytest.raises(InvalidInputError, match="visual must be one of"):
        plot(audit, backend="none", visuals={"banner": False})


def test_a_second_curve_joins_a_plot_collection(audit):
    pc = plots.plot_delta(audit, kind="pointwise", backend="matplotlib")
    title = pc.get_viz("plot", "delta").get_title()
    again = plots.plot_delta(
        audit, kind="simultaneous", plot_collection=pc, visuals={"median": False}
    )
    assert again is pc
    assert len(pc.get_viz("plot", "delta").collections) == 2
    assert pc.get_viz("plot", "delta").get_title() == title
    assert len(pc.get_viz("figure").legends) == 1


def test_figure_options_are_passed_on(audit):
    pc = plots.plot_delta(audit, backend="matplotlib", figure_kwargs={"figsize": (4, 3)})
    assert tuple(pc.get_viz("figure").get_size_inches()) == (4, 3)


@pytest.mark.parametrize(
    ("plot", "options", "message"),
    [
        (plots.plot_delta, {"kind": "wavy"}, "kind must be one of simultaneous, pointwise"),
        (plots.plot_delta, {"ci_prob": 1.5}, "strictly between 0 and 1"),
        (plots.plot_density, {"ci_prob": 0}, "strictly between 0 and 1"),
        (plots.plot_density, {"epsilon": 9.0}, "grid from 0.05 to 2.5, found 9"),
        (plots.plot_individuals, {"epsilon": 0.0}, "grid from 0.05 to 2.5, found 0"),
        (plots.plot_individuals, {"ci_kind": "eta"}, "ci_kind must be one of eti, hdi"),
        (plots.plot_individuals, {"ci_prob": 2.0}, "strictly between 0 and 1"),
    ],
)
def test_bad_options_are_refused(audit, plot, options, message):
    with pytest.raises(InvalidInputError, match=message):
        plot(audit, backend="none", **options)


def test_audit_has_the_plots_as_methods(audit):
    assert audit.plot_delta(backend="none").backend == "none"
    assert audit.plot_total_risk(backend="none").backend == "none"
    assert audit.plot_density("dee", backend="none").backend == "none"
    assert audit.plot_individuals(backend="none").backend == "none"


def limits(pc):
    """Return the limits of both axes of the only panel."""
    (axes,) = pc.get_viz("figure").axes
    return axes.get_xlim(), axes.get_ylim()


@pytest.mark.full
def test_a_curve_of_zeros_can_be_drawn(audit):
    tree = audit.tree.copy()
    posterior = tree["posterior"].to_dataset()
    tree["posterior"] = xr.DataTree(posterior * 0.0)
    for plot in PLOTS[:2]:
        for log in (False, True):
            pc = plot(edp.Audit(tree), log=log, backend="matplotlib")
            pc.get_viz("figure").draw_without_rendering()
            assert all(np.isfinite(ends).all() for ends in limits(pc))


def test_one_epsilon_can_be_drawn(audit):
    tree = audit.tree.copy()
    tree["posterior"] = xr.DataTree(tree["posterior"].to_dataset().isel(epsilon=[0]))
    for plot in PLOTS[:2]:
        pc = plot(edp.Audit(tree), backend="matplotlib")
        pc.get_viz("figure").draw_without_rendering()
        assert all(high > low for low, high in limits(pc))


@pytest.mark.full
@pytest.mark.parametrize("label", [r"$\frac{$", "a$b$c", "$5 to $10"])
def test_dollars_in_labels_are_dollars(label):
    rng = np.random.default_rng(1)
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 40),
        contribution=rng.gamma(2.0, 0.2, (40, 2)),
        individual=[label, "b"],
        query=f"sum:{label}",
    )
    found = edp.audit(
        responses, epsilon=[0.1, 0.5], model=edp.SmoothedBootstrap(), draws=50, random_seed=1,
        progressbar=False,
    )  # fmt: skip
    for figure in (
        plots.plot_individuals(found, backend="matplotlib"),
        plots.plot_density(found, individual=label, backend="matplotlib"),
        plots.plot_delta(found, backend="matplotlib"),
    ):
        drawn = figure.viz["figure"].item()
        drawn.canvas.draw()
        words = [t.get_text() for t in drawn.findobj(mpl.text.Text)]
        assert not any(label in word for word in words)  # as it is, it would be a formula
        plt.close(drawn)


@pytest.fixture(scope="module")
def exposed():
    """Of three databases in sixty one individual makes up nearly all that is unusual."""
    rng = np.random.default_rng(3)
    c = rng.gamma(2.0, 0.05, (60, 4))
    c[:3, 0], c[:, 1] = 8.0, -3.0 * c[:, 1]
    y = rng.normal(10.0, 1.0, 60) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, individual=["Ann", "Bob", "Cy", "Di"])


@pytest.fixture(scope="module")
def exposing(exposed):
    return edp.audit(
        exposed,
        epsilon=[0.1, 12.0],
        model=edp.SmoothedBootstrap(kernel="gaussian"),
        draws=100,
        chains=2,
        random_seed=1,
        progressbar=False,
    )


def test_the_ratio_is_drawn_where_the_exposing_databases_are(exposing, exposed):
    figure = plots.plot_density(exposing, individual="Ann", backend="matplotlib")
    lower = figure.get_viz("figure").axes[-1]
    line = max(lower.lines, key=lambda one: len(one.get_xdata()))
    x, ratio = line.get_xdata(), line.get_ydata()
    without = exposed.response - exposed.contribution.toarray()[:, 0]
    assert x.min() < min(exposed.response.min(), without.min())
    assert x.max() > exposed.response.max()
    assert np.isfinite(ratio).all()
    low, high = lower.get_ylim()
    assert low < ratio.min()
    assert ratio.max() < high
    at = np.interp(exposed.response[:3], x, ratio)
    assert (at > 2.0).all()  # far above what epsilon = 0.1 allows
    plt.close("all")


def test_the_log_ratio_is_exact_far_in_the_tails(exposing):
    group = exposing.tree["densities"].to_dataset().sel(individual="Ann")
    assert np.isfinite(group["log_ratio"]).all()
    seen = (group["density_with"] > 1e-20) & (group["density_without"] > 1e-20)
    held = group.where(seen)
    direct = np.log(held["density_with"]) - np.log(held["density_without"])
    np.testing.assert_allclose(
        group["log_ratio"].where(seen), direct.where(seen), atol=2e-5, rtol=2e-5
    )


def test_negative_contributions_keep_their_sign_in_tables(exposing, exposed):
    from rich.console import Console

    from edp_bayes.cli.report import print_report
    from edp_bayes.report.describing import describe

    bob = exposed.contribution.toarray()[:, 1].min()
    assert bob < 0.0
    console = Console(width=80, record=True, file=io.StringIO())
    print_report(exposing, console, prob=0.95)
    row = next(line for line in console.export_text().splitlines() if "│ Bob" in line)
    assert f"{bob:.4g}" in row
    rows = {row.name: row for row in describe(exposing, names=True).people.rows}
    assert rows["Bob"].contribution == bob
    assert rows["Ann"].contribution == 8.0


def test_an_epsilon_that_reads_like_a_percentage_is_doubted(exposing, exposed):
    said = [w for w in exposing.warnings if w.startswith("Epsilon reaches 12")]
    assert len(said) == 1
    assert "exp(epsilon) is 162,755" in said[0]
    assert "12% is epsilon = 0.12" in said[0]
    options = {"draws": 20, "chains": 2, "random_seed": 1, "progressbar": False}
    model = edp.SmoothedBootstrap()
    with pytest.warns(edp.EdpBayesWarning, match=r"exp\(epsilon\) is 22,026"):
        edp.audit(exposed, epsilon=[10.0], model=model, **options)
    usual = edp.audit(exposed, epsilon=[9.9], model=model, **options)
    assert not any("percentage" in sentence for sentence in usual.warnings)


def test_pictures_go_by_one_name(audit):
    assert set(dir(audit.plot)) == {
        "delta", "density", "individuals", "membership", "past", "power", "total_risk",
    }  # fmt: skip
    pc = audit.plot.delta(backend="none")
    assert set(pc.viz.children) == set(plots.plot_delta(audit, backend="none").viz.children)
    with pytest.raises(AttributeError, match="no picture 'deltas'; there are delta"):
        _ = audit.plot.deltas
