"""``python -m calque.cli``: the command without an installed script."""

from calque.cli.main import run

run()
