"""What holds many numbers shows itself in a line, by their shape."""

import re

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.distributions.multivariate import NormalMixture
from edp_bayes.statistical_privacy import PropertyQuery
from tests.models.test_to_mixture import posterior, world

SHARES = np.full((50, 2), 0.5)


def coupled():
    return edp.FiniteMixture().to_mixture(posterior(world()), world())


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (lambda: edp.Mixture(SHARES, 0.0, 1.0), "weights=<50 x 2>, locations=<50 x 2>"),
        (lambda: edp.Mixture([0.5, 0.5], 0.0, 1.0), r"weights=array\(\[0.5, 0.5\]\)"),
        (lambda: NormalMixture(SHARES, SHARES[..., None], np.ones((50, 2, 1, 1))), "<50 x 2 x 1>"),
        (lambda: PropertyQuery(100, 0.1).privacy_loss(direction="minus"), "masses=<99>, infinite="),
        (lambda: LatticeNoise(1.0, np.full(51, 1 / 51)), "weights=<51>"),
        (coupled, r"CoupledMixture\(mixture=Mixture\(weights=<2 x 25 x 2>.*responses=Responses"),
    ],
)
def test_it_is_one_line(made, shown):
    text = repr(made())
    assert "\n" not in text
    assert len(text) < 400
    assert re.search(shown, text)
