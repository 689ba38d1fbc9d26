"""Describes an audit event in a sentence without its actor: "turned on apple-pay in production"."""

import re

from django.utils.text import capfirst

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.events import derive_sentence, find_type
from flagadmin.core.audit.models import AuditEvent

_NOUNS = (
    "project|environment|flag|feature type|segment|context field|saved context|strategy type|tag type|tag"
    "|change request|release plan|release template|milestone|safeguard|chart|integration|source of signals"
    "|application|analysis|user|service account|group|role|API token|personal token|invite link"
)
_WITH_AN = ("environment", "integration", "application", "analysis", "API token", "invite link")
_NAMED = re.compile(rf"(?:the )?\b({_NOUNS}) \{{\w+\}}")
_UNNAMED = {
    "project": "a project",
    "environment": "an environment",
    "feature": "a flag",
    "subject": "somebody",
}


def make_label(name: str) -> str:
    """Describes any event of this type, such as ``Turned on a flag``."""
    text = E(name).label or E(name).sentence
    text = text.replace("{project} / ", "")
    text = re.sub(r" (in|for) \{environment\}| \(\{environment\}\)", "", text)
    text = _NAMED.sub(lambda named: f"{'an' if named[1] in _WITH_AN else 'a'} {named[1]}", text)
    return capfirst(text.format(**_UNNAMED))


def read_address(event: AuditEvent) -> str:
    """Reads the address of a failed login."""
    after = event.after if isinstance(event.after, dict) else {}
    return str(after.get("address") or "an unknown address")


def make_sentence(event: AuditEvent) -> str:
    kind = find_type(event.type)
    template = kind.sentence if kind else derive_sentence(event.type)
    if kind == E.FEATURE_REVERTED and event.subject is None:
        template = "reverted a change of flag {feature}"
    return template.format(
        project=event.project or "no project",
        environment=event.environment or "every environment",
        feature=event.feature or "",
        subject=event.subject or "",
        address=read_address(event),
    ).strip()
