"""The page on models: its code runs, and says what stands there."""

import re
from pathlib import Path

import numpy as np
import pytest

from edp_bayes import EdpBayesWarning

PAGE = Path(__file__).parents[2] / "docs" / "models" / "your_own.md"
SEVERAL = PAGE.with_name("several_queries.md")


@pytest.mark.full
def test_a_density_of_your_own_runs():
    own = PAGE.read_text(encoding="utf-8").partition("## A density of your own")[2]
    (block,) = re.findall(r"```python\n(.*?)```", own.partition("\n## ")[0], flags=re.S)
    names: dict = {}
    with pytest.warns(EdpBayesWarning, match="The largest contribution"):
        exec(compile(block, str(PAGE), "exec"), names)
    found = names["audit"].tree["parameters"]
    # Busy weeks were 6 more, and three in ten.
    assert (
        abs(float((found["locations"][..., 1] - found["locations"][..., 0]).median()) - 6.0) < 1.0
    )
    assert abs(float(found["share"].median()) - names["busy"].mean()) < 0.1


@pytest.mark.full
def test_the_worked_examples_run():
    own = PAGE.read_text(encoding="utf-8").partition("## Contributions of your own")[2]
    blocks = re.findall(r"```python\n(.*?)```", own.partition("\n## ")[0], flags=re.S)
    assert len(blocks) == 2
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    home, grown = names["audit"], names["grown"]
    presence = home.tree["parameters"]["presence"].to_numpy()
    np.testing.assert_array_equal(presence[..., 0], presence[..., 1])
    # those of one household have one risk; whose amounts grow to 1.6 have the largest
    risk = home.individual_delta.mean(("chain", "draw")).sortby("individual")
    np.testing.assert_allclose(risk[0], risk[1], atol=0.05)
    assert grown.individual_delta.mean(("chain", "draw")).isel(epsilon=0).idxmax() == 2
    assert 1.4 < float(grown.tree["parameters"]["next_amount"].mean(("chain", "draw"))[2]) < 1.8


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The effect of Potentials:UserWarning")
def test_the_model_of_several_queries_predicts():
    (block,) = re.findall(r"```python\n(.*?)```", SEVERAL.read_text(encoding="utf-8"), flags=re.S)
    names: dict = {}
    exec(compile(block, str(SEVERAL), "exec"), names)
    predicted = names["found"]["predictions"]["response"].isel(database=0)
    observed = names["joined"].response
    error = observed.std(axis=0) / np.sqrt(len(observed))
    assert (np.abs(predicted.mean(("chain", "draw")) - observed.mean(axis=0)) < 4.0 * error).all()
    np.testing.assert_allclose(predicted.std(("chain", "draw")), observed.std(axis=0), rtol=0.3)
    assert names["draws"]["log_likelihood"]["response"].dims == ("chain", "draw", "database")
