"""Objects and their segments: one operation a file."""
