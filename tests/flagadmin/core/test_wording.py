import pytest

from flagadmin.core.errors import clip, join_words, list_some, name_flags


@pytest.mark.parametrize(
    ("words", "joined", "with_comma"),
    [
        ([], "", ""),
        (["a"], "a", "a"),
        (["a", "b"], "a and b", "a and b"),
        (["a", "b", "c"], "a, b and c", "a, b, and c"),
    ],
)
def test_words_are_joined(words: list[str], joined: str, with_comma: str) -> None:
    assert join_words(words) == joined
    assert join_words(words, comma=",") == with_comma


def test_the_first_of_many_are_listed_with_the_number_of_the_others() -> None:
    assert list_some(["b", "a"], 2) == "b, a"
    assert list_some([str(number) for number in range(1_202)], 2) == "0, 1 and 1,200 more"
    assert name_flags(["search", "cart"]) == "2 flags: cart, search"


def test_a_long_text_is_cut_to_the_limit() -> None:
    assert clip("x" * 60) == "x" * 60
    assert clip("x" * 61) == "x" * 59 + "…"
