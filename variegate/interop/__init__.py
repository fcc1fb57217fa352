"""Variegate inside other libraries' ways to load data: torch's ``DataLoader``, Keras' ``fit``."""
