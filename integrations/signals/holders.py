"""Says whose rights the alerts of a source have: those of the person who got its token and could send any alert."""

from groups.access import NOTHING, Caller
from integrations.models import SignalSource
from releases.models import Safeguard
from releases.safeguards.actions import may_breach
from releases.safeguards.queries import list_waiting_for_alerts


def find_holder(source: SignalSource) -> Caller:
    """flagadmin itself if no person has got the token, or it is not known; nobody's rights if they are gone."""
    if not source.token_by_name:
        return Caller.system()
    user = source.token_by
    return Caller(user=user) if user and user.is_active else Caller(user=user, rights=NOTHING)


def list_deaf_safeguards(caller: Caller) -> list[Safeguard]:
    """The safeguards of readable projects that wait for an alert, and that no source may tell."""
    waiting = list(list_waiting_for_alerts(caller))
    if not waiting:
        return []
    sources = SignalSource.objects.filter(kind=SignalSource.Kind.ALERTMANAGER).select_related("token_by")
    holders = [find_holder(source) for source in sources]
    return [each for each in waiting if not any(may_breach(holder, each) for holder in holders)]
