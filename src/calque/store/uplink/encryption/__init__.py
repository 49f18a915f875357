"""What the satellite never sees: names, keys and contents in plain."""
