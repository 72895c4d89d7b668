"""Results in tables of maketables: its plug-in format, and the package itself where it is."""

import json

import numpy as np
import pytest

import edp_bayes as edp

EPSILON = [0.05, 0.1, 0.5]


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(2)
    c = rng.gamma(2.0, 0.05, (40, 3))
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 40) + c.sum(axis=1), contribution=c, individual=["Ann", "Bo", "Cy"]
    )
    return edp.audit(
        responses, epsilon=EPSILON, model=edp.SmoothedBootstrap(), draws=100, random_seed=1,
        progressbar=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def mechanism():
    rng = np.random.default_rng(1)
    answers = [rng.random(500) < share for share in (0.75, 0.25)]
    return edp.audit_mechanism(*answers, epsilon=EPSILON, random_seed=1, progressbar=False)


@pytest.fixture(scope="module")
def smokers():
    return edp.audit_property(103, 1000, epsilon=EPSILON, random_seed=1, progressbar=False)


def test_coefficients_are_medians_bands_and_limits_of_delta(audit):
    table = audit.__maketables_coef_table__
    assert list(table.columns) == ["b", "se", "p", "ci95l", "ci95u", "limit"]
    assert table.index.name == "Coefficient"
    assert list(table.index) == [f"delta, epsilon = {e}" for e in EPSILON]
    np.testing.assert_array_equal(table["b"], audit.delta.median(("chain", "draw")))
    np.testing.assert_allclose(table["se"], audit.delta.std(("chain", "draw")))
    band = audit.band(kind="pointwise", prob=0.95)
    np.testing.assert_array_equal(table["ci95l"], band["lower"])
    np.testing.assert_array_equal(table["ci95u"], band["upper"])
    np.testing.assert_array_equal(table["limit"], audit.upper(prob=0.95))
    assert table["p"].isna().all()


def test_statistics_are_those_of_the_result(audit, mechanism, smokers):
    found = {key: audit.__maketables_stat__(key) for key in audit.__maketables_stat_labels__}
    assert (found["N"], found["individuals"], found["draws"]) == (40, 3, 400)
    assert (found["model"], found["random_seed"]) == ("SmoothedBootstrap()", 1)
    verdict = audit.verdict()
    assert found["verdict"] == f"{verdict.status} (target: 0.1 at epsilon = 0.1)"
    assert found["against"] is None
    assert audit.__maketables_stat__("r2") is None
    assert audit.__maketables_stat__("fingerprint") is None
    assert mechanism.__maketables_stat__("N") == 500
    assert mechanism.__maketables_stat_labels__["N"] == "Samples"
    assert mechanism.__maketables_stat__("individuals") is None
    assert smokers.__maketables_stat__("N") == 1
    assert audit.__maketables_depvar__ == "arrays"
    assert audit.with_release(title="Revenue").__maketables_depvar__ == "Revenue"


def test_a_withheld_verdict_is_said_below_the_table(audit):
    tree = audit.tree.copy()
    row = {"check": "trend", "passed": False, "sentence": "It drifts."}
    tree.attrs = {**tree.attrs, "checks": json.dumps([row])}
    assert str(edp.Audit(tree).__maketables_stat__("verdict")).startswith(
        "not established (target: "
    )


def test_maketables_shows_results_side_by_side(audit, mechanism, smokers):
    maketables = pytest.importorskip(
        "maketables", reason="maketables is no dependency: pip install maketables"
    )
    assert type(maketables.get_extractor(audit)).__name__ == "PluginExtractor"
    results = [audit.with_release(title="Revenue"), smokers, mechanism]
    table = maketables.ETable(results)
    shown = table.df
    assert shown.loc[("coef", "delta, epsilon = 0.1")].tolist() == [
        f"{one.__maketables_coef_table__['b'].iloc[1]:.3f} \n "
        f"({one.__maketables_coef_table__['se'].iloc[1]:.3f})"
        for one in results
    ]
    assert shown.loc[("stats", "Databases")].tolist() == ["40", "1", "500"]
    assert shown.loc[("stats", "Verdict")].iloc[0] == audit.__maketables_stat__("verdict")
    assert "Revenue" in str(shown.columns.tolist())
    assert "Ann" not in table.make("gt").as_raw_html()
    band = maketables.ETable(audit, coef_fmt="b:.4f [ci95l:.4f, ci95u:.4f] limit:.4f", keep="0.5")
    row = audit.__maketables_coef_table__.iloc[2]
    assert band.df.iloc[0, 0] == (
        f"{row['b']:.4f} [{row['ci95l']:.4f}, {row['ci95u']:.4f}] {row['limit']:.4f}"
    )
    assert len(band.df.loc["coef"]) == 1
