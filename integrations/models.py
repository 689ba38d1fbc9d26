"""Integrations and their deliveries."""

from typing import Any

import orjson
from cryptography.fernet import InvalidToken
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from flagadmin.core.encryption import make_fernet

_PURPOSE = "integrations"


class SecretKeyChanged(Exception):
    """The secrets were encrypted with another SECRET_KEY."""

    message = "SECRET_KEY has changed. Enter the secrets of this integration again."


class Integration(models.Model):
    """A destination and a selection of events. Without projects or environments (or with "*"), it covers all.

    ``ended``: the last event of a deleted project or environment, by column and name. With ``tags`` (``type:value``),
    only events of flags with one of them are sent. Events without an environment pass ``environments`` and
    ``production_only``. A sending server sets ``claimed_until`` and ``send_after`` to the same time, which keeps
    other servers from sending. If ``send_after`` is changed meanwhile, sending resumes at that time.
    """

    provider = models.CharField(max_length=40)
    description = models.TextField(null=True, blank=True)
    enabled = models.BooleanField(default=True)
    parameters = models.JSONField(default=dict, help_text="Without the sensitive ones.")
    encrypted = models.TextField(blank=True, help_text="The sensitive parameters and signing keys.")
    events = ArrayField(models.TextField(), default=list)
    projects = ArrayField(models.TextField(), default=list)
    environments = ArrayField(models.TextField(), default=list)
    tags = ArrayField(models.TextField(), db_default=[])
    ended = models.JSONField(default=dict, db_default={}, blank=True, editable=False)
    production_only = models.BooleanField(db_default=False)
    only_if_users_change = models.BooleanField(db_default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    send_after = models.DateTimeField(db_default=Now(), editable=False)
    claimed_until = models.DateTimeField(null=True, editable=False)
    _decrypted: tuple[str, dict[str, Any]] | None = None

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.provider} {self.pk}"

    def secrets(self) -> dict[str, Any]:
        """``parameters``: the sensitive ones; ``keys``: signing keys, the newest first. Raises SecretKeyChanged.

        Decrypted once for all deliveries of a turn, which share this object.
        """
        if not self.encrypted:
            return {"parameters": {}, "keys": []}
        if self._decrypted is None or self._decrypted[0] != self.encrypted:
            try:
                document = orjson.loads(make_fernet(_PURPOSE).decrypt(self.encrypted))
            except InvalidToken as error:
                raise SecretKeyChanged from error
            self._decrypted = (self.encrypted, document)
        return self._decrypted[1]

    def set_secrets(self, parameters: dict[str, Any], keys: list[dict[str, Any]]) -> None:
        document = orjson.dumps({"parameters": parameters, "keys": keys})
        self.encrypted = make_fernet(_PURPOSE).encrypt(document).decode()


class Delivery(models.Model):
    """One event for one integration, sent at least once. A delivery without an event is a test."""

    class State(models.TextChoices):
        PENDING = "pending"
        SUCCESS = "success"
        WITH_ERRORS = "successWithErrors"
        FAILED = "failed"
        LEFT_OUT = "leftOut"

    integration = models.ForeignKey(Integration, models.CASCADE, related_name="deliveries")
    event_id = models.BigIntegerField(null=True, blank=True)
    state = models.CharField(max_length=20, choices=State.choices, db_default=State.PENDING)
    attempts = models.PositiveIntegerField(db_default=0)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    first_sent_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    milliseconds = models.PositiveIntegerField(null=True, blank=True)
    state_details = models.TextField(db_default="")
    details = models.JSONField(null=True, blank=True, help_text="What was sent, without secrets.")

    class Meta:
        verbose_name_plural = "deliveries"
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("integration", "event_id"), name="one_delivery_of_an_event"),
        )
        indexes = (
            models.Index(
                fields=("integration", "id"),
                name="pending_deliveries",
                condition=models.Q(state="pending"),
            ),
            models.Index(fields=("integration", "-id"), name="deliveries_newest_first"),
        )

    def __str__(self) -> str:
        return f"{self.integration_id} / {self.event_id}"


