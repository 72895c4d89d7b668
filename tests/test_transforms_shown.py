"""Pictures, reports and records say on which scale the response was modelled."""

import functools
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import EdpBayesWarning
from edp_bayes.report import write_report
from edp_bayes.responses.transforms import described

mpl.use("agg")

PAIR = (np.cbrt, lambda x: x**3)


@functools.cache
def audited(transform: Any, adversary: edp.Adversary | None = None) -> Any:
    rng = np.random.default_rng(5)
    y = np.exp(rng.normal(3.0, 0.5, 40))
    responses = edp.Responses.from_arrays(
        y, contribution=0.08 * y[:, None], query="sales", transform=transform
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        return edp.audit(
            responses,
            epsilon=[0.1, 0.4],
            draws=60,
            tune=100,
            chains=2,
            random_seed=2,
            progressbar=False,
            adversary=adversary,
        )


SCALES = [(None, "response of sales"), ("log", "log of response of sales"), (PAIR, "cbrt of")]


@pytest.mark.full
@pytest.mark.parametrize(("scale", "words"), SCALES, ids=["none", "log", "pair"])
def test_densities_name_the_scale(scale: Any, words: str) -> None:
    pc = audited(scale).plot_density(backend="matplotlib")
    figure = pc.viz.ds["figure"].item()
    assert any(ax.get_xlabel().startswith(words) for ax in figure.axes)
    plt.close(figure)


@pytest.mark.full
@pytest.mark.parametrize(("scale", "words"), SCALES, ids=["none", "log", "pair"])
def test_a_series_is_shown_on_the_scale_that_it_names(scale: Any, words: str) -> None:
    audit = audited(scale, edp.Adversary(past=1))
    pc = audit.plot_past(backend="matplotlib")
    figure = pc.viz.ds["figure"].item()
    series = next(ax for ax in figure.axes if ax.get_ylabel().startswith(words))
    shown = {"log": (0.5, 6.0), None: (5.0, 120.0), PAIR: (1.0, 5.0)}[scale]
    assert shown[0] < series.get_ylim()[0] + series.get_ylim()[1] < 2 * shown[1]
    plt.close(figure)


@pytest.mark.full
@pytest.mark.parametrize(
    ("scale", "words"),
    [(None, ""), ("log", "log of the answer"), (PAIR, "cbrt of the answer")],
    ids=["none", "log", "pair"],
)
def test_a_report_says_the_scale_under_its_figures_and_in_its_assumptions(
    scale: Any, words: str, tmp_path: Path
) -> None:
    audit = audited(scale, edp.Adversary(past=1))
    text = write_report(audit, tmp_path / "r.html", names=True).read_text()
    said = f"What is modelled is the {words}." in text
    assert said is bool(words)
    axis = words or "answer"
    assert text.count(f">{axis}</text>") == 2  # densities and their ratio
    assert f'<p class="axis-label">{axis}</p>' in text  # the series


def test_a_record_is_described_by_its_name() -> None:
    assert [described(text, "it") for text in ("", "logit", "pair arcsinh", "pair ")] == [
        "it",
        "logit of it",
        "arcsinh of it",
        "transform of it",
    ]
