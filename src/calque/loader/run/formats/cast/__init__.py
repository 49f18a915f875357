"""Strict casts: a value arrives in its column unchanged, or its cell is refused with a reason."""
