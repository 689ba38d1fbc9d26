"""Times, numbers, initials and icons in templates."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from flagadmin.core.templatetags.icons import avatar, icon, initials
from flagadmin.core.templatetags.moments import ago, clock, day, exact

AT = datetime(2026, 10, 2, 10, 36, 7, tzinfo=timezone(timedelta(hours=2)))


def test_a_time_is_in_utc_and_says_so():
    assert exact(AT) == (
        '<time datetime="2026-10-02T10:36:07+02:00" data-time="minute" title="2 Oct 2026, 08:36:07 UTC">'
        "2 Oct 2026, 08:36 UTC</time>"
    )


@pytest.mark.parametrize(
    ("rendered", "text"),
    [
        (exact(AT, "second"), ">2 Oct 2026, 08:36:07 UTC<"),
        (day(AT), ">2 Oct 2026<"),
        (clock(AT), ">08:36 UTC<"),
        (ago(datetime.now(UTC) - timedelta(hours=3)), ">3 hours ago<".replace(" ", "\xa0", 1)),
        (ago(datetime.now(UTC)), ">just now<"),
    ],
)
def test_each_precision_has_its_words(rendered, text):
    assert text in rendered


def test_no_time_is_never():
    assert {ago(None), exact(None), day(None)} == {"never"}


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("Kari Nordmann", "KN"),
        ("demo", "D"),
        ("deploy-bot", "DB"),
        ("Ana de la Cruz", "AC"),
        ("", ""),
        ("!", ""),
    ],
)
def test_initials(name, letters):
    assert initials(name) == letters


def test_an_avatar_escapes_nothing_it_did_not_choose():
    assert "<b" not in avatar("<b>x</b> <i>")


def test_an_unknown_icon_is_an_error():
    with pytest.raises(KeyError):
        icon("no such icon")
