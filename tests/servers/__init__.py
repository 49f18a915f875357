"""For tests: real servers started from wheels, and strict fakes where none exists."""
