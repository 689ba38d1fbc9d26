"""No regular expression in the code base takes more than linear time on any input.

Each one is found in the source with the methods that use it, and run on long strings of the characters it
repeats. Quadratic patterns take minutes on these, linear ones milliseconds.
"""

from tests.support.limited_process import run_limited
from tests.support.patterns import LENGTH, attacks, pumps, uses


def test_ours_are_found() -> None:
    found = {where.partition(":")[0] for where, *_ in uses()}
    assert {"playground/engine/literals.py", "groups/tokens.py", "flagadmin/core/http/logs.py"} <= found
    assert pumps(r"[0-9]+\.?[0-9]*x|(?:ab\s)*", 0) == {"0", "ab "}
    assert "0" * LENGTH + "\0" in attacks(r"[0-9]+\.?[0-9]*", 0)


def test_every_one_is_linear() -> None:
    run_limited(
        """
        import re
        from tests.support.patterns import attacks, uses

        for where, method, pattern, flags in uses():
            compiled = re.compile(pattern, flags)
            for text in attacks(pattern, flags):
                print(where, method, ascii(text[:20]), flush=True)
                run = getattr(compiled, method)
                list(run(text[:0], text)) if method.startswith("sub") else list(run(text) or ()) if method in (
                    "findall", "finditer", "split") else run(text)
        """,
        megabytes=1_500,
        seconds=300,
    )
