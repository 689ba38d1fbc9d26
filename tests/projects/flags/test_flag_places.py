"""The comparisons of variants on a flag's page."""

from projects.flags.flag_document import MAX_VARIANTS, Split, _limit_split


def test_many_variants_are_compared_by_the_most_evaluated_ones_and_one_line_for_the_others() -> None:
    weights = {f"v{number:02}": 10.0 for number in range(MAX_VARIANTS + 5)}
    split = _limit_split(Split("production", weights, {"v24": 7, "gone": 3}))
    assert len(split.weights) == MAX_VARIANTS - 1 + 1  # "gone" has no weight; the others are one
    assert split.weights["6 others"] == 60
    assert split.measured == {"v24": 7, "gone": 3}
    assert sum(split.weights.values()) == sum(weights.values())


def test_few_variants_are_all_there() -> None:
    split = Split("production", dict.fromkeys("abc", 1.0), {})
    assert _limit_split(split) is split
