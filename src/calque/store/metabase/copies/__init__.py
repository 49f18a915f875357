"""Copies and moves: Begin, Finish, references to ancestors, promotion."""
