"""The order of variants: it decides, with the weights, which user gets which variant."""

import unicodedata

_BEFORE_LETTERS = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"
_RANKS = {ord(character): rank for rank, character in enumerate(_BEFORE_LETTERS)}


def variant_order(name: str) -> tuple[str, str, str, str]:
    """A key that sorts names as a person does: punctuation, digits, letters; ``alpha`` before ``Beta``.

    Letters compare without their case and accents first. Where that leaves names equal, the one without accents comes
    first, then the one in lower case. Letters of other scripts and symbols follow ``z`` by their code points.
    """
    decomposed = name if name.isascii() else unicodedata.normalize("NFD", name)
    marks = "" if name.isascii() else "".join(filter(unicodedata.combining, decomposed))
    base = "".join(c for c in decomposed if not unicodedata.combining(c)) if marks else decomposed
    return base.lower().translate(_RANKS), marks, base.swapcase(), name
