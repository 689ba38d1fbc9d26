"""Every cache in the code base is listed here, with the reason why its size is bounded."""

import ast
from collections.abc import Iterator

from tests.support.paths import ROOT, sources

BOUNDED = {
    "groups/admin_site/forms.py: make_length_field": "fields of models and their labels, which are constants",
    "flagadmin/console/api_docs/operations.py: _make_openapi_document": "takes no argument",
    "flagadmin/console/api_docs/operations.py: list_operations": "takes no argument",
    "flagadmin/core/lists/columns.py: make_table": "the columns that lists declare",
    "flagadmin/core/lists/filters.py: _find_zone": "1,024 names of at most 64 characters",
    "flagadmin/console/navigation.py: list_sections": "takes no argument",
    "flagadmin/core/db/bundled/programs.py: find_wheel_root": "takes no argument",
    "flagadmin/core/db/commits.py: _open_file": "takes no argument",
    "flagadmin/core/http/middleware.py: _get_children": "URL patterns, seven methods and other, statuses",
    "flagadmin/core/http/middleware.py: _make_collector": "takes no argument",
    "flagadmin/worker.py: load": "takes no argument",
    "groups/tokens.py: make_lookup": "takes a boolean",
    "groups/tokens.py: _list_fields": "takes no argument",
    "projects/connect/snippets.py: read_snippets": "takes no argument",
    "importer/body/schema_errors.py: list_members": "the documents of imports and exports that are declared",
    "playground/lens.py: _find_user": "20 users of at most a million characters",
    "playground/comparison/states.py: _load_kinds": "takes no argument",
    "playground/comparison/users.py: _make_identifiers": "the latest of generated users",
    "playground/comparison/users.py: _shuffle_ranks": "the latest of generated users",
    "playground/comparison/rules.py: _make_searched_identifiers": "identifiers of 20 fields",
    "playground/engine/compilation.py: _compute_usual_digest": "percentages of three characters",
    "playground/engine/literals.py: _parse_address": "texts of at most 45 characters",
    "playground/engine/operators.py: _compile": "patterns of at most 2,000 characters and 256 kB",
}


def caches() -> Iterator[str]:
    for path in sources():
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "cache" in text else ():  # reading is cheaper than parsing
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    if ast.unparse(called).rpartition(".")[2] in ("cache", "lru_cache"):
                        yield f"{path.relative_to(ROOT)}: {node.name}"


def test_every_cache_is_known() -> None:
    assert set(caches()) == set(BOUNDED)
