"""The truths of the study given an adversary, by other means."""

from __future__ import annotations

import numpy as np
import pytest

from edp_bayes.divergence import gaussian
from tests.calibration.given import EPSILON, PROCESSES, SPREAD, Cell, _curves, _filtered, _latent


@pytest.mark.parametrize("process", ["independent", "AR 0.9", "scale halves", "own season, peak"])
def test_the_truth_under_normal_innovations_is_an_exact_integral(process):
    cell = Cell(process, "normal", 78, 0.4)
    size = 0.4 * (1.8 if "peak" in process else 1.0)
    one = np.ones((1, 1))
    exact = gaussian.curves(
        one,
        one * size,
        one * np.hypot(1.0, SPREAD * size),
        one[None],
        np.zeros((1, 1, 1)),
        one[None],
        EPSILON,
    )[0, 0]
    np.testing.assert_allclose(_curves(cell)[1][-1], exact, atol=1e-6)


@pytest.mark.parametrize("process", PROCESSES)
def test_every_process_draws_what_its_adversary_may_see(process):
    cell = Cell(process, "normal", 41, 0.4)
    responses, truth = cell.sample(1)
    assert ((truth >= 0.0) & (truth < 1.0)).all()
    for method in cell.methods[1:]:
        assert cell.adversary(method).given(responses).past == 2


def test_one_step_ahead_a_latent_autoregression_has_a_variance_of_one():
    y = _latent(np.random.default_rng(1), 20_000)
    lags = np.column_stack([y[20 - k : y.size - k] for k in range(1, 20)])
    beta, *_ = np.linalg.lstsq(lags, y[20:], rcond=None)
    assert (y[20:] - lags @ beta).var() == pytest.approx(1.0, abs=0.03)


def test_who_was_there_lately_is_likelier_to_be_there_next():
    cell = Cell("spells", "normal", 41, 0.4)
    low, high = np.full(41, -0.5), np.full(41, 0.9)
    assert _filtered(cell, low) < 0.35 < 0.65 < _filtered(cell, high)
