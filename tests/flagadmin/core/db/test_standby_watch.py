"""The watch over the standby: when the primary goes on alone, and when commits wait again."""

from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from flagadmin.core.db.standby_watch import STANDBY, StandbyWatch


class Primary:
    """Answers the watch, and keeps which standby commits are to wait for."""

    def __init__(self, names: str) -> None:
        self.names = names
        self.sign: str | None = None
        self.reloads = 0

    def execute(self, statement: Any, parameters: Any = None) -> "Primary":
        text = statement if isinstance(statement, str) else statement.as_string(None)
        if text.startswith("ALTER SYSTEM"):
            self.names = text.partition("= ")[2].strip("'")
        self.reloads += text == "SELECT pg_reload_conf()"
        return self

    def fetchone(self) -> tuple[str, str | None]:
        return self.names, self.sign


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def looked(primary: Primary, clock: Clock, *signs: str | None) -> list[str]:
    """Which standby commits wait for after each second's look, with 3 seconds of patience."""
    watch = StandbyWatch(primary, 3, clock)
    names = []
    for primary.sign in signs:
        clock.now += 1
        watch.look()
        names.append(primary.names)
    return names


def test_a_standby_that_follows_stays(clock: Clock) -> None:
    primary = Primary(STANDBY)
    assert looked(primary, clock, *map(str, range(10))) == [STANDBY] * 10
    assert primary.reloads == 0


@pytest.mark.parametrize("silence", [None, "1"], ids=["gone", "hangs"])
def test_without_it_the_primary_goes_on_alone_in_time(clock: Clock, silence: str | None) -> None:
    primary = Primary(STANDBY)
    assert looked(primary, clock, "0", "1", *[silence] * 5) == [STANDBY] * 5 + ["", ""]
    assert primary.reloads == 1


def test_it_waits_again_once_the_standby_speaks(clock: Clock) -> None:
    """Not at its first sight: a hanging one is listed for a minute."""
    primary = Primary("")
    assert looked(primary, clock, None, "0", "0", "1", "2") == ["", "", "", STANDBY, STANDBY]
    assert primary.reloads == 1


def test_a_pause_is_not_a_loss(clock: Clock) -> None:
    primary = Primary(STANDBY)
    assert looked(primary, clock, "0", "1", None, "2", "3", None, "4", "5") == [STANDBY] * 8


def test_the_command_needs_its_url() -> None:
    with pytest.raises(CommandError, match="Set FLAGADMIN_STANDBY_URL"):
        call_command("standby", "watch")


def test_a_url_that_is_none_is_refused(settings: Any) -> None:
    settings.STANDBY_URL = "not a url"
    with pytest.raises(CommandError, match="FLAGADMIN_STANDBY_URL is not valid"):
        call_command("standby", "watch")


def test_a_role_without_the_rights_is_refused(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **options: Any) -> None:
        raise psycopg.errors.InsufficientPrivilege("permission denied to set parameter")

    settings.STANDBY_URL = "postgresql://replicator@db1/postgres"
    monkeypatch.setattr("flagadmin.management.commands.standby.watch", refuse)
    with pytest.raises(CommandError, match="needs the rights"):
        call_command("standby", "watch")
