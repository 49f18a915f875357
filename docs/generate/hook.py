"""What mkdocs calls while it builds: pages that are made from the code join those that are written.

They are in no folder of the repository, so that none of them can be out of date.
"""

from __future__ import annotations

from command_reference import render_commands
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from notebook_page import FOLDER, render_notebook
from python_reference import render_python
from settings_reference import render_settings

PAGES = {
    "reference/commands.md": render_commands,
    "reference/settings.md": render_settings,
    "reference/python.md": render_python,
}

BOOSTS = {"how-to/": 4, "quickstart/": 4, "decisions/": 0.01, "benchmarks": 0.01}
"""What pages weigh in a search, by how their addresses begin; others weigh one. A word in a title
weighs a thousand times one in the text, and titles of decisions have most of our words."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, render in PAGES.items():
        files.append(File.generated(config, name, content=render()))
    for path in sorted(FOLDER.glob("*.ipynb")):
        name = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, name, content=render_notebook(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let a search find how a thing is done before why it was made so, and how fast it is."""
    for start, boost in BOOSTS.items():
        if page.file.src_uri.startswith(start):
            page.meta["search"] = {"boost": boost}
    return markdown
