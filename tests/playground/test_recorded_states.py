"""For recorded flags stored in the database, the API returns what the engine returns for their definitions.

``tests/playground/engine/test_recordings.py`` compares the engine with the recordings. This file covers the
path to the engine: rows, definitions, snapshot, HTTP.
"""

import pytest

from tests.playground.recordings import recorded, recorded_names
from tests.playground.stored_recordings import check_the_api_answers_as_the_engine

pytestmark = [pytest.mark.django_db, pytest.mark.exhaustive]


@pytest.mark.parametrize("name", recorded_names())
def test_the_api_answers_as_the_engine(api, name, monkeypatch):
    check_the_api_answers_as_the_engine(recorded(name), api["viewer"], monkeypatch)
