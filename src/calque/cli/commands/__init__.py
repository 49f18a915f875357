"""The commands of ``calque``, one module for each."""
