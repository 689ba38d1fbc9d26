"""Every cache in the code base is listed here, with the reason why its size is bounded."""

import ast
from collections.abc import Iterator

import pytest

from tests.support.limited_process import run_limited
from tests.support.paths import ROOT, sources

BOUNDED = {
    "groups/admin_site/sizes.py: make_length_field": "fields of models and their labels, which are constants",
    "flagadmin/console/api_docs/document.py: _make_openapi_document": "takes no argument",
    "flagadmin/console/api_docs/operations.py: list_operations": "takes no argument",
    "flagadmin/core/lists/days.py: _find_zone": "1,024 names of at most 64 characters",
    "flagadmin/console/navigation.py: list_sections": "takes no argument",
    "flagadmin/core/db/bundled/binaries.py: find_wheel_root": "takes no argument",
    "flagadmin/core/db/commits.py: _open_file": "takes no argument",
    "flagadmin/core/http/request_metrics.py: _get_children": "URL patterns, seven methods and other, statuses",
    "flagadmin/core/http/request_metrics.py: _make_collector": "takes no argument",
    "groups/tokens.py: _lookup": "takes a boolean",
    "projects/connect/snippets.py: read_snippets": "takes no argument",
    "importer/body/schema_errors.py: list_members": "the documents of imports and exports that are declared",
    "playground/comparison/kinds.py: _load_kinds": "takes no argument",
    "playground/comparison/users.py: _make_identifiers": "the latest of generated users",
    "playground/comparison/users.py: _shuffle_ranks": "the latest of generated users",
    "playground/comparison/rules.py: _make_searched_identifiers": "identifiers of 20 fields",
    "playground/engine/compilation.py: _compute_usual_digest": "percentages of three characters",
    "playground/engine/literals.py: _parse_address": "texts of at most 45 characters",
    "playground/engine/patterns.py: _compile": "patterns of at most 2,000 characters and 256 kB",
}


def caches() -> Iterator[str]:
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    if ast.unparse(called).rpartition(".")[2] in ("cache", "lru_cache"):
                        yield f"{path.relative_to(ROOT)}: {node.name}"


def test_every_cache_is_known() -> None:
    assert set(caches()) == set(BOUNDED)


@pytest.mark.processes
def test_long_texts_are_not_kept() -> None:
    """600 addresses of 0.9 MB kept 672 MB."""
    run_limited(
        """
        from playground.engine import literals, patterns

        for n in range(1_000):
            text = f"{n}" + "1" * 900_000
            assert literals.read_address(text) is None and literals.read_network(text) is None
            assert patterns.compile_pattern(text) is None and patterns.find_fault(text)
        """,
        megabytes=400,
        seconds=60,
    )


@pytest.mark.processes
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
