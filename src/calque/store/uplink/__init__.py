"""The client of the store: encryption, segments, pieces and the object verbs."""
