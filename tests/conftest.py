"""Fixtures shared by all tests."""

import os
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
BEGUN = time.monotonic()
REPORTED = 0.0  # CPU seconds of this process when it last reported a phase of a test, or began

# A process that compiles every module it imports starts 5 s later, and tests start many. Where no
# bytecode may lie beside the sources it lies here, for all of them and for the next run.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(ROOT / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# The same examples every time: a failure belongs to the change it is seen with.
# Workers of any Spark session have the packages of the tests.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what says how much of the tests marked full is run, and of which files first."""
    parser.addoption("--minutes", type=float, help="skip tests marked full once these are over")
    parser.addoption("--shuffle", default="", help="another order of files for every word")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked full, unless one is named or a marker is; order the files.

    Files of slow tests come first, so that no worker is left alone with one at the end.
    """
    global REPORTED
    REPORTED = processor_time()
    full = {item for item in items if item.get_closest_marker("full")}
    named = config.option.markexpr or config.option.keyword or any("::" in a for a in config.args)
    if full and not named:
        config.hook.pytest_deselected(items=list(full))
        items[:] = [item for item in items if item not in full]
    if word := config.getoption("--shuffle"):
        items.sort(key=lambda item: sha256(f"{word} {item.path.name}".encode()).digest())
    else:
        slow = {item.path for item in full}
        items.sort(key=lambda item: item.path not in slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked full where the minutes given are over."""
    minutes = item.config.getoption("--minutes")
    if minutes is None or not item.get_closest_marker("full"):
        return
    if time.monotonic() - BEGUN > 60.0 * minutes:
        pytest.skip(f"the {minutes:g} minutes for tests marked full are over")


def processor_time() -> float:
    """Return the CPU seconds of this process and of those it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note the CPU seconds since the last report: wall seconds tell little on a shared machine."""
    global REPORTED
    report = yield
    before, REPORTED = REPORTED, processor_time()
    report.processor = REPORTED - before
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the CPU seconds of all tests, of the ten slowest files and of the ten slowest tests."""
    files: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds = getattr(report, "processor", 0.0)  # a worker that crashed notes nothing
                files[report.nodeid.partition("::")[0]] += seconds
                tests[report.nodeid] += seconds
    terminalreporter.section(f"slowest files and tests, of {files.total():.0f} CPU seconds")
    for name, taken in (*files.most_common(10), *tests.most_common(10)):
        terminalreporter.write_line(f"{taken:7.1f} s  {name}")


@pytest.fixture
def quickly_compiled() -> Iterator[None]:
    """Compile PyTensor's functions for single evaluations, in a third of the time.

    The rewrites that keep densities finite far out are left out.
    """
    import pytensor

    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


@pytest.fixture(scope="session")
def found_data() -> Path | None:
    """Return the folder of real data, or None."""
    folder = Path(os.environ.get("EDP_BAYES_DATA", ROOT.parent / "shared" / "data"))
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def data_dir(found_data: Path | None) -> Path:
    """Return the folder of real data; skip where there is none."""
    if found_data is None:
        pytest.skip("no real data; set EDP_BAYES_DATA to their folder")
    return found_data
