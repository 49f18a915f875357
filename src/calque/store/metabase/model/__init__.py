"""What the tables hold, and the values and checks of every operation."""
