"""Copies and moves: Begin, Finish, the rules of both, and operations that were finished."""
