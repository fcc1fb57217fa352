"""Calls of the compiled library, whose sources are in ``native/``."""
