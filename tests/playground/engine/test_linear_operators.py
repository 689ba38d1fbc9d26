"""Every operator takes linear time and little memory for any stored value and any context."""

import pytest

from tests.support.limited_process import run_limited

pytestmark = pytest.mark.processes


def test_over_texts_of_1_mb() -> None:
    run_limited(
        """
        import random
        from playground.engine.context import Context
        from playground.engine.evaluator import evaluate
        from playground.engine import operators
        from playground.engine.operators import OPERATORS
        from playground.response.snapshot import compile_playground
        from playground.response.writer import render_features
        from tests.support.engine import NOW

        SIZE = 1_000_000
        STORED = {
            operators.SET: ["a" * 100], operators.TEXT: ["a" * 50 + "b", "b" + "a" * 99], operators.NUMBER: ["1", "1" * 300],
            operators.DATE: ["2026-11-21T09:00:00.000Z"], operators.VERSION: ["1.2.3", "1.0.0-" + "a." * 40 + "a"],
            operators.PATTERN: ["(a|aa)+$", "[ab]*a[ab]{1000}c", "(a*)*b", "(?:a?){300}a{300}"], operators.NETWORK: ["10.0.0.0/8", "::/0"],
        }
        TEXTS = ["a" * SIZE, "ab" * (SIZE // 2), "1" * SIZE, "1e" + "9" * SIZE, "1.0.0-" + "a." * (SIZE // 2)]
        TEXTS += ["2026-11-21T09:00:00." + "0" * SIZE + "Z", " " * SIZE, ":" * SIZE, "10." * SIZE, "a" * 9_999]

        def flag(name, constraint):
            strategies = [{"name": "default", "constraints": [constraint]}]
            return {"name": name, "project": "p", "enabled": True, "strategies": strategies}

        flags = []
        for name, operator in OPERATORS.items():
            for value in STORED[operator.family]:
                for more in ({}, {"inverted": True}, {"caseInsensitive": True}):
                    constraint = {"contextName": "userId", "operator": name, "value": value, "values": [value] * 10}
                    flags.append(flag(f"f{len(flags)}", constraint | more))
        snapshot = compile_playground(flags, {}, environment="e")
        for text in TEXTS:
            context = Context({"userId": text})
            assert len(render_features(snapshot, evaluate(snapshot.snapshot, context, now=NOW, random=random.random))) < 100 * SIZE
        """,
        megabytes=1_200,
        seconds=300,
    )
