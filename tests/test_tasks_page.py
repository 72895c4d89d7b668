"""The index by task: what it names exists, and no call of the package or command is missing."""

import inspect
import re

import pytest
from typer.main import get_command

import edp_bayes as edp
from edp_bayes.cli.app import app
from tests.test_see_also import ROOT, links

PAGE = ROOT / "docs" / "tasks.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("| ").split(" | ")]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith("| I want to")
]
NAMES = re.findall(r"\{py:obj\}`([^`<]+) <([\w.]+)>`", TEXT)


@pytest.mark.parametrize(("shown", "name"), NAMES)
def test_a_name_leads_to_the_reference(shown, name):
    assert links.described_at(name, "edp_bayes")
    assert name.endswith(f".{shown}")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_task_has_a_call_and_a_page(row):
    _, call, page = row
    assert "`" in call
    assert re.search(r"\[[^\]]+\]\([\w/]+\.(?:md|rst)\)", page)


def test_every_function_of_the_package_is_there():
    named = {id(links.value_of(name)) for _, name in NAMES}
    functions = [getattr(edp, name) for name in edp.__all__]
    missing = [f.__name__ for f in functions if inspect.isfunction(f) and id(f) not in named]
    assert not missing


def test_every_command_is_there():
    commands = get_command(app).commands
    missing = [name for name in commands if f"`edp-bayes {name}" not in TEXT]
    assert not missing
