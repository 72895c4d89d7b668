"""The examples by field: their code prints what stands below it, and each has its picture."""

import re
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.stem for path in (DOCS / "examples").glob("*.md") if path.stem != "index")
QUICK = {"black_box"}
NEEDS = {"comparison": ("dp_accounting", "opendp")}
NUMBER = r"(?<![\w.])\d[\d,]*(?:\.\d+)?"
DRAWN = {"rtol": 0.15, "atol": 0.02}
"""Limits of few draws differ by about a tenth from seed to seed, as those of cells do."""


def text_of(page: str) -> str:
    return (DOCS / "examples" / f"{page}.md").read_text(encoding="utf-8")


def same(printed: str, shown: str) -> None:
    """Compare words and whole numbers exactly, and decimals to what another processor may draw."""
    spaces = r"\s+"
    printed, shown = (re.sub(spaces, " ", text).strip() for text in (printed, shown))
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", shown)
    for found, right in zip(re.findall(NUMBER, printed), re.findall(NUMBER, shown), strict=True):
        if "." in right:
            np.testing.assert_allclose(float(found), float(right), **DRAWN)
        else:
            assert found == right


@pytest.mark.parametrize(
    "page",
    [page if page in QUICK else pytest.param(page, marks=pytest.mark.full) for page in PAGES],
)
def test_the_page_prints_what_it_shows(page, capsys):
    for module in NEEDS.get(page, ()):
        pytest.importorskip(module)
    cells = re.findall(r"```(python|text)\n(.*?)```", text_of(page), flags=re.DOTALL)
    scope: dict[str, object] = {}
    capsys.readouterr()
    compared = 0
    for kind, text in cells:
        if kind == "python":
            exec(text, scope)
        else:
            same(capsys.readouterr().out, text)
            compared += 1
    assert compared
    assert capsys.readouterr().out == ""  # nothing is printed that the page does not show


@pytest.mark.parametrize("page", PAGES)
def test_each_page_has_its_picture_and_its_limits(page):
    text = text_of(page)
    assert f"](../images/example_{page}.png)" in text
    assert (DOCS / "images" / f"example_{page}.png").is_file()
    assert f"def {page}(" in (DOCS / "images" / "examples.py").read_text(encoding="utf-8")
    assert "## What may not be claimed" in text
    assert "simulated" in text  # whose data they are is said
    assert text.index("**") < text.index("## ")  # the result comes first


def test_the_code_of_pages_reads_no_file():
    for page in PAGES:
        code = "".join(re.findall(r"```python\n(.*?)```", text_of(page), flags=re.DOTALL))
        assert not re.search(r"\bopen\(|read_csv|read_parquet|np\.load", code), page


def test_the_index_names_every_page():
    index = text_of("index")
    listed = re.findall(r"^```\{toctree\}\n(.*?)^```", index, flags=re.MULTILINE | re.DOTALL)
    assert set(PAGES) == {line for line in listed[0].splitlines() if line and line[0] != ":"}
    assert all(f"]({page}.md)" in index for page in PAGES)


def test_a_changed_word_or_number_is_found():
    same("a limit of  0.20 in 5 weeks\n", "a limit of 0.21 in 5 weeks")
    for other in ("a limit of 0.40 in 5 weeks", "a limit of 0.20 in 6 weeks", "no limit"):
        with pytest.raises(AssertionError):
            same(other, "a limit of 0.20 in 5 weeks")
