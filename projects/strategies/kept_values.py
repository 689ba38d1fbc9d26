"""Keeps long stored values out of forms, so that their pages stay small.

In place of the values, a form has a reference: the fingerprint of the stored values. Submitting the form looks the
values up again. If they have changed meanwhile, the reference finds nothing, and the form cannot be saved with it. A
button of the form replaces the reference with the values, to edit them.
"""

from collections.abc import Iterable
from typing import Any

from django.utils.html import escape

from flagadmin.core.edit_conflicts import hash_document

LONG = 1_000
"""Characters of HTML. Values up to this length are always in the form."""

LOST = "The stored values have changed since you opened this page. Reload it, or enter other values."
reference = hash_document


def is_long(texts: Iterable[str]) -> bool:
    return sum(len(escape(text)) for text in texts) > LONG


def by_reference(stored: Iterable[Any]) -> dict[str, Any]:
    return {reference(values): values for values in stored}
