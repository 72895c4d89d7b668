"""What a limit of delta rests on: how often they were there, the shape, the model."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models import BaseMeasure
from edp_bayes.report import describe
from edp_bayes.report.html import render
from edp_bayes.results.basis import on_what
from tests.command_line import refused

EPSILON = [0.05, 0.2, 0.5]


def sometimes(size=0.4, databases=60, people=5, often=3):
    """Return responses to which each of some people contributed alike, in as many databases."""
    rng = np.random.default_rng(2)
    c = np.zeros((databases, people))
    for column in c.T:
        column[rng.choice(databases, often, replace=False)] = size * rng.uniform(0.9, 1.0, often)
    return edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, databases) + c.sum(axis=1), contribution=c
    )


def audited(responses, model=None, **options):
    options = {"epsilon": EPSILON, "draws": 100, "random_seed": 1, "progressbar": False} | options
    return edp.audit(responses, model=model, **options)


def stating(narrowest, kind=edp.DirichletProcessMixture, **options):
    return kind(base_measure=BaseMeasure(narrowest=narrowest), **options)


@given(
    st.lists(
        st.tuples(
            st.floats(0.05, 1.0), st.floats(-3.0, 3.0), st.floats(1.0, 3.0), st.floats(0.0, 1.0)
        ),
        min_size=1,
        max_size=4,
    ),
    st.floats(0.01, 3.0),
    st.floats(0.0, 2.0),
)
def test_no_mixture_of_wider_components_is_riskier_than_the_shape_allows(parts, moved, epsilon):
    """Presence may be another in every component."""
    weight, place, scale, present = np.array(parts).T
    weight = weight / weight.sum()
    both = np.concatenate([weight * (1.0 - present), weight * present])
    q = edp.Mixture(both, np.tile(place, 2), np.tile(scale, 2))
    p = edp.Mixture(both, np.concatenate([place, place + moved]), np.tile(scale, 2))
    allowed = (weight * present).sum() * edp.hockey_stick(
        edp.Mixture(1.0, 0.0, 1.0), edp.Mixture(1.0, moved, 1.0), epsilon=epsilon
    )
    for one, other in ((p, q), (q, p)):
        assert edp.hockey_stick(one, other, epsilon=epsilon) <= allowed + 1e-12


@pytest.mark.full
def test_how_often_they_were_there_limits_every_risk():
    audit = audited(sometimes())
    basis = audit.basis(prob=0.9)
    of_one = binomtest(3, 60, alternative="less").proportion_ci(1.0 - 0.1 / 5, method="exact")
    np.testing.assert_allclose(basis["data"], of_one.high)
    assert (basis["shape"] <= basis["data"]).all()
    np.testing.assert_array_equal(
        basis["model"], audit.upper("delta", prob=0.9, kind="simultaneous")
    )
    assert on_what(audit, 0.9)[0].startswith("Where databases are alike, how often")


@pytest.mark.full
def test_who_is_always_there_has_no_limit_by_that_alone():
    rng = np.random.default_rng(3)
    responses = edp.Responses.from_arrays(
        rng.normal(10.0, 1.0, 30), contribution=rng.normal(0.3, 0.01, (30, 1))
    )
    assert (audited(responses).basis()["data"] == 1.0).all()
    sentence = on_what(audited(responses), 0.95)[0]
    assert sentence.startswith("Data alone show no limit below 1: some individual was in every")


@pytest.mark.full
def test_given_an_adversary_the_databases_are_not_alike():
    audit = audited(sometimes(), adversary=edp.Adversary(past=1))
    assert (audit.basis()["data"] == 1.0).all()
    assert "no limit below 1 for the database in question" in on_what(audit, 0.95)[0]


@pytest.mark.full
@pytest.mark.parametrize("kind", [edp.DirichletProcessMixture, edp.FiniteMixture])
def test_a_smooth_distribution_that_is_stated_makes_limits_smaller(kind):
    rng = np.random.default_rng(5)
    y = rng.normal(10.0, 1.0, 60)
    responses = edp.Responses.from_arrays(y, contribution=rng.normal(0.1, 0.001, (60, 1)))
    options = {"components": 5} if kind is edp.FiniteMixture else {}
    free = audited(responses, kind(**options))
    smooth = audited(responses, stating(0.2, kind, **options))
    assert (smooth.upper() < free.upper()).all()
    assert smooth.settings["narrowest"] == pytest.approx(0.2)
    assert 0.0 < free.settings["narrowest"] < 0.1
    # one normal component moved by half its width
    np.testing.assert_allclose(
        smooth.basis()["shape"],
        [
            edp.hockey_stick(
                edp.Mixture(1.0, 0.0, 0.2),
                edp.Mixture(1.0, float(smooth.individuals["largest_contribution"][0]), 0.2),
                epsilon=epsilon,
            )
            for epsilon in EPSILON
        ],
    )
    assert (
        "narrower than 0.2, as stated, and contributions do not follow the rest within one, it is"
        in on_what(smooth, 0.95)[0]
    )
    assert "by default the narrowest" in on_what(free, 0.95)[0]


@pytest.mark.full
@pytest.mark.parametrize("unit", [1e-3, 1e4])
def test_a_stated_width_is_in_units_of_the_answer(unit):
    responses = sometimes()
    other = edp.Responses.from_arrays(
        unit * responses.response, contribution=unit * responses.contribution.toarray()
    )
    for adversary in (None, edp.Adversary(past=1)):
        one = audited(responses, stating(0.3), adversary=adversary)
        two = audited(other, stating(0.3 * unit), adversary=adversary)
        np.testing.assert_allclose(one.delta, two.delta, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(one.basis()["shape"], two.basis()["shape"], rtol=1e-6)


@pytest.mark.full
def test_on_another_scale_contributions_are_those_of_that_scale():
    rng = np.random.default_rng(7)
    total = np.exp(rng.normal(5.0, 0.5, 40))
    responses = edp.Responses.from_arrays(
        total, contribution=(0.1 * total)[:, None], transform="log"
    )
    audit = audited(responses, stating(0.2))
    most = audit.individuals["modelled_contribution"].to_numpy()
    np.testing.assert_allclose(most, -np.log(0.9))
    moved = edp.Mixture(1.0, float(most[0]), 0.2)
    allowed = edp.hockey_stick(edp.Mixture(1.0, 0.0, 0.2), moved, epsilon=0.05)
    assert audit.basis()["shape"][0] == pytest.approx(float(allowed))


@pytest.mark.full
def test_a_bootstrap_names_no_narrowest_component():
    basis = audited(sometimes(), edp.SmoothedBootstrap()).basis()
    assert "shape" not in basis
    assert np.isnan(basis.attrs["narrowest"])


@pytest.mark.full
@pytest.mark.parametrize("turn", [1, -1])
def test_a_stack_names_the_narrowest_of_all_its_models_or_none(turn):
    models = [edp.DirichletProcessMixture(), stating(0.3)]
    both = audited(sometimes(), edp.Stacked(models[::turn]))
    widths = [audited(sometimes(), model).settings["narrowest"] for model in models]
    assert both.basis().attrs["narrowest"] == pytest.approx(min(widths))
    assert "by default the narrowest" in on_what(both, 0.95)[0]
    one = [edp.SmoothedBootstrap(), stating(0.3)]
    assert "shape" not in audited(sometimes(), edp.Stacked(one[::turn])).basis()


@pytest.mark.full
def test_a_width_below_what_bins_show_is_not_called_stated():
    rounded = np.round(sometimes().response)
    responses = edp.Responses.from_arrays(rounded, contribution=np.ones((60, 1)), step=1.0)
    audit = audited(responses, stating(0.05))
    assert audit.settings["narrowest"] == pytest.approx(0.15)
    assert "by default the narrowest" in on_what(audit, 0.95)[0]


@pytest.mark.full
def test_it_is_saved_and_in_the_report(tmp_path):
    audit = audited(sometimes(), stating(0.3))
    again = edp.load(audit.save(tmp_path / "audit.nc"))
    assert again.basis().identical(audit.basis())
    content = describe(again, prob=0.9)
    assert content.basis == on_what(audit, 0.9)
    page = audit.report(tmp_path / "report.html", prob=0.9).read_text(encoding="utf-8")
    assert f">{content.basis[content.at]}<" in page
    page = render(dataclasses.replace(content, withheld="not established"))
    assert f">{content.basis[content.at]}<" not in page


@pytest.mark.full
def test_what_cannot_be_stated_is_refused():
    responses = sometimes()
    with pytest.raises(InvalidInputError, match="narrowest must not be wider than the answers are"):
        audited(responses, stating(3.0))
    with pytest.raises(InvalidInputError, match="less what is known, are spread"):
        audited(responses, stating(3.0), adversary=edp.Adversary(past=1))
    with pytest.raises(InvalidInputError, match="base measure narrowest"):
        BaseMeasure(narrowest=0.0)
    two = edp.Responses.join(responses, responses.replaced(response=responses.response**2))
    with pytest.raises(InvalidInputError, match="in units of one answer"):
        audited(two, stating(0.3))
    with pytest.raises(InvalidInputError, match="prob"):
        audited(responses).basis(prob=1.0)


@pytest.mark.full
def test_it_is_an_option_of_the_command_line(tmp_path, capsys):
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(
        [(week, who) for week in range(30) for who in range(9) if rng.random() < 0.5],
        columns=["week", "who"],
    )
    rows["kwh"] = rng.gamma(2.0, 1.0, len(rows))
    rows.to_csv(tmp_path / "energy.csv", index=False)
    keys = ["--database", "week", "--individual", "who", "--epsilon", "0.1", "--no-past"]
    asked = [
        "audit",
        str(tmp_path / "energy.csv"),
        "--verbose",
        *keys,
        "--query",
        "sum:kwh",
        "--draws",
        "50",
    ]
    asked += ["--seed", "1", "--out", str(tmp_path / "out")]
    assert main([*asked, "--narrowest", "1.5"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    audit = edp.load(tmp_path / "out" / "audit.nc")
    assert audit.settings["narrowest"] == pytest.approx(1.5)
    assert audit.withheld is None
    assert on_what(audit, 0.95)[0] in said
    assert "--model dpm and finite:K" in refused(
        capsys, *asked, "--narrowest", "1.5", "--model", "bootstrap"
    )
    assert "--narrowest must be" in refused(capsys, *asked, "--narrowest", "-1")


@pytest.mark.full
def test_what_the_largest_of_many_adds_is_said():
    """Of thirty alike, each has a smaller limit than the largest of them has."""
    alike = audited(sometimes(people=30, often=20))
    basis = alike.basis()
    single = alike.upper("individual_delta", kind="simultaneous").max("individual")
    np.testing.assert_array_equal(basis["individual"], single)
    assert (basis["individual"] < basis["model"]).all()
    said = on_what(alike, 0.95)
    limits = zip(said, basis["individual"].to_numpy(), basis["model"].to_numpy(), strict=True)
    for sentence, one, most in limits:
        assert ("hold for the largest of 30" in sentence) == (most > 1.25 * one)
    assert any("hold for the largest of 30" in sentence for sentence in said)
    one = audited(sometimes(people=1))
    np.testing.assert_array_equal(one.basis()["individual"], one.basis()["model"])
    assert not any("largest of" in sentence for sentence in on_what(one, 0.95))


@pytest.mark.full
def test_atoms_leave_what_the_data_alone_show():
    responses = sometimes()
    closed = np.arange(60) % 4 == 0
    y = np.where(closed, 0.0, responses.response)
    c = np.where(closed[:, None], 0.0, responses.contribution.toarray())
    found = audited(edp.Responses.from_arrays(y, contribution=c, atoms=[0.0]))
    plain = audited(edp.Responses.from_arrays(y, contribution=c, step=None))
    assert "shape" not in found.basis()
    np.testing.assert_array_equal(found.basis()["data"], plain.basis()["data"])


def test_the_narrowest_component_is_that_of_the_scale_that_is_modelled():
    rng = np.random.default_rng(4)
    y = np.exp(rng.normal(2.0, 0.5, 40))
    c = 0.05 * y * (rng.random(40) < 0.3)
    found = audited(edp.Responses.from_arrays(y + c, contribution=c[:, None], transform="log"))
    assert "of log of the answer" in on_what(found, 0.95)[0]
