"""Texts in sentences: numbers of things, lists of names, and shortened texts."""

from collections.abc import Collection, Iterable, Sequence


def clip(text: str, limit: int = 60) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pluralize(number: int, one: str, many: str = "") -> str:
    """``1 flag``, ``2 flags``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def join_words(words: Iterable[str], *, comma: str = "", word: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``. ``comma``: the text before the "and" of three or more."""
    words = list(words)
    if len(words) < 3:
        return f" {word} ".join(words)
    return f"{', '.join(words[:-1])}{comma} {word} {words[-1]}"


def list_some(words: Sequence[str], limit: int) -> str:
    """``a, b and 3 more``."""
    listed = ", ".join(words[:limit])
    return f"{listed} and {len(words) - limit:,} more" if len(words) > limit else listed


def choices(names: Iterable[str], *, limit: int = 20) -> str:
    """The valid choices for an error message, in code-point order: ``development, production``."""
    return list_some(sorted(names), limit)


def name_flags(names: Collection[str]) -> str:
    """``1 flag: cart``, ``2 flags: cart, search``."""
    return f"{pluralize(len(names), 'flag')}: {choices(names)}"


def format_size(size: int) -> str:
    """``1.4 MB``, ``230 kB``, ``80 bytes``."""
    if size >= 1_000_000:
        return f"{size / 1_000_000:.1f} MB"
    return f"{size / 1_000:.0f} kB" if size >= 1_000 else f"{size} bytes"
