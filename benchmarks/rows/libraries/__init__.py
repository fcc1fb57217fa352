"""How each library spells the rows of ``benchmarks/rows/catalogue.py``."""
