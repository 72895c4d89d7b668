"""What the pages of the documentation share: length, words, links, a place in the contents."""

import re
from pathlib import Path

import pytest

import edp_bayes as edp
from tests.test_readability import FORBIDDEN

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Pages that are read from start to end.
READ = [
    DOCS / "index.md",
    DOCS / "citing.md",
    *(
        DOCS / "guide" / f"{name}.md"
        for name in (
            "index", "reading_a_report", "limitations", "which_tool", "faq", "regulators",
            "troubleshooting", "for_code_writers",
        )
    ),
]  # fmt: skip


def text_of(path):
    return path.read_text(encoding="utf-8")


def prose(path):
    """Return a page without its front matter and its code."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text_of(path), flags=re.S)
    text = re.sub(r"^(`{3,})(?!\{toctree).*?^\1$", "", text, flags=re.M | re.S)
    return re.sub(r"^ {4}.*$|`[^`\n]*`", "", text, flags=re.M)


def contents(path):
    """Return what the tables of contents of a page list."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", text_of(path), flags=re.M | re.S)
    return {line for tree in trees for line in tree.splitlines() if line and line[0] != ":"}


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_a_page_is_read_in_a_few_minutes(path):
    assert len(text_of(path).split()) <= 1000


def test_the_readme_is_short():
    assert len(text_of(ROOT / "README.md").split()) <= 1200


@pytest.mark.parametrize("path", [*READ, ROOT / "README.md"], ids=lambda path: path.stem)
def test_words_are_plain(path):
    # What the library prints keeps its words.
    text = re.sub(r"^>.*$", "", prose(path), flags=re.M)
    assert not FORBIDDEN.findall(text)


def test_every_page_stands_in_the_contents():
    assert {p.stem for p in DOCS.glob("*.md")} - {"index"} <= contents(DOCS / "index.md")
    guide = DOCS / "guide"
    assert {p.stem for p in guide.glob("*.md")} - {"index"} == contents(guide / "index.md")


def test_the_guide_has_a_question_for_every_page():
    index = text_of(DOCS / "guide" / "index.md")
    for path in (DOCS / "guide").glob("*.md"):
        assert path.stem == "index" or f"]({path.name})" in index, path.name


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_links_lead_to_files(path):
    for target in re.findall(r"\]\(([^)#\s]+)", text_of(path)):
        assert target.startswith("https://") or (path.parent / target).exists(), target


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_headings_that_links_name_are_there(path):
    for target, anchor in re.findall(r"\]\(([^)#\s]+\.md)#([^)\s]+)\)", text_of(path)):
        headings = re.findall(r"^#+ (.*)$", text_of(path.parent / target), flags=re.M)
        slugs = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
        assert anchor in slugs, (target, anchor)


@pytest.mark.parametrize("path", [*READ, DOCS / "llms.txt"], ids=lambda path: path.stem)
def test_names_of_the_library_exist(path):
    for name in set(re.findall(r"\bedp\.([A-Za-z_][\w.]*[A-Za-z])", text_of(path))):
        found = edp
        for part in name.split("."):
            found = getattr(found, part)
        assert found is not None


def test_the_verdict_of_the_first_page_is_that_of_the_readme():
    quoted = re.findall(r"^> (.*)$", text_of(DOCS / "index.md"), flags=re.M)
    assert " ".join(quoted) in text_of(ROOT / "README.md")


def test_links_for_machines_lead_to_pages():
    for target in re.findall(r"\]\(([^)]+)\.html\)", text_of(DOCS / "llms.txt")):
        assert target.startswith("generated/") or (DOCS / f"{target}.md").exists(), target
    assert 'html_extra_path = ["llms.txt"]' in text_of(DOCS / "conf.py")


def test_the_citation_names_version_and_papers():
    page, citation = text_of(DOCS / "citing.md"), text_of(ROOT / "CITATION.cff")
    assert f"Version {re.search(r'^version: (.*)$', citation, flags=re.M)[1]}." in page
    for name in re.findall(r"family-names: \"?([^\"\n]+)", citation):
        assert name in page
    for url in re.findall(r'url: "(.*)"', citation):
        assert url in page


def test_every_path_on_the_page_of_places_exists():
    text = (ROOT / "docs" / "contributing" / "where.md").read_text()
    paths = re.findall(r"`([a-z_/]+\.py)`", text)
    assert len(paths) >= 20
    assert [path for path in paths if not (ROOT / "edp_bayes" / path).is_file()] == []
