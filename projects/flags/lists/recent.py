"""The flags that the user viewed last, kept in the session."""

from collections.abc import Sequence

from django.contrib.sessions.backends.base import SessionBase

MAX_RECENT = 6
_KEY = "recent-flags"


def note_visit(session: SessionBase, name: str) -> None:
    """Puts the flag first. Changes the session only if it was not first."""
    names = list_recent_names(session)
    if names[:1] != [name]:
        session[_KEY] = [name, *(other for other in names if other != name)][:MAX_RECENT]


def list_recent_names(session: SessionBase) -> Sequence[str]:
    """Names of flags, the last one first. They may have been deleted since."""
    return list(session.get(_KEY, ()))
