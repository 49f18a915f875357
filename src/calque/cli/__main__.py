"""``python -m calque.cli``: the command without an installed script."""

from calque.cli.entry import main

main()
