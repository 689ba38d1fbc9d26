"""Finds in the audit log who got the tokens of sources of signals before flagadmin kept it, and trusts nobody unknown.

Suspends the rules of others that a replaced token could trigger, unless an admin replaced it or they were saved since.
"""

import logging

from django.db import migrations
from django.utils import timezone

log = logging.getLogger("flagadmin.setup")
ADMIN = 1  # the built-in root role
UNKNOWN = "Somebody unknown"


def trace_tokens(apps, schema_editor):
    AuditEvent, User = apps.get_model("audit", "AuditEvent"), apps.get_model("groups", "User")
    sources = apps.get_model("integrations", "SignalSource").objects.filter(token_by_name="")
    for source in sources.prefetch_related("rules"):
        events = AuditEvent.objects.filter(type__startswith="signal-source-", subject=source.name)
        made = events.filter(type="signal-source-created") | events.filter(after__token="replaced")
        last = made.order_by("created_at", "id").last()
        if last is not None and last.actor_id is None:
            continue  # an API token or a command made it: those have all rights
        user = User.objects.filter(pk=last.actor_id).first() if last else None
        source.token_by, source.token_by_name = user, last.actor_name if last else UNKNOWN
        source.save(update_fields=["token_by", "token_by_name"])
        if user is not None and user.root_role_id == ADMIN:
            continue
        saved = events if last is None else events.filter(created_at__gte=last.created_at)
        kept = {key for key in saved.values_list("after__id", flat=True) if last is not None}
        others = [
            rule
            for rule in source.rules.all()
            if not rule.suspended_at
            and rule.pk not in kept
            and (rule.author_id is None or user is None or rule.author_id != user.pk)
        ]
        for rule in others:
            rule.suspended_at, rule.suspended_by = timezone.now(), source.token_by_name
            rule.save(update_fields=["suspended_at", "suspended_by"])
        if others:
            names = ", ".join(rule.name for rule in others)
            log.warning(
                "%s has replaced the token of signal source %s. Save these rules again: %s.",
                source.token_by_name,
                source.name,
                names,
            )


class Migration(migrations.Migration):
    dependencies = [
        ("audit", "0007_transaction_before_events"),
        ("groups", "0014_name_groups_that_differ_by_case"),
        ("integrations", "0009_holders_of_tokens"),
    ]

    operations = [migrations.RunPython(trace_tokens, migrations.RunPython.noop)]
