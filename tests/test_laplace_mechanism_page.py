"""The page on the Adult census: its code prints what stands below it, on the real data."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "laplace_mechanism.md"
NUMBER = r"\d[\d,]*(?:\.\d+)?"


def numbers(text):
    return np.array([float(found.replace(",", "")) for found in re.findall(NUMBER, text)])


@pytest.mark.full
def test_the_page_prints_what_it_shows(data_dir, monkeypatch, capsys):
    monkeypatch.chdir(data_dir)
    cells = re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    scope: dict[str, object] = {}
    for kind, text in cells:
        if kind == "python":
            exec(text, scope)
            continue
        printed = capsys.readouterr().out
        assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", text)
        # Fused products differ between processors, and with them the draws.
        np.testing.assert_allclose(numbers(printed), numbers(text), atol=0.006)
    assert scope["older"].size == 14_237
    assert {kind for kind, _ in cells} == {"python", "text"}


def test_the_audits_hold_the_truth(data_dir):
    """What the page states is true of the mechanism, and its bands hold it."""
    shown = re.findall(
        r"```text\n(local epsilon.*?|true answer.*?)```", PAGE.read_text(), re.DOTALL
    )
    assert len(shown) == 2
    for text in shown:
        low, high = numbers(re.search(r"local epsilon: (.*)", text).group(1))
        assert low <= 0.1 <= high
        for epsilon, low, high in re.findall(
            rf"delta\(({NUMBER})\): ({NUMBER}) to ({NUMBER})", text
        ):
            truth = max(0.0, -np.expm1((float(epsilon) - 0.1) / 2))
            assert float(low) <= truth + 5e-5
            assert truth <= float(high)