class Relay(models.Model):
    """The position up to which the audit log has been read. One row. See `integrations.deliveries.sender`.

    All events up to `settled_id` have been read. Events up to `mark_id` will have been once all transactions before
    `mark_xid` have ended.
    """

    settled_id = models.BigIntegerField()
    mark_id = models.BigIntegerField()
    mark_xid = models.BigIntegerField()

    def __str__(self) -> str:
        return str(self.settled_id)


class WrittenLog(models.Model):
    """The position up to which the audit log has been written to FLAGADMIN_AUDIT_LOG. One row. See
    `integrations.audit_log`."""

    written_id = models.BigIntegerField(default=0)
    claimed_until = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return str(self.written_id)


class SignalSource(models.Model):
    """Another system that sends signals, with its own token, to ``/api/signals/NAME``.

    ``token_by``: the person who got the token last, and their name at that time. Without a name, an API token or a
    command made it, or flagadmin did not keep the name yet.
    """

    class Kind(models.TextChoices):
        GENERIC = "generic", "Any JSON object"
        ALERTMANAGER = "alertmanager", "Alertmanager"

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=20, choices=Kind.choices)
    token_hash = models.CharField(max_length=64, editable=False)
    token_by = models.ForeignKey(
        "groups.User", models.SET_NULL, null=True, blank=True, related_name="+", editable=False
    )
    token_by_name = models.TextField(default="", db_default="", blank=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class SignalRule(models.Model):
    """The effect on a flag of a signal that matches ``match``, with the rights of ``author``, who saved it last.

    ``match`` has values by path (``labels.severity``); ``*`` matches any. Names may refer to deleted objects.
    ``suspended_at``: the time when another user, ``suspended_by``, replaced the source's token. The rule has no
    effect until it is saved again.
    """

    class Action(models.TextChoices):
        TURN_OFF = "turnOff", "Turn the flag off"
        PAUSE_PLAN = "pausePlan", "Pause its release plan"
        NOTE = "note", "Only note it on the flag's page"

    source = models.ForeignKey(SignalSource, models.CASCADE, related_name="rules")
    name = models.CharField(max_length=100)
    match = models.JSONField()
    project = models.TextField()
    flag = models.TextField()
    environment = models.TextField()
    then = models.CharField(max_length=20, choices=Action.choices)
    enabled = models.BooleanField(default=False)
    author = models.ForeignKey("groups.User", models.SET_NULL, null=True, blank=True, related_name="+")
    suspended_at = models.DateTimeField(null=True, blank=True, editable=False)
    suspended_by = models.TextField(default="", db_default="", blank=True, editable=False)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("source", "name"), name="signal_rule_names_are_unique"),
        )

    def __str__(self) -> str:
        return self.name


class Signal(models.Model):
    """A received signal. ``results``: the effect of each matching rule."""

    source = models.ForeignKey(SignalSource, models.CASCADE, related_name="signals")
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    body = models.JSONField()
    results = models.JSONField(default=list)

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("source", "-id"), name="signals_newest_first"),)

    def __str__(self) -> str:
        return f"{self.source_id} / {self.pk}"


class SignalDone(models.Model):
    """A rule's completed action: alerts repeat for as long as they last, but act only once."""

    rule = models.ForeignKey(SignalRule, models.CASCADE, related_name="+")
    key = models.CharField(max_length=300)
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("rule", "key"), name="a_rule_acts_once_for_a_key"),)

    def __str__(self) -> str:
        return f"{self.rule_id} / {self.key}"


class CalendarFeed(models.Model):
    """A person's calendar. Its token shows what that person may read."""

    user = models.OneToOneField("groups.User", models.CASCADE, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"calendar of {self.user_id}"
