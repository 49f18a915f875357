"""Operator and Copier: one set of verbs over every storage service."""
