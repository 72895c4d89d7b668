"""What the report says first: against whom a claim is, or that there is none."""

import warnings

import numpy as np
import pytest

import edp_bayes as edp


def page_of(tmp_path, adversary):
    """Return the text of the report on yearly answers that hang on to the year before."""
    rng = np.random.default_rng(6)
    level = np.zeros(60)
    for year in range(1, 60):
        level[year] = 0.8 * level[year - 1] + rng.normal()
    part = rng.gamma(2.0, 0.1, (60, 4))
    data = edp.Responses.from_arrays(
        20.0 + level + part.sum(axis=1), contribution=part, additive=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        audit = edp.audit(
            data,
            epsilon=[0.1, 0.5],
            model=edp.SmoothedBootstrap(),
            adversary=adversary,
            draws=100,
            random_seed=1,
            progressbar=False,
        )
    path = audit.report(tmp_path / "report.html")
    return " ".join(path.read_text(encoding="utf-8").split())


@pytest.mark.full
def test_a_claim_names_the_adversary(tmp_path):
    page = page_of(tmp_path, edp.Adversary(past=2, insiders=[3]))
    seen = (
        "a person who has seen the last 2 releases, knows when each individual was last there and "
        "learns from an insider"
    )
    assert f"Against {seen}" in page
    assert "the largest risk of any of 3 individuals is" in page
    assert "contributed is known, and subtracted from every answer here." in page
    assert "In plain words" in page
    assert "They are no claim" not in page


@pytest.mark.full
def test_nothing_is_claimed_where_nothing_is_established(tmp_path):
    page = page_of(tmp_path, None)
    assert "Not established. The databases are not independent" in page
    assert "They are no claim." in page
    assert "In plain words" not in page
    assert "with 95% probability; its median is" not in page
