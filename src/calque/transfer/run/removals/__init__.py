"""What is taken away: deletes at a target, sources of a move, and acts that a kill left untold."""
