"""Simulation-based calibration, small: ranks of the true delta are uniform."""

import warnings

import numpy as np
import pytest
from scipy import stats

from tests.calibration.sbc import CASES, DRAWS, ranks


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_ranks_are_uniform(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [ranks(case, 10_000 + repetition) for repetition in range(120)]
    transforms = (np.array([rank for rank in found if rank is not None]) + 0.5) / (DRAWS + 1)
    for column in transforms.T:
        assert stats.kstest(column, "uniform").pvalue > 1e-3
