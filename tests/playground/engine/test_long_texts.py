"""Long texts cost neither memory that stays nor more than linear time."""

import pytest

from tests.support.limited_process import run_limited

pytestmark = pytest.mark.processes


def test_long_texts_are_not_kept() -> None:
    """600 addresses of 0.9 MB kept 672 MB."""
    run_limited(
        """
        from playground.engine import literals, operators

        for n in range(1_000):
            text = f"{n}" + "1" * 900_000
            assert literals.read_address(text) is None and literals.read_network(text) is None
            assert operators.compile_pattern(text) is None and operators.find_fault(text)
        """,
        megabytes=400,
        seconds=60,
    )


def test_literals_are_linear() -> None:
    """40,000 digits kept everybody waiting for 49 s."""
    run_limited(
        """
        from playground.engine import literals

        size = 1_000_000
        texts = ["1" * size, "1" * size + "x", "1." * size, "-" + "0" * size, " " * size, "1e" + "9" * size]
        texts += ["1.0.0-" + "a." * size, "1.0.0-" + "0" * size, "1.0.0+" + "a" * size]
        texts += ["2026-11-21T09:00:00." + "0" * size + "Z", "2026-11-21" + " " * size + "09:00:00Z"]
        texts += [":" * size, "1:" * size, "10.0.0.0/" + "1" * size, "/" * size, "%" * size, "\\x1c" * size]
        kinds = ["number", "constraint_number", "version", "instant", "constraint_instant", "address", "network"]
        for text in texts:
            for kind in kinds:
                value = getattr(literals, f"read_{kind}")(text)
                assert value is None or value != value, (kind, text[:30])
        """,
        megabytes=400,
        seconds=60,
    )
