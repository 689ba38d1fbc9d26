"""Fisher's exact test, odds ratios, and Benjamini and Hochberg's correction, without a library.

R. A. Fisher, The Logic of Inductive Inference (1935); Y. Benjamini and Y. Hochberg, Controlling the False Discovery
Rate (1995). Tests compare the results with exact fractions.
"""

from collections.abc import Iterable, Sequence
from math import exp, lgamma, log, log1p, log10
from typing import NamedTuple


class Split(NamedTuple):
    """How many of the affected and of the others have something."""

    affected: int
    of_affected: int
    others: int
    of_others: int

    @property
    def odds_ratio(self) -> float:
        """With half a user added to each cell (Haldane and Anscombe), so that it is finite."""
        a, c = self.affected + 0.5, self.others + 0.5
        b, d = self.of_affected - self.affected + 0.5, self.of_others - self.others + 0.5
        return a * d / (b * c)

    @property
    def p(self) -> float:
        """The probability of at least as many among the affected, if it had nothing to do with them (one-sided)."""
        return exp(self.log_p)

    @property
    def log_p(self) -> float:
        """Its natural logarithm: the probability may be too small for a number."""
        having, everybody = self.affected + self.others, self.of_affected + self.of_others
        lacking = everybody - having
        least, most = max(0, having - self.of_others), min(having, self.of_affected)
        if self.affected <= least:
            return 0.0

        def log_term(count: int) -> float:
            ways = _log_choose(having, count) + _log_choose(lacking, self.of_affected - count)
            return ways - _log_choose(everybody, self.of_affected)

        # Terms decrease away from the mean, so that the sum of the farther tail needs few.
        if self.affected * everybody > having * self.of_affected:
            factors = (
                (having - count)
                * (self.of_affected - count)
                / ((count + 1) * (lacking - self.of_affected + count + 1))
                for count in range(self.affected, most)
            )
            return min(0.0, log_term(self.affected) + log(_sum_terms(factors)))
        factors = (
            count
            * (lacking - self.of_affected + count)
            / ((having - count + 1) * (self.of_affected - count + 1))
            for count in range(self.affected - 1, least, -1)
        )
        return log1p(-min(1 - 1e-16, exp(log_term(self.affected - 1)) * _sum_terms(factors)))


def _sum_terms(factors: Iterable[float]) -> float:
    """The sum of 1 and the products of the first factors."""
    total = term = 1.0
    for factor in factors:
        term *= factor
        total += term
        if term < total * 1e-17:
            break
    return total


def _log_choose(total: int, chosen: int) -> float:
    return lgamma(total + 1) - lgamma(chosen + 1) - lgamma(total - chosen + 1)


def adjust(ps: Sequence[float]) -> list[float]:
    """The smallest false discovery rate at which each of the tests counts, in their order."""
    adjusted, least = [0.0] * len(ps), 1.0
    for rank, place in sorted(enumerate(sorted(range(len(ps)), key=ps.__getitem__), 1), reverse=True):
        least = min(least, ps[place] * len(ps) / rank)
        adjusted[place] = least
    return adjusted


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_p(p: float) -> str:
    """A probability for people: a small one as a power of ten."""
    if p >= 0.001:
        return f"{p:.3f}"
    power = str(-int(log10(p)) if p else 300)
    return f"< 10⁻{power.translate(_RAISED)}"
