"""The page on errors in the papers: every counterexample runs, and shows the numbers told."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "mathematics" / "errors.md"
# What each section shows: as printed in the paper, and what is true.
SHOWN = {
    "The Hausdorff distance does not bound the log ratio": ("0.2000", "1.2018"),
    "Total risk is not underestimated by its product": ("nested 0.1", "product 0.41"),
    "Noise for a Gaussian kernel that does not exist": ("Gaussian kernel",),
    "A ceiling that must be a floor": ("ceiling 0.01182", "truth 0.02256"),
    "An index that stops at the mean": ("printed -0.0373", "truth 0.000350"),
    "A missing bracket": ("printed -0.105", "truth 0.00946"),
    "A rate above one": ("epsilon 0.4226, bound 0.28834", "epsilon 0.0208, bound 0.01153"),
    "A missing sign": ("0.0804719",),
    "A width that is a factor": ("wc + c: 0.80", "w + c: 0.41"),
}


def cells(text):
    return re.findall(r"```\{code-cell\} python\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture(scope="module")
def printed():
    """Run the page from top to bottom and return what each section with code prints."""
    start, *parts = re.split(r"^## (.*)\n", PAGE.read_text(), flags=re.MULTILINE)
    scope: dict[str, object] = {}
    exec("\n".join(cells(start)), scope)
    found = {}
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        code = "\n".join(cells(text))
        if code:
            assert "assert " in code, title
            with redirect_stdout(io.StringIO()) as out:
                exec(code, scope)
            found[title] = out.getvalue()
    return found


def test_every_section_with_code_is_known(printed):
    assert list(printed) == list(SHOWN)


@pytest.mark.parametrize("title", SHOWN)
def test_an_error_is_shown_with_its_numbers(title, printed):
    for number in SHOWN[title]:
        assert number in printed[title]
