"""Intervals that hold at every look: asymptotic confidence sequences.

I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy, A. Ramdas, Time-uniform central limit theory and asymptotic
confidence sequences, Annals of Statistics 52(6), 2024 (arXiv:2103.06476), equations 9, 155 and 161 of its version 7.
``gbstats`` implements the same, but only with numpy 1 and pandas 1; tests compare with numbers that it gave.
"""

from math import exp, log, sqrt


def find_rho(alpha: float, tuning: float) -> float:
    """The mixture for which intervals are narrowest at ``tuning`` units."""
    return sqrt((-2 * log(alpha) + log(-2 * log(alpha) + 1)) / tuning)


def find_factor(units: int, alpha: float, tuning: float) -> float:
    """By how many standard errors an interval reaches to either side, after this many units."""
    spread = units * find_rho(alpha, tuning) ** 2
    return sqrt(2 * (spread + 1) / spread * log(sqrt(spread + 1) / alpha))


def find_p(statistic: float, units: int, alpha: float, tuning: float) -> float:
    """Of a difference of so many standard errors. At most ``alpha`` if and only if the interval excludes 0."""
    spread = units * find_rho(alpha, tuning) ** 2
    return min(1.0, exp(-(statistic**2) * spread / (2 * (spread + 1)) + log(spread + 1) / 2))
