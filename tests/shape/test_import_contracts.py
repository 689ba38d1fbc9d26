"""The import contracts that go by the names of files notice what they forbid."""

from itertools import pairwise

import grimp
import pytest

from tests.support.import_contracts import FileOrder, SubjectFaces


def graph_of(*chain):
    graph = grimp.ImportGraph()
    for importer, imported in pairwise(chain):
        graph.add_import(importer=importer, imported=imported)
    return graph


def violations(contract, *chain):
    return contract.check(graph_of(*chain), verbose=False).metadata["chains"]


@pytest.fixture
def order():
    rows = ["api *_api", "actions core.record", "queries", "*rules", "models"]
    options = {"packages": ["app"], "rows": rows}
    return FileOrder(name="order", session_options={}, contract_options=options)


@pytest.mark.parametrize(
    "chain",
    [
        ("app.flags.queries", "app.flags.actions"),
        ("app.flags.link_rules", "app.tags.queries"),
        ("app.models.flags", "app.flags.rules"),
        ("app.flags.actions", "app.flags.archive_api"),
        ("app.flags.queries", "app.flags.archive", "app.flags.lines", "app.flags.actions"),
        ("app.flags.queries", "app.flags.archive", "core.record"),
    ],
    ids=" ".join,
)
def test_no_file_imports_one_of_a_higher_row(order, chain):
    assert violations(order, *chain) == [list(chain)]


@pytest.mark.parametrize(
    "chain",
    [
        ("app.flags.api", "app.flags.actions", "app.flags.queries", "app.flags.rules", "app.models.flags"),
        ("app.flags.queries", "app.tags.queries"),
        ("app.flags.archive", "core.record"),
        ("app.flags.rules", "other.actions"),
        ("other.rules", "other.queries"),
    ],
    ids=" ".join,
)
def test_files_import_downwards_and_what_is_below_their_application(order, chain):
    assert violations(order, *chain) == []


@pytest.fixture
def faces():
    options = {"packages": ["app"], "faces": "api *_pages", "gathered_by": "*_urls"}
    return SubjectFaces(name="faces", session_options={}, contract_options=options)


@pytest.mark.parametrize(
    ("importer", "imported", "is_refused"),
    [
        ("app.tags.api", "app.flags.api", True),
        ("app.viewsets", "app.flags.move_pages", True),
        ("app.tags.api", "app.flags.deep.api", True),
        ("app.flags.toggle_pages", "app.flags.move_pages", False),
        ("app.api_urls", "app.flags.api", False),
        ("app.tags.api", "app.flags.actions", False),
    ],
)
def test_subjects_do_not_import_each_others_faces(faces, importer, imported, is_refused):
    assert violations(faces, importer, imported) == [[importer, imported]] * is_refused
