"""Pages that people finish: short sentences and pages, plain words, links that lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]
    if not {"generated", "_build"} & set(page.relative_to(ROOT).parts)
)
SENTENCE = 20
"""Words of a sentence, on average over a page."""
WORDS = {
    "README.md": 1200,
    "docs/mathematics/*.md": 2000,
    "docs/examples/*.md": 600,
    **dict.fromkeys(
        [
            "docs/calibration.md",
            "docs/noise.md",
            "docs/black_box.md",
            "docs/models.md",
            "docs/property_audits.md",
            "docs/statistical_privacy.md",
            "docs/benchmarks.md",
            "docs/guide/*.md",
        ],
        1000,
    ),
}
"""Words of a page at most; an appendix has none."""
FORBIDDEN = re.compile(
    r"\b(whoever|at hand|holds? the truth|told|referred|somebody|he|him|his|laws?)\b", re.IGNORECASE
)
ANONYMOUS = re.compile(r"\b(?:is|are|be|stays?|remains?|becomes?) (anonymous)\b", re.IGNORECASE)
"""A claim that no audit makes; to deny it, or to quote it, is no claim."""
ALLOWED: dict[tuple[str, str], str] = {}
"""What a page may break (its path, and sentences, words or terms), and why; to become empty."""
FORMULA = "§"
END = r"(?<=[.!?])[\"”’)]*\s+(?=[\"“(]*(?:[A-Z0-9§]|delta\b|epsilon\b))"
FENCED = r"^( *)(```+).*?^\1\2 *$"
OVER = re.DOTALL | re.MULTILINE
SHORT = re.compile(r"\b(?:e\.g|i\.e|et al|cf|vs|Fig|No|pp|p)\.$")


def blocks(text: str) -> list[str]:
    """Return the paragraphs and items of a page as prose, without code, tables and formulas."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^```\{(?:note|tip|warning|glossary)\}$(.*?)^``` *$", r"\1", text, flags=OVER)
    text = re.sub(FENCED, "\n", text, flags=OVER)
    text = text.replace(r"\$", "").replace("∎", "")
    text = re.sub(r"\$\$.*?\$\$[.,]?", "\n\n", text, flags=re.DOTALL)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)(\{[^}]*\})?", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]+`", "Code", text)
    text = re.sub(r"\$[^$]+\$", FORMULA, text)
    found, inside = [""], False  # inside an item further lines are indented
    for line in text.split("\n"):
        stripped = line.strip()
        if not stripped or re.match(r"\||#|:{3,}|:\w+:|\(\S+\)=|-{3,}$", stripped):
            found.append("")
            inside = inside and not stripped.startswith("#")
            continue
        if re.match(r"(?:[-*]|\d+\.|:) ", stripped):
            found.append(re.sub(r"^(?:[-*]|\d+\.|:) ", "", stripped))
            inside = True
            continue
        if line.startswith("    ") and not inside and not found[-1]:
            continue  # code
        inside = inside and (line.startswith(" ") or bool(found[-1]))
        found[-1] += f" {stripped}"
    return [block.strip() for block in found if block.strip()]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_](?:[\w'’.,:/@%+-]*\w)?", text)


def sentences(text: str) -> list[list[str]]:
    """Return the words of every sentence; labels of one or two words are none."""
    found = []
    for block in blocks(text):
        sentence = ""
        plain = re.sub(r"[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}", "", block)
        for piece in re.split(END, plain):
            sentence += f" {piece}"
            if not SHORT.search(piece):
                found.append(words(sentence))
                sentence = ""
        found.append(words(sentence))
    return [sentence for sentence in found if len(sentence) > 2]


def measure(page: str) -> tuple[int, float, list[str]]:
    """Return the words of a page, those of a sentence on average, and the forbidden terms."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = sentences(text)
    total = sum(len(words(block)) for block in blocks(text))
    shown = re.sub(r"`[^`]+`", "", re.sub(FENCED, "", text, flags=OVER))
    terms = FORBIDDEN.findall(shown)
    for part in re.split(r"(?<=[.!?])\s|\|", shown):
        if not re.search(r"\bnot\b|[“\"?]", part):
            terms += ANONYMOUS.findall(part)
    average = sum(map(len, found)) / len(found) if found else 0.0
    return total, average, [term.lower() for term in terms]


def limit(page: str) -> int | None:
    exact = WORDS.get(page)
    if exact is not None or page.count("/") < 2:
        return exact
    return WORDS.get(f"{page.rpartition('/')[0]}/*.md")


def holds(page: str, kind: str, good: bool, message: str) -> None:
    if (page, kind) in ALLOWED:
        assert not good, f"{page} may leave the list: its {kind} are right"
        return
    assert good, message


@pytest.mark.parametrize("page", PAGES)
def test_sentences_are_short(page):
    _, average, _ = measure(page)
    message = f"{page}: {average:.1f} words in a sentence on average"
    holds(page, "sentences", average <= SENTENCE, message)


@pytest.mark.parametrize("page", [page for page in PAGES if limit(page)])
def test_a_page_can_be_read_to_its_end(page):
    total, _, _ = measure(page)
    holds(page, "words", total <= limit(page), f"{page}: {total} words, at most {limit(page)}")


@pytest.mark.parametrize("page", PAGES)
def test_words_are_plain(page):
    _, _, terms = measure(page)
    holds(page, "terms", not terms, f"{page}: {sorted(set(terms))}")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page: of its headings, and those set by hand."""
    text = re.sub(FENCED, "\n", text, flags=OVER)
    names = set(re.findall(r"^\((\S+)\)=$", text, re.MULTILINE))
    for heading in re.findall(r"^#{1,3} (.*)$", text, re.MULTILINE):
        bare = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        names.add(bare.replace(" ", "-"))
    return names


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(FENCED, "\n", text, flags=OVER)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert "generated" in file.parts or file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text(encoding="utf-8")), target


def test_the_measure_counts_prose_alone():
    text = (
        "---\nkernel: python\n---\n\n# Title\n\nFour words stand here. And $x = 1$ three here "
        "again:\n\n    code = 1\n\n```python\nmore = 2\n```\n\n| a | table |\n|---|---|\n\n"
        "- An item of `this` list,\n  on two lines.\n\n$$y = 2$$\n\nSee e.g. Section 2.5 there.\n"
    )
    assert [len(found) for found in sentences(text)] == [4, 4, 8, 5]


def test_the_list_of_exceptions_names_pages_and_reasons():
    for (page, kind), reason in ALLOWED.items():
        assert page in PAGES
        assert kind in {"sentences", "words", "terms"}
        assert reason
