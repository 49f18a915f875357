"""Segments on their way between plain bytes and pieces on nodes."""
