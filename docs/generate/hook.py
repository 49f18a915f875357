"""What mkdocs calls while it builds: pages that are made from the code join those that are written.

They are in no folder of the repository, so that none of them can be out of date.
"""

from __future__ import annotations

from command_reference import render_commands
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from notebook_page import FOLDER, render_notebook
from python_reference import render_python
from settings_reference import render_settings

PAGES = {
    "reference/commands.md": render_commands,
    "reference/settings.md": render_settings,
    "reference/python.md": render_python,
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for name, render in PAGES.items():
        files.append(File.generated(config, name, content=render()))
    for path in sorted(FOLDER.glob("*.ipynb")):
        name = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, name, content=render_notebook(path)))
    return files
