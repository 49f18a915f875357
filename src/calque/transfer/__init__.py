"""Trees: copied, synchronised, compared."""
