"""Fisher's exact test against exact fractions, and the correction against its definition."""

from fractions import Fraction
from math import comb
from random import Random

import pytest

from playground.outcomes.statistics import Split, adjust


def exact_p(split: Split) -> Fraction:
    having, everybody = split.affected + split.others, split.of_affected + split.of_others
    ways = comb(everybody, split.of_affected)
    most = min(having, split.of_affected)
    return sum(
        (
            Fraction(comb(having, count) * comb(everybody - having, split.of_affected - count), ways)
            for count in range(split.affected, most + 1)
        ),
        Fraction(0),
    )


def test_the_test_is_exact() -> None:
    random = Random(1)
    for _ in range(300):
        affected, others = random.randrange(0, 60), random.randrange(0, 200)
        split = Split(random.randint(0, affected), affected, random.randint(0, others), others)
        assert split.p == pytest.approx(float(exact_p(split)), rel=1e-9)


def test_a_published_table() -> None:
    # Fisher's tea: all four cups right of four, p = 1/70.
    assert Split(4, 4, 0, 4).p == pytest.approx(1 / 70, rel=1e-12)


def test_large_groups() -> None:
    strong = Split(194, 200, 300, 100_000)
    assert 0 <= strong.p < 1e-300
    assert strong.odds_ratio > 1_000
    for split in (
        Split(60, 200, 30_000, 100_000),
        Split(80, 200, 30_000, 100_000),
        Split(45, 200, 30_000, 100_000),
    ):
        assert split.p == pytest.approx(float(exact_p(split)), rel=1e-7)
    # Too small for a number, and still compared.
    assert (
        Split(90_000, 100_000, 10_000, 100_000).log_p
        < Split(80_000, 100_000, 10_000, 100_000).log_p
        < -10_000
    )
    assert Split(20_000, 100_000, 90_000, 100_000).p == 1
    assert Split(0, 0, 0, 0).p == 1


def test_the_correction_is_that_of_benjamini_and_hochberg() -> None:
    # The published example of 1995, table 1: four hypotheses are rejected at 0.05.
    ps = [
        0.0001,
        0.0004,
        0.0019,
        0.0095,
        0.0201,
        0.0278,
        0.0298,
        0.0344,
        0.0459,
        0.3240,
        0.4262,
        0.5719,
        0.6528,
        0.7590,
        1.0,
    ]
    shuffled = Random(2).sample(ps, len(ps))
    adjusted = adjust(shuffled)
    assert sorted(p for p, q in zip(shuffled, adjusted, strict=True) if q <= 0.05) == ps[:4]
    assert max(adjusted) == 1
    assert adjust([]) == []
