"""What is to be done: both sides listed in one order, joined, and each pair decided."""
