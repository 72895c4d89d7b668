"""What looks at the built pages as on a telephone finds a page that scrolls sideways."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "narrow"
PAGE = """<!doctype html><html><head><meta name="viewport" content="width=device-width"></head>
<body style="margin: 0"><p>Words</p><pre class="long" style="{style}">code</pre></body></html>"""


def look(folder):
    command = [sys.executable, str(SCRIPT), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def pages(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "narrow.html").write_text(PAGE.format(style="width: 390px"))
    inside = "width: 300px; overflow: auto"
    (tmp_path / "scrolls_inside.html").write_text(PAGE.format(style=inside))
    return tmp_path


@pytest.mark.full
@pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")),
    reason="no browser: apt-get install chromium chromium-driver",
)
def test_a_page_that_scrolls_sideways_is_named(pages):
    done = look(pages)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("2 pages, 0 wider than 390 pixels")
    (pages / "below" / "wide.html").write_text(PAGE.format(style="width: 600px"))
    done = look(pages)
    assert done.returncode == 1
    assert "below/wide.html: 600 pixels, by: PRE code" in done.stdout


def test_a_folder_without_pages_is_an_error(tmp_path):
    assert look(tmp_path).returncode == 1
