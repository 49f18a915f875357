"""The commands of ``calque store``."""
