"""Secrets that were encrypted with another SECRET_KEY, such as those of a restored backup."""

import pytest
from django.core.management import call_command

from groups.second_factor.actions import find_people_with_unreadable_codes
from tests.support.cast import make_user
from tests.support.second_factor import set_up_app

KEY = "of the installation that was backed up"


@pytest.fixture
def people(db, standing_clock, settings):
    settings.SECRET_KEY = KEY
    for number in range(12):
        set_up_app(make_user(f"user-{number:02}", password="correct horse battery"))
    make_user("without")


def test_secrets_are_readable_with_the_same_key_or_a_fallback(people, settings):
    assert find_people_with_unreadable_codes() == []
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [KEY]
    assert find_people_with_unreadable_codes() == []


def test_secrets_are_unreadable_with_another_key(people, settings):
    settings.SECRET_KEY = "another"
    assert find_people_with_unreadable_codes() == [f"user-{number:02}" for number in range(12)]


def test_recovered_databases_say_whose_second_factors_cannot_be_read(people, settings, capsys):
    settings.SECRET_KEY = "another"
    call_command("restore", recovered=True)
    said = capsys.readouterr()
    assert "Recovered: flags 0, projects 1, people 13, events" in said.out
    assert "The second factors of user-00, " in said.err
    assert "user-09 and 2 more cannot be read" in said.err
    assert "SECRET_KEY_FALLBACKS" in said.err
