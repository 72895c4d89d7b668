"""The result: quantities derived from the draws, files, and what ArviZ makes of it."""

import json
import warnings

import arviz as az
import numpy as np
import pytest
import scipy.sparse as sp
import xarray as xr

import edp_bayes as edp
from edp_bayes.results.base import PrivacyCurves
from edp_bayes.results.query import Audit
from edp_bayes.utils import files

EPSILON = np.array([0.02, 0.1, 0.3, 0.6, 1.0])


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(3)
    c = rng.gamma(2.0, 0.05, (40, 12))
    c[:, 4] *= 4.0
    response = 20.0 + rng.standard_normal(40) + c.sum(axis=1)
    labels = [f"person {k}" for k in range(12)]
    return edp.Responses.from_arrays(response, contribution=sp.csc_array(c), individual=labels)


@pytest.fixture(scope="module")
def audit(responses):
    return edp.audit(
        responses,
        epsilon=EPSILON,
        model=edp.SmoothedBootstrap(),
        draws=200,
        chains=2,
        keep=3,
        individuals=["person 0"],
        random_seed=4,
        progressbar=False,
    )


def known_audit(curve, grid):
    values = np.stack([curve(grid), 0.5 * curve(grid)])[None]
    posterior = xr.Dataset(
        {"delta": (("chain", "draw", "epsilon"), values)}, coords={"epsilon": grid}
    ).assign_coords(chain=[0], draw=[0, 1])
    return Audit(xr.DataTree.from_dict({"posterior": posterior}))


def test_epsilon_at_a_delta_is_on_the_safe_side_and_close():
    grid = np.linspace(0.0, 2.0, 101)
    audit = known_audit(lambda e: np.exp(-3.0 * np.expm1(e) / 2.0), grid)
    found = audit.epsilon_at(0.01)
    truth = np.log1p(-2.0 / 3.0 * np.log(np.array([0.01, 0.02])))
    assert found.dims == ("chain", "draw")
    assert (found[0] >= truth).all()
    np.testing.assert_allclose(found[0], truth, atol=2e-3)


def test_epsilon_at_takes_one_dimension():
    audit = known_audit(lambda e: 0.5 - e, np.array([0.1, 0.2]))
    with pytest.raises(edp.InvalidInputError, match=r"1 dimension, found shape \(1, 1\)"):
        audit.epsilon_at([[0.1]])


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_epsilon_of_a_curve_far_below_the_target_is_the_first_value():
    audit = known_audit(lambda e: 0.5 - 0.1 * e, np.array([0.1, 0.2]))
    assert (audit.epsilon_at(0.99) == 0.1).all()


def test_epsilon_beyond_the_grid_is_infinite_and_below_it_the_first_value():
    grid = np.array([0.1, 0.2])
    audit = known_audit(lambda e: 0.5 - e, grid)
    assert np.isinf(audit.epsilon_at(0.01)).all()
    assert (audit.epsilon_at(0.45) == 0.1).all()
    both = audit.epsilon_at([0.35, 0.01])
    assert both.dims == ("chain", "draw", "target")
    assert 0.1 < float(both[0, 0, 0]) < 0.2
    assert np.isinf(both[0, 0, 1])


@pytest.mark.parametrize("target", [1.0, -0.1])
def test_a_target_outside_the_unit_interval_is_refused(audit, target):
    with pytest.raises(edp.InvalidInputError, match="delta must lie between 0, included, and 1"):
        audit.epsilon_at(target)


def test_total_risk_lies_between_its_bounds(audit):
    assert (audit.delta <= audit.total_risk + 1e-15).all()
    assert (audit.total_risk <= audit.total_risk_bound + 1e-15).all()
    assert (audit.delta.diff("epsilon") <= 1e-15).all()


def test_the_riskiest_come_first_and_the_named_are_kept(audit):
    names = list(audit.individual_delta.individual.to_numpy())
    assert len(names) == 4
    assert names[0] == "person 4"
    assert names[-1] == "person 0"
    mean = audit.individuals["mean"].sum("epsilon")
    assert str(mean.individual[int(mean.argmax("individual"))].item()) == "person 4"
    for name in names:
        np.testing.assert_allclose(
            audit.individual_delta.sel(individual=name).mean(("chain", "draw")),
            audit.individuals["mean"].sel(individual=name),
        )


def test_delta_is_the_largest_individual_risk(responses):
    everyone = edp.audit(
        responses,
        epsilon=EPSILON,
        model=edp.SmoothedBootstrap(),
        draws=50,
        chains=1,
        keep=12,
        random_seed=4,
        progressbar=False,
    )
    np.testing.assert_array_equal(everyone.delta, everyone.individual_delta.max("individual"))
    survival = (1.0 - everyone.individual_delta).prod("individual")
    np.testing.assert_allclose(everyone.total_risk, 1.0 - survival, atol=1e-14)
    np.testing.assert_allclose(
        everyone.total_risk_bound, everyone.individual_delta.sum("individual").clip(max=1.0)
    )


