"""Configuration of Sphinx for the site; `scripts/site.py` puts this file beside the pages."""

import re

from pygments.lexers.shell import BashLexer

import minga

project = "minga"
author = "The minga authors"
copyright = "The minga authors, Apache-2.0"
version = release = minga.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure", "ref.python", "toc.not_included"]

smartquotes = False  # options such as --set keep their hyphens
default_role = "code"
autodoc_default_options = {"members": True, "inherited-members": False}
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_custom_sections = [("Settings", "params_style")]
add_module_names = False
python_maximum_signature_line_length = 88
maximum_signature_line_length = 88

html_theme = "furo"
html_title = "minga"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["keys.js"]
pygments_style = "friendly"
pygments_dark_style = "monokai"


def _keep_bars(app, what, name, obj, options, lines):
    """Escape bars, so that absolute values such as |x| are not read as substitutions."""
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]*`)", line)
        lines[number] = "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


def setup(app):
    """Connect the handler of docstrings, and colour console blocks as shell: they have no prompt before commands."""
    app.connect("autodoc-process-docstring", _keep_bars)
    app.add_lexer("console", BashLexer)
