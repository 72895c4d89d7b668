"""Sphinx configuration, in the conventions of the PyMC and ArviZ projects."""

import os
import sys
import warnings
from importlib.metadata import version as installed
from importlib.resources import files
from pathlib import Path

from edp_bayes.exceptions import EdpBayesWarning

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "edp_bayes"
author = "the edp_bayes contributors"
copyright = f"2026, {author}"
release = version = installed("edp_bayes")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "kernels",
    "layers",
    "links",
    "mathml",
    "notebook_pages",
    "used_in",
]
exclude_patterns = ["_build", "gallery", "generated/gallery/*.ipynb", "generated/gallery/*.py"]
templates_path = ["_templates"]
# Formulas need a font made for them, which not every reader has: STIX Two Math comes along.
html_static_path = ["_static", str(files("ziamath").joinpath("fonts"))]
html_css_files = ["edp_bayes.css"]
default_role = "py:obj"

# Pages: Markdown whose code runs when the documentation is built, once for each change.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "jupyter_cache")
nb_execution_timeout = 300
# Notebooks are shown as they were saved; tests run them.
nb_execution_excludepatterns = ["generated/notebooks/*"]
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_output_stderr = "remove"

# Reference: one page for each public name, made from its docstring.
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
add_module_names = False
toc_object_entries = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    # Each page of the reference shows the examples that use its name.
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("edp_bayes",),
    "filename_pattern": r"\.py$",
    "matplotlib_animations": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "copyfile_regex": r"",
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "write_computation_times": False,
}
# Warnings name files of the machine; pages print those that matter.
warnings.filterwarnings("ignore", category=EdpBayesWarning)

# Links to other projects' documentation need the network, and the build must not.
if os.environ.get("EDP_BAYES_DOCS_ONLINE"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "arviz": ("https://python.arviz.org/en/stable/", None),
        "numpy": ("https://numpy.org/doc/stable/", None),
        "pymc": ("https://www.pymc.io/projects/docs/en/stable/", None),
        "python": ("https://docs.python.org/3/", None),
        "scipy": ("https://docs.scipy.org/doc/scipy/", None),
        "xarray": ("https://docs.xarray.dev/en/stable/", None),
    }

html_theme = "sphinx_book_theme"
html_title = "edp_bayes"
html_extra_path = ["llms.txt"]
html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "show_toc_level": 2,
    "use_download_button": False,
    "navbar_persistent": [],
    # The whole tree in the margin of every page would take most of the time of a build.
    "collapse_navbar": True,
}
