"""Generated message classes; see ``generate.py``."""
