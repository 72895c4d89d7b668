"""Draw page one of the demo's report, with the numbered marks that its page explains.

Run `uv run edp-bayes demo` and then `uv run python docs/images/report_page_one.py`, which takes
the audit of the demo from `edp-bayes-demo`, or from the file named. It needs Chromium.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import edp_bayes as edp

HERE = Path(__file__).parent
WIDTH = 1000
MARKED = (
    ".verdict",
    ".verdict + p",
    ".facts",
    ".risks tbody tr:nth-child(1)",
    ".risks tbody tr:nth-child(2)",
    ".risks tbody tr:nth-child(3)",
    ".scroll + p",
    ".scroll + p + p",
    ".signing",
)
"""What the marks 1 to 9 stand beside, on page one."""
MARKS = """
<style>
section:not(#page-one), footer, nav {{ display: none !important; }}
.mark {{ position: absolute; left: 2px; width: 30px; height: 30px; border-radius: 50%; color: white;
  background: #722f37; font: bold 16px/30px sans-serif; text-align: center; }}
</style>
<script>
{marked}.forEach((name, k) => {{
  const box = document.querySelector("#page-one " + name).getBoundingClientRect();
  const mark = document.createElement("div");
  mark.className = "mark";
  mark.textContent = k + 1;
  mark.style.top = box.top + window.scrollY + box.height / 2 - 15 + "px";
  document.body.append(mark);
}});
</script>
"""


def main(audit: Path) -> None:
    """Write the picture beside this file."""
    with TemporaryDirectory() as folder:
        page = edp.load(audit).report(Path(folder) / "report.html")
        html = Path(page).read_text(encoding="utf-8")
        free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
        marked = free.replace("</body>", f"{MARKS.format(marked=list(MARKED))}</body>")
        Path(page).write_text(marked, encoding="utf-8")
        browser = shutil.which("chromium") or "chromium"
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = f"--window-size={WIDTH},1486"
        picture = f"--screenshot={HERE / 'report_page_one.png'}"
        subprocess.run([browser, *flags, size, picture, Path(page).as_uri()], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "edp-bayes-demo/audit.nc"))
