"""The documentation site: `make docs`."""

from __future__ import annotations

import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import easyllp  # the installed wheel, whose docstrings become the Python reference

project = "easyllp"
author = "the easyllp authors"
project_copyright = author
release = version = easyllp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "reference",
]
exclude_patterns = ["_ext", "gallery/output", "reference/generated/commands.md", "reference/generated/toctree.md"]
default_role = "code"  # of docstrings, whose backquotes are code
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 4
# Links inside the site are checked: a target that does not exist is an error. What autodoc finds in signatures
# and numpydoc in type descriptions are words, not links.
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]

# Adapters of other libraries are documented without installing these.
autodoc_mock_imports = ["torch", "xgboost", "lightgbm"]
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False


def public_signature(_app, _what, _name, _object, _options, signature, annotation):
    """A signature without private fields, such as those of a dataclass."""
    return (re.sub(r"(, )?\b_\w+=('[^']*'|[^,()]*)", "", signature), annotation) if signature else None


def skip_tuple_fields(_app, _what, _name, member, skip, _options):
    """Fields of a named tuple are in its docstring: without this each is shown as an alias for a number."""
    return True if type(member).__name__ == "_tuplegetter" else None


def setup(app):
    """Leave private parts out of the Python reference."""
    app.connect("autodoc-process-signature", public_signature)
    app.connect("autodoc-skip-member", skip_tuple_fields)


html_theme = "furo"
html_title = "easyllp"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "friendly"
pygments_dark_style = "native"
