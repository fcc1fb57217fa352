"""Executors: run a program on pixels. All run the same programs, bit for bit as ``tests/oracle`` defines them."""
