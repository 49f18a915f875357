"""HTTP as the three clouds share it: one connection, a pool of them, exchanges, redaction."""
