"""Copies and moves: Begin, Finish, the rules of both, and operations that were finished.

What becomes of copies when their original goes is ``streams/promotion.py``.
"""
