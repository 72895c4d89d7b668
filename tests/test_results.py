"""What every kind of result can do, and every plot with it."""

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes import plots
from edp_bayes.plots import noise as noise_plots

EPSILON = [0.1, 0.5, 1.0]
# Which plots show which results; all others refuse them.
SHOWN = {
    "plot_delta": {"Audit", "MechanismAudit", "PropertyAudit", "Verification"},
    "plot_total_risk": {"Audit", "Verification"},
    "plot_density": {"Audit"},
    "plot_individuals": {"Audit"},
    "plot_past": {"Audit"},
    "plot_power": {"Audit", "MechanismAudit", "PropertyAudit", "Verification"},
    "plot_membership": {"Audit", "MechanismAudit", "PropertyAudit", "Verification"},
}
PLOTS = {name: getattr(module, name) for module in (plots, noise_plots) for name in module.__all__}
KINDS = sorted(SHOWN["plot_delta"])
LOADERS = {
    "Audit": edp.load,
    "MechanismAudit": edp.load,
    "PropertyAudit": edp.load,
    "Verification": edp.load,
}


@pytest.fixture(scope="module")
def results():
    rng = np.random.default_rng(1)
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 30), contribution=rng.gamma(2.0, 0.2, (30, 3)), query="sum:kwh"
    )
    model = edp.SmoothedBootstrap()
    options = {"epsilon": EPSILON, "random_seed": 1, "progressbar": False}
    known = edp.Adversary(past=1)
    found = (
        edp.audit(responses, model=model, adversary=known, draws=100, chains=2, **options),
        edp.audit_mechanism([0, 1] * 50, [0, 0, 0, 1] * 25, draws=100, **options),
        edp.audit_property({"a": 9, "b": 40}, 500, draws=100, **options),
        edp.noise.verify(
            responses, edp.LaplaceNoise(1.0), model=model, draws=100, chains=2, **options
        ),
    )
    return {type(one).__name__: one for one in found}


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plot", PLOTS)
def test_a_plot_shows_a_result_or_says_what_it_needs(results, plot, kind):
    if kind in SHOWN.get(plot, ()):
        assert PLOTS[plot](results[kind], backend="none").backend == "none"
        assert getattr(results[kind], plot)(backend="none").backend == "none"
        return
    with pytest.raises(edp.InvalidInputError, match=f"needs .*, found {kind}; plot_delta shows"):
        PLOTS[plot](results[kind], backend="none")


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_has_bands_limits_a_table_and_a_file(results, kind, tmp_path):
    one = results[kind]
    band = one.band(kind="pointwise", prob=0.9)
    np.testing.assert_allclose(band["upper"], one.upper(prob=0.95))
    assert one.epsilon_at([0.01, 0.1]).dims == ("chain", "draw", "target")
    assert one.summary(targets=0.1).loc["epsilon_at[0.1]", "median"] >= 0.0
    again = LOADERS[kind](one.save(tmp_path / "result.nc"))
    assert (again.delta == one.delta).all()
    assert again.settings == one.settings
    assert {"versions", "fingerprint", "draws", "chains", "random_seed"} <= set(one.settings)
    assert again.checks.index.str.contains("convergence of delta").any()


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_reported_or_says_where(results, kind, tmp_path):
    if kind == "Verification":
        with pytest.raises(edp.InvalidInputError, match="report of its audit"):
            results[kind].report(tmp_path / "report.html")
    else:
        text = results[kind].report(tmp_path / "report.html").read_text(encoding="utf-8")
        assert 'id="curve"' in text
        assert 'id="checks"' in text


def test_no_checks_are_an_empty_table(results):
    tree = results["PropertyAudit"].to_datatree()
    tree.attrs["checks"] = "[]"
    assert edp.PropertyAudit(tree).checks.empty


def test_the_limit_of_a_mechanism_leaves_room_for_the_unseen():
    same = edp.audit_mechanism([0] * 100, [0] * 100, epsilon=[1.0], draws=50, progressbar=False)
    assert float(same.upper(prob=0.95)[0]) == pytest.approx(1.0 - 0.05**0.01)
    assert float(same.upper(prob=0.95)[0]) == pytest.approx(float(same.band(prob=0.9)["upper"][0]))
