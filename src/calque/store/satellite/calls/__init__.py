"""The calls, one function each: a message in, a message out; ``messages`` turns rows into them."""
