"""Compares answers with what the documentation shows of them."""

from typing import Any

LEFT_OUT = "…"


def contains(answer: Any, shown: Any) -> bool:
    """Whether an answer has all that is shown: members of objects, and items of lists in their order."""
    if shown == LEFT_OUT:
        return True
    if isinstance(shown, dict) and isinstance(answer, dict):
        return all(name in answer and contains(answer[name], value) for name, value in shown.items())
    if isinstance(shown, list) and isinstance(answer, list):
        rest = iter(answer)
        return all(any(contains(item, value) for item in rest) for value in shown) and bool(
            shown or not answer
        )
    return type(answer) is type(shown) and answer == shown
