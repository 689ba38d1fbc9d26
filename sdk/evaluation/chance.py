"""Randomness that says whether it was used: what chance decided is not remembered."""

from random import random


class Chance:
    """A source of random numbers in [0, 1)."""

    __slots__ = ("was_used",)

    def __init__(self) -> None:
        self.was_used = False

    def __call__(self) -> float:
        self.was_used = True
        return random()
