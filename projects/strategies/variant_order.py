"""The sort order of variants. With the weights, it decides which user gets which variant."""

import unicodedata

_BEFORE_LETTERS = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
_RANKS = {ord(character): rank for rank, character in enumerate(_BEFORE_LETTERS)}


def make_variant_sort_key(name: str) -> tuple[str, str, str, str]:
    """A key that sorts names alphabetically: punctuation, digits, letters; ``alpha`` before ``Beta``.

    Compares names without case and accents first. Among equal names, those without accents come first, then those in
    lower case. Letters of other scripts and symbols follow ``z`` by code point.
    """
    decomposed = name if name.isascii() else unicodedata.normalize("NFD", name)
    marks = "" if name.isascii() else "".join(filter(unicodedata.combining, decomposed))
    base = "".join(c for c in decomposed if not unicodedata.combining(c)) if marks else decomposed
    return base.lower().translate(_RANKS), marks, base.swapcase(), name
