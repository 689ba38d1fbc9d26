"""Builds the JSON document of a strategy type, for API responses and audit events."""

from flagadmin.core.document import Document
from projects.models import StrategyType


def make_strategy_type_document(strategy_type: StrategyType) -> Document:
    """``title`` is set by users on custom types. Built-in types have only a display name."""
    return {
        "name": strategy_type.name,
        "title": None if strategy_type.built_in else strategy_type.title or None,
        "displayName": strategy_type.title or None,
        "description": strategy_type.description or None,
        "editable": not strategy_type.built_in,
        "deprecated": strategy_type.deprecated,
        "parameters": strategy_type.parameters,
    }
