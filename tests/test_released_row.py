"""What is published of a row of several answers: against masses of cells by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from joint_cases import EPSILON, joint_coupling, joint_responses
from scipy.stats import expon, laplace, multivariate_normal, norm

import edp_bayes as edp
from edp_bayes.coupling.views.published_row import RowCoupling
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.distributions.published_row import PublishedRow
from edp_bayes.divergence.joint.noisy import noisy_curves, noisy_points
from edp_bayes.divergence.joint.points import digital_shifts
from edp_bayes.exceptions import InputTypeError, InvalidInputError

QUICK = {"draws": 15, "tune": 100, "chains": 2, "random_seed": 1, "progressbar": False}
NAMES = ("sum", "count")
PEOPLE = np.array([0, 1, 2, 5])
STEPS = {"sum": 4.0, "count": 2.0}


@pytest.fixture(scope="module")
def audit():
    return edp.audit(joint_responses(), epsilon=EPSILON, model=edp.SmoothedBootstrap(), **QUICK)


@pytest.fixture(scope="module")
def coupling():
    return joint_coupling("mixture", draws=2)


def masses(coupling, mixture, row, edges):
    """Return the probability of every cell between edges of both answers, in one draw."""
    units, out = coupling.units, 0.0
    grid = np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1)
    covariances = np.broadcast_to(mixture.covariances, (*mixture.locations.shape, 2))[row]
    for w, mean, covariance in zip(
        mixture.weights[row], mixture.locations[row], covariances, strict=True
    ):
        place = units.centre + units.factor @ mean
        spread = units.factor @ (covariance + coupling.noise) @ units.factor.T
        cdf = multivariate_normal(place, spread).cdf(grid)
        out = out + w * np.diff(np.diff(cdf, axis=0), axis=1)
    return out


def exact(coupling, individual, row, merge=None):
    """Return delta_i in one draw, answers rounded to `STEPS`; merge makes one cell of some."""
    far = 1e6
    edges = [
        np.r_[-far, step * (np.round(centre / step) + np.arange(-12, 12) + 0.5), far]
        for step, centre in zip(STEPS.values(), coupling.units.centre, strict=True)
    ]
    p, q = (masses(coupling, part, row, edges) for part in coupling.pair(individual))
    if merge is not None:
        hidden = edges[1][1:] <= merge
        p, q = (np.r_[part[:, hidden].sum(), part[:, ~hidden].ravel()] for part in (p, q))
    growth = np.exp(EPSILON)
    return [max(np.maximum(p - g * q, 0.0).sum(), np.maximum(q - g * p, 0.0).sum()) for g in growth]


@pytest.mark.parametrize("whole_row", [False, True])
def test_points_in_cells_are_the_masses_of_cells(coupling, whole_row):
    """Within four standard errors, and never above what the whole answers tell."""
    hidden = {"threshold": {"count": 10.0}, "whole_row": True} if whole_row else {}
    row = RowCoupling(coupling, PublishedRow.of(NAMES, rounded_to=STEPS, **hidden))
    found, whole = row.curves(PEOPLE, EPSILON), coupling.curves(PEOPLE, EPSILON)
    for column, person in enumerate(PEOPLE):
        true = exact(coupling, int(person), 1, merge=9.0 if whole_row else None)
        away = np.abs(found.value[1, column] - true)
        assert (away <= 4.0 * found.error[1, column] + 2e-4).all(), person
    assert (found.value <= whole.value).all()
    assert (found.raised <= whole.raised + 1e-15).all()
    assert found.value[1].sum() < 0.95 * whole.value[1].sum()


def test_cells_of_one_value_each_tell_what_the_whole_answers_do(coupling):
    fine = PublishedRow.of(NAMES, rounded_to={"sum": 1e-6, "count": 1e-6})
    one = PublishedRow.of(NAMES, rounded_to={"sum": 4.0})
    whole = coupling.curves(PEOPLE, EPSILON)
    for published in (fine, one):
        found = RowCoupling(coupling, published).curves(PEOPLE, EPSILON)
        assert (whole.value - found.value <= 3.0 * (whole.error + found.error)).all()


def test_where_the_answers_lie_moves_the_grid(coupling):
    """An offset moved with the answers leaves every cell as it was."""
    plain = RowCoupling(coupling, PublishedRow.of(NAMES, rounded_to=STEPS))
    moved = PublishedRow.of(NAMES, rounded_to=STEPS, offset={"sum": 1.5, "count": -0.25})
    shift = np.tile([1.5, -0.25], (coupling.n_draws, 1))
    along = RowCoupling(coupling, moved, shift=shift)
    still = replace(along, shift=None)
    first, second, third = (one.curves(PEOPLE, EPSILON).value for one in (plain, along, still))
    np.testing.assert_allclose(second, first, atol=1e-12)
    assert np.abs(third - first).max() > 1e-3


def test_the_audit_of_a_row_is_of_less_than_the_whole(audit):
    found = audit.released(rounded_to=STEPS, progressbar=False)
    assert found.joint
    for name in ("delta", "total_risk"):
        assert (found.upper(name) <= audit.upper(name) + 1e-12).all()
        assert (found.safe_draws[name] <= audit.safe_draws[name] + 1e-12).all()
    for kind in ("pointwise", "simultaneous"):
        band = found.band(kind=kind)
        assert (band["lower"] <= band["upper"]).all()
    assert float(found.delta.mean()) < 0.9 * float(audit.delta.mean())
    words = "with sum rounded to 4, count rounded to 2"
    assert found.settings["released"]["words"] == words
    assert f"from the answer {words}" in str(found.verdict(epsilon=0.1, delta=0.9))
    alone = found.individual_delta.max("individual")
    np.testing.assert_array_less(alone - 1e-12, found.delta)


def test_what_was_tried_is_of_the_whole_answers(audit, monkeypatch):
    monkeypatch.setitem(audit.tree.attrs, "tried", "[]")
    assert "tried" not in audit.released(rounded_to=STEPS, progressbar=False).tree.attrs


def test_a_test_of_an_answer_that_the_row_does_not_tell_is_none(audit):
    """Where the count hides the sum, the sum rounded alone is nothing that is published."""
    options = {"rounded_to": STEPS, "threshold": {"count": 1e6}, "progressbar": False}
    hidden = audit.released(**options, whole_row=True)
    assert float(hidden.band()["lower"].max()) == 0.0
    # mass of the heaviest that points of the others miss counts as revealed
    assert float(hidden.upper().max()) < 0.02 < float(audit.upper().min())
    shown = audit.released(**options)
    assert float(shown.delta.mean()) > 0.01


@pytest.mark.full
def test_releases_of_rows_compose_to_no_more_than_those_of_whole_answers(audit):
    row = audit.released(rounded_to=STEPS, progressbar=False)
    asked = {"databases": 2, "draws": 5, "keep": 2, "progressbar": False}
    below, above = row.compose(**asked), audit.compose(**asked)
    assert (below.delta <= above.delta + 1e-9).all()
    assert (below.delta >= row.delta.min() - 1e-9).all()


def test_what_is_not_known_of_a_row_is_refused(audit):
    for options, said in (
        ({"rounded_to": {"sum": 1.0}, "offset": {"sum": "worst"}}, "worst place of several grids"),
        ({"rounded_to": STEPS, "noise_after": {"sum": edp.LaplaceNoise(1.0)}}, "only lowers"),
        ({"noise_after": {}}, "at least one query"),
        ({"rounded_to": {"total": 1.0}}, "must name queries of the audit, sum, count"),
        ({}, "say what is published of which query"),
        ({"rounded_to": {"sum": 1.0}, "whole_row": True}, "give threshold= of a query"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            audit.released(**options, progressbar=False)
    with pytest.raises(InputTypeError, match="must be a mapping by query"):
        audit.released(rounded_to=1.0, progressbar=False)
    again = audit.released(rounded_to=STEPS, progressbar=False)
    with pytest.raises(InvalidInputError, match="start from the audit of the whole answers"):
        again.released(rounded_to=STEPS, progressbar=False)
    with pytest.raises(InvalidInputError, match="audit again"):
        replace(audit, fit=None).released(rounded_to=STEPS, progressbar=False)


def test_a_redundant_answer_is_not_redundant_once_it_is_rounded():
    part = joint_responses().parts[0]
    twice = part.replaced(
        response=2.0 * part.response, contribution=2.0 * part.contribution, query="twice"
    )
    with pytest.warns(edp.EdpBayesWarning, match="left out"):
        found = edp.audit(
            edp.Responses.join(part, twice), epsilon=[0.5], model=edp.SmoothedBootstrap(), **QUICK
        )
    with pytest.raises(InvalidInputError, match="twice follows from the other answers"):
        found.released(rounded_to={"sum": 1.0, "twice": 3.0})


NOISES = (edp.LaplaceNoise(1.5), edp.LaplaceNoise(0.5))


def noisy_risk(shift, noises=NOISES):
    """Return value and error of a normal pair of covariance one, moved, with noise added."""
    p, q = (
        NormalMixture(np.ones((1, 1)), np.array([[place]]), np.eye(2)[None, None])
        for place in (np.zeros(2), np.array(shift))
    )
    noisy = noisy_points(p, noises, digital_shifts(1, 6, 1, 9))
    out = np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 8, 3))
    noisy_curves(p, q, *noisy, EPSILON, out)
    return out[0][0], out[1][0]


def shifted(s, epsilon):
    return norm.cdf(s / 2 - epsilon / s) - np.exp(epsilon) * norm.cdf(-s / 2 - epsilon / s)


@pytest.mark.parametrize("shift", [(0.4, 0.3), (1.2, -0.5)])
def test_laplace_noise_is_normal_noise_of_a_variance_that_is_seen(shift):
    """Against an integral over both variances, in place of points."""
    value, error = noisy_risk(shift)
    level = (np.arange(2000) + 0.5) / 2000
    v, w = (2.0 * noise.scale**2 * expon.isf(level) for noise in NOISES)
    s = np.sqrt(shift[0] ** 2 / (1.0 + v[:, None]) + shift[1] ** 2 / (1.0 + w))
    for k, epsilon in enumerate(EPSILON):
        assert abs(value[k] - shifted(s, epsilon).mean()) <= 4.0 * error[k] + 1e-4


@pytest.mark.parametrize("shift", [(0.4, 0.3), (1.2, -0.5)])
def test_a_risk_with_laplace_noise_is_at_most_what_is_said(shift):
    """Against densities of the noisy answers on a grid; noise lowers the risk."""
    step = 0.04
    x = step * np.arange(-300, 301)
    densities = []
    for place in ((0.0, 0.0), shift):
        axes = [
            np.convolve(norm.pdf(x, m), laplace.pdf(x, scale=b.scale), "same") * step
            for m, b in zip(place, NOISES, strict=True)
        ]
        densities.append(np.outer(*axes) * step**2)
    p, q = densities
    np.testing.assert_allclose([p.sum(), q.sum()], 1.0, atol=2e-3)
    value, error = noisy_risk(shift)
    for k, epsilon in enumerate(EPSILON):
        true = np.maximum(p - np.exp(epsilon) * q, 0.0).sum()
        without = shifted(np.hypot(*shift), epsilon)
        assert true - 1e-4 <= value[k] + error[k] <= without
        assert value[k] - true < 0.5 * (without - true)


@pytest.mark.full
def test_the_audit_with_noise_added_is_of_less_than_the_whole(audit):
    noise = {"sum": edp.LaplaceNoise(2.0), "count": edp.LaplaceNoise(1.0)}
    found = audit.released(noise_after=noise, progressbar=False)
    assert (found.upper() <= audit.upper() + 1e-12).all()
    assert float(found.delta.mean()) < 0.8 * float(audit.delta.mean())
    assert (found.band()["lower"] <= found.band()["upper"]).all()
    assert "with LaplaceNoise(scale=2.0) added to sum" in found.settings["query"]
    one = audit.released(noise_after={"sum": edp.LaplaceNoise(2.0)}, progressbar=False)
    assert float(one.delta.mean()) > float(found.delta.mean())
