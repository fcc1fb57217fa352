"""``variegate search`` at a size that a test can wait for."""

from __future__ import annotations

from pathlib import Path

from variegate.cli import main

SMALL = ("--model", "wrn-10-1", "--batch-size", 16, "--padding", 1, "--cutout", 0)


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def search(stripes: Path, out: Path, *more: object) -> int:
    population = ("--train", 32, "--population", 4, "--epochs", 4, "--interval", 2)
    training = (*population, *SMALL, "--devices", "cpu", "--repeats", 0)
    return run("search", stripes, "--method", "pba", "--out", out, *training, *more)


def search_in_three_steps(stripes: Path, out: Path, *more: object) -> int:
    return search(stripes, out, "--epochs", 3, "--interval", 1, *more)