def test_bands_say_what_they_are_and_the_simultaneous_one_is_wider(audit):
    wide = audit.band(prob=0.9)
    narrow = audit.band(kind="pointwise", prob=0.9)
    assert wide.attrs == {"quantity": "delta", "kind": "simultaneous", "prob": 0.9}
    assert (wide.lower <= narrow.lower).all()
    assert (wide.upper >= narrow.upper).all()
    each = audit.band("individual_delta", kind="pointwise", prob=0.9)
    assert dict(each.sizes) == {"individual": 4, "epsilon": 5}
    with pytest.raises(edp.InvalidInputError, match="kind must be one of"):
        audit.band(kind="both")
    with pytest.raises(edp.InvalidInputError, match="quantity must be one of"):
        audit.band("risk")


@pytest.mark.full
def test_default_probability_is_that_of_arviz(audit):
    with az.rc_context({"stats.ci_prob": 0.75}):
        assert audit.band().attrs["prob"] == 0.75
        assert "eti75_lb" in audit.summary().columns


def test_summary_is_made_by_arviz_and_has_no_nan(audit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = audit.summary(ci_prob=0.95)
    assert {"median", "eti95_lb", "eti95_ub", "r_hat", "ess_median"} <= set(table.columns)
    assert "epsilon_at[0.01]" in table.index
    ends = table[["median", "eti95_lb", "eti95_ub"]]
    beyond = [f"epsilon_at[{t}]" for t in (0.01, 0.001) if np.isinf(audit.epsilon_at(t)).any()]
    assert np.isfinite(ends.drop(index=beyond).to_numpy()).all()
    assert not ends.isna().any(axis=None)
    draws = audit.delta.sel(epsilon=0.1).to_numpy().ravel()
    assert table.loc["delta[0.1]", "eti95_ub"] == pytest.approx(np.quantile(draws, 0.975), rel=1e-3)


@pytest.mark.parametrize("kind", ["eti", "hdi"])
def test_an_epsilon_that_is_never_reached_is_infinite_in_the_summary(kind):
    grid = np.linspace(0.0, 1.0, 11)
    level = np.array([0.5, 0.2, 0.2, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01, 0.01])
    curves = level[:, None] * np.exp(-2.0 * grid)
    posterior = xr.Dataset(
        {"delta": (("chain", "draw", "epsilon"), curves[None])}, coords={"epsilon": grid}
    ).assign_coords(chain=[0], draw=np.arange(10))
    audit = Audit(xr.DataTree.from_dict({"posterior": posterior}))
    table = PrivacyCurves.summary(audit, targets=[0.001, 0.01, 0.3], ci_kind=kind, ci_prob=0.8)
    lower, upper = (c for c in table.columns if c.startswith(f"{kind}80"))
    never, half, seldom = (table.loc[f"epsilon_at[{t}]"] for t in (0.001, 0.01, 0.3))
    assert (never[["median", lower, upper]] == np.inf).all()
    assert half[upper] == np.inf
    assert half[lower] < half["median"] < 1.0
    assert np.isfinite(seldom[["median", lower, upper]]).all()


def test_arviz_works_on_the_tree_unchanged(audit):
    tree = audit.to_datatree()
    assert "delta[0.02]" in az.summary(tree, var_names=["delta"]).index
    az.plot_forest(tree, var_names=["individual_delta"], backend="none")
    az.plot_dist(tree, var_names=["total_risk"], backend="none")
    assert np.isfinite(az.loo(tree, var_name="response").elpd)


@pytest.mark.full
@pytest.mark.parametrize("name", ["audit.nc", "audit.zarr"])
def test_a_saved_audit_loads_identical(audit, tmp_path, name):
    path = tmp_path / "new" / name
    audit.save(path)
    audit.save(path)
    loaded = edp.load(path)
    assert loaded.tree.identical(audit.tree)
    assert loaded.warnings == audit.warnings
    assert loaded.settings == audit.settings
    assert [p.name for p in path.parent.iterdir()] == [name]


@pytest.mark.full
def test_an_interrupted_save_leaves_the_old_file(audit, tmp_path, monkeypatch):
    path = tmp_path / "audit.nc"
    audit.save(path)
    before = path.read_bytes()

    def interrupted(self, content):
        self.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(type(path), "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        audit.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_are_no_audit_are_refused(audit, tmp_path):
    with pytest.raises(edp.InvalidInputError, match="does not exist"):
        edp.load(tmp_path / "none.nc")
    half = tmp_path / "half.nc"
    audit.save(half)
    half.write_bytes(half.read_bytes()[:2000])
    with pytest.raises(edp.InvalidInputError, match="cannot be read as an audit"):
        edp.load(half)
    other = tmp_path / "other.nc"
    files.save_tree(xr.DataTree.from_dict({"/": xr.Dataset({"x": 1})}), other)
    with pytest.raises(edp.InvalidInputError, match="is not a saved result"):
        edp.load(other)


def test_a_folder_that_cannot_be_made_is_refused(audit, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(edp.InvalidInputError, match="cannot be written"):
        audit.save(blocker / "audit.nc")


def test_mixture_draws_come_back(audit, responses):
    mixture = audit.mixture
    assert mixture.weights.shape == (2, 200, 40)
    assert mixture.kernel == "laplace"
    assert mixture.noise is None
    np.testing.assert_array_equal(mixture.locations[0, 0], responses.response)


def test_settings_hold_what_is_needed_to_repeat(audit, responses):
    settings = audit.settings
    assert settings["random_seed"] == 4
    assert settings["fingerprint"] == responses.fingerprint
    assert "SmoothedBootstrap" in settings["model"]
    assert set(settings["screened_out"]) == {str(e) for e in EPSILON}
    assert json.loads(audit.tree.attrs["settings"]) == settings
    assert settings["versions"]["numpy"] == np.__version__


@pytest.mark.full
def test_rows_of_every_table_belong_to_their_labels(audit, tmp_path):
    import arviz as az

    medians = audit.individual_delta.median(("chain", "draw"))
    again = edp.load(audit.save(tmp_path / "again.nc"))
    tables = [found.summary(ci_prob=0.9) for found in (audit, again)]
    tables.append(az.summary(audit.to_datatree(), kind="all_median", round_to="none"))
    assert min(medians.sizes.values()) > 1
    for table in tables:
        for i in medians["individual"].values:
            for e in medians["epsilon"].values:
                row = table.loc[f"individual_delta[{i}, {e}]"]
                np.testing.assert_allclose(
                    row["median"], medians.sel(individual=i, epsilon=e), rtol=1e-12
                )


def test_an_audit_shows_its_sizes_not_its_tree(audit):
    text = repr(audit)
    assert text.startswith("Audit(")
    assert len(text) < 200
    assert "\n" not in text


@pytest.mark.parametrize("name", ["audit", "audit.foo", "audit.nc.gz"])
def test_a_name_that_tells_no_format_is_refused(audit, tmp_path, name):
    with pytest.raises(edp.InvalidInputError, match=r"must end in \.nc or \.zarr"):
        audit.save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_probability_in_percent_is_refused(audit):
    with pytest.raises(edp.InvalidInputError, match="strictly between 0 and 1"):
        audit.summary(ci_prob=95)


def test_labels_that_hdf5_cannot_hold_are_named(tmp_path):
    rng = np.random.default_rng(1)
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 40), contribution=np.full((40, 1), 0.1), individual=["a\0b"]
    )
    audit = edp.audit(
        responses, epsilon=[0.1], model=edp.SmoothedBootstrap(), draws=10, progressbar=False
    )
    with pytest.raises(edp.InvalidInputError, match=r"give it a name that ends in \.zarr"):
        audit.save(tmp_path / "audit.nc")
    assert list(tmp_path.iterdir()) == []
    assert edp.load(audit.save(tmp_path / "audit.zarr")).delta.equals(audit.delta)


def test_zarr_files_say_what_they_need(audit, tmp_path, monkeypatch):
    audit.save(tmp_path / "audit.zarr")
    monkeypatch.setattr(files, "find_spec", lambda name: None)
    for action in (audit.save, edp.load):
        with pytest.raises(edp.InvalidInputError, match="needs the zarr package"):
            action(tmp_path / "audit.zarr")


@pytest.mark.full
def test_a_summary_has_the_intervals_asked_for(audit):
    draws = audit.delta.sel(epsilon=0.1).to_numpy().ravel()
    lower, upper = az.hdi(draws, prob=0.8)
    table = audit.summary(ci_kind="hdi", ci_prob=0.8)
    with az.rc_context({"stats.ci_kind": "hdi", "stats.ci_prob": 0.8}):
        assert list(audit.summary().columns) == list(table.columns)
    found = table.loc["delta[0.1]", ["hdi80_lb", "hdi80_ub"]]
    assert found.tolist() == pytest.approx([lower, upper])
    assert not table.columns.str.startswith("eti").any()


@pytest.mark.full
def test_what_a_summary_cannot_be(audit):
    with pytest.raises(edp.InvalidInputError, match="ci_kind must be one of eti, hdi"):
        audit.summary(ci_kind="bad")
    with pytest.raises(edp.InputTypeError, match="targets must be numeric"):
        audit.summary(targets=["a"])
    rows = audit.summary(targets=[0.01, 0.0100000001, 0.01]).index
    assert [r for r in rows if r.startswith("epsilon_at")] == [
        "epsilon_at[0.01]",
        "epsilon_at[0.0100000001]",
    ]
