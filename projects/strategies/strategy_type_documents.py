"""A strategy type as the API shows it and as events keep it."""

from typing import Any

from projects.models import StrategyType

Document = dict[str, Any]


def strategy_type_document(strategy_type: StrategyType) -> Document:
    """``title`` is what people gave a custom type; built-in ones have a display name alone."""
    return {
        "name": strategy_type.name,
        "title": None if strategy_type.built_in else strategy_type.title or None,
        "displayName": strategy_type.title or None,
        "description": strategy_type.description or None,
        "editable": not strategy_type.built_in,
        "deprecated": strategy_type.deprecated,
        "parameters": strategy_type.parameters,
    }
