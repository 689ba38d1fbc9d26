"""The example of docs/engine.md runs."""

import random
from datetime import UTC, datetime
from typing import Any

from playground.engine.compilation import compile_snapshot
from playground.engine.context import Context
from playground.engine.evaluator import evaluate
from playground.engine.explanation import explain
from tests.documentation.blocks import blocks

FLAG = {"name": "checkout-redesign", "enabled": False, "strategies": [], "project": "checkout"}


def test_the_example_gives_a_reason() -> None:
    python = (block.text for block in blocks("docs/engine.md") if block.language == "python")
    [example] = [text for text in python if "compile_snapshot(" in text]
    *statements, last = example.strip().splitlines()
    names: dict[str, Any] = {
        "compile_snapshot": compile_snapshot,
        "evaluate": evaluate,
        "explain": explain,
        "Context": Context,
        "flags": [FLAG],
        "segments": {},
        "now": datetime.now(UTC),
        "random": random,
    }
    exec("\n".join(statements), names)
    assert "production" in str(eval(last, names))
