"""Drivers own queue, order, commit and abort of a copy; services only supply verbs."""
