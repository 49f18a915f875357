"""Tests of what stands in the folder of the same name."""
