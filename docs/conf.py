"""Configuration of the documentation site. contributing/documentation.md explains the build."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "docs" / "_extensions")]

project = "aimle"
author = "The aimle developers"
copyright = "The aimle developers"
version = release = re.search(
    r"project\(aimle VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()
)[1]

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "breathe",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "cpp_header",
    "light_and_dark",
    "plain_docstrings",
    "repository_links",
]
exclude_patterns = ["_extensions", "**/.ipynb_checkpoints"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = [
    "duplicate_declaration.cpp",  # the namespace, once for each header
]

nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "remove"

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "exclude-members": "extra_repr",  # PyTorch's
}
autodoc_typehints = "none"
napoleon_numpy_docstring = False
add_module_names = False

breathe_projects = {"aimle": str(ROOT / "build" / "docs" / "doxygen" / "xml")}
breathe_default_project = "aimle"
breathe_show_include = False
cpp_index_common_prefix = ["aimle::"]

html_theme = "furo"
html_title = f"aimle {version}"
html_static_path = ["_static"]
html_css_files = ["aimle.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
