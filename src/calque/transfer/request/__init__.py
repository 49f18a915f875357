"""What is asked: trees, their places, options and patterns; nothing is opened for writing here."""
