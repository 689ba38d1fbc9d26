"""Architecture rules of docs/architecture.md that import contracts cannot express."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.support.paths import APPS, ROOT

MAY_SKIP = {
    "flagadmin/deploy/test_container.py": "root, buildah and debootstrap, and podman-compose for one of them",
    "browser/conftest.py": "Chromium, which FLAGADMIN_BROWSER_TESTS=required asks for",
    "flagadmin/core/db/bundled/test_secrets.py": "root, who runs the server under another account",
    "flagadmin/core/db/bundled/test_server.py": "root, who runs the server under another account",
    "shape/test_commit_subjects.py": "the history since 1.3.0, which a shallow clone lacks",
    "support/postgresql_versions.py": "PostgreSQL 17, whose programs FLAGADMIN_TEST_POSTGRESQL can name",
    "support/programs.py": "Patroni, etcd, and nginx and others, which FLAGADMIN_PROGRAMS=required asks for",
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*APPS)


def test_files_do_not_import_each_other_in_a_circle(graph):
    needs = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    while free := [module for module in needs if not needs[module] or not _needed(module, needs)]:
        for module in free:
            del needs[module]
        for needed in needs.values():
            needed.intersection_update(needs)
    assert sorted(needs) == []


def _needed(module: str, needs: dict[str, set[str]]) -> bool:
    return any(module in needed for needed in needs.values())


def test_the_picture_has_the_storeys_of_the_contract():
    page = (ROOT / "docs/architecture.md").read_text()
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in contracts if contract["name"] == "Imports go downwards"]
    assert re.findall(r"^│ ([\w.]+) +│", page, re.MULTILINE) == layers[1:]


def test_no_module_imports_a_test_module():
    """What several tests need is in ``tests/support``, or beside them in a module without tests."""
    found = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / "tests").rglob("*.py")
        if ".test_" in path.read_text()  # reading is cheaper than parsing
        for name in _names_imported(path)
        if name.startswith("tests.") and ".test_" in name
    }
    assert found == set()


def test_no_test_skips_for_want_of_a_file_or_package():
    """A test that may be skipped is named here with what it needs. In CI there is all of it but a container tool."""
    skips = re.compile(r"pytest\.(mark\.skip|mark\.xfail|skip|importorskip)")
    found = {
        str(path.relative_to(ROOT / "tests"))
        for path in (ROOT / "tests").rglob("*.py")
        if skips.search(path.read_text())
    }
    assert found - {"shape/test_architecture.py"} == set(MAY_SKIP)


def _names_imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = "tests." if node.level else ""
            yield from (f"{package}{node.module or ''}.{alias.name}" for alias in node.names)
