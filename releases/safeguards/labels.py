"""Selects series and alerts by their labels."""

from collections.abc import Mapping, Sequence


def selects(wanted: Mapping[str, Sequence[str]], labels: Mapping[str, str]) -> bool:
    """Whether each label that is selected has one of its values. `*` is any."""
    return all(
        name in labels and ("*" in values or labels[name] in values) for name, values in wanted.items()
    )
