"""A recorded sequence of requests gets the reference's responses, apart from known differences.

``differences.toml`` lists each difference with its reason. An entry that no longer applies fails the test.
"""

import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.compatibility.life import live
from tests.support.cast import make_token, make_user

pytestmark = pytest.mark.exhaustive

THEMES = tomllib.loads((Path(__file__).parent / "differences.toml").read_text())


@pytest.fixture
def differing(db: None) -> list[str]:
    """What differs in the life of a fresh installation with an administrator and the reference's first tokens."""
    # Its own id, whatever ran before: the life asks for what the account 1 did, which is nobody's here either.
    admin = make_user("admin", id=4711, root_role=1)
    make_token("backend", name="admin", environment="development")
    make_token("admin", name="admin")
    return list(live(key=make_token("personal", user=admin)))


def test_a_life_differs_in_nothing_but_what_is_listed(differing: list[str]) -> None:
    listed = [line for lines in THEMES.values() for line in lines]
    unexplained = [
        difference for difference in differing if not any(_matches(line, difference) for line in listed)
    ]
    assert not unexplained, "\n".join(unexplained)
    settled = list(_settled(differing))
    assert not settled, "no longer different, take it out:\n" + "\n".join(settled)


def _settled(differing: Sequence[str]) -> Iterable[str]:
    listed = (line for lines in THEMES.values() for line in lines)
    return (line for line in listed if not any(_matches(line, difference) for difference in differing))


def _matches(line: str, difference: str) -> bool:
    """``*`` in a line stands for anything; what follows the line (what it is instead) does not count."""
    return bool(re.match(".*".join(map(re.escape, line.split("*"))) + r"( |$)", difference))
