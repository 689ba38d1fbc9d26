"""Describes the comparison in the OpenAPI document."""

from typing import Any

from django.conf import settings
from rest_framework import serializers as s

from flagadmin.core.http.fields import Texts
from flagadmin.core.http.prose import read_sections
from flagadmin.core.http.request_bodies import ManyValuesParser
from playground.openapi import OutcomeField, Payload

SECTIONS = read_sections(
    __file__,
    megabytes=settings.COMPARE_BODY_LIMIT // 1_000_000,
    values=f"{ManyValuesParser.bounds.values:,}",
)


class Counts(s.Serializer[Any]):
    offToOn = s.IntegerField()
    onToOff = s.IntegerField()
    variant = s.IntegerField()
    payload = s.IntegerField()
    share = s.IntegerField()
    unknown = s.IntegerField()
    unchanged = s.IntegerField()


class CountedAnswer(s.Serializer[Any]):
    isEnabled = OutcomeField()
    variant = s.CharField(allow_null=True)
    contexts = s.FloatField(help_text="Contexts that get it; random ones count with their share.")


class ComparedAnswer(CountedAnswer):
    payload = Payload(allow_null=True)


class ComparedFlag(s.Serializer[Any]):
    name = s.CharField()
    counts = Counts()
    before = ComparedAnswer(many=True)
    after = ComparedAnswer(many=True)


class SharedAnswer(s.Serializer[Any]):
    isEnabled = OutcomeField()
    variant = s.CharField(allow_null=True)
    payload = Payload(allow_null=True)
    share = s.FloatField(help_text="The share of calls that give it: 1 if the result is not random.")


class ComparedResult(s.Serializer[Any]):
    results = SharedAnswer(many=True)
    reason = s.CharField()


class ComparedExample(s.Serializer[Any]):
    flag = s.CharField()
    context = s.DictField(child=s.CharField())  # type: ignore[assignment]  # a field's name, not DRF's own
    savedContext = s.CharField(required=False, help_text="The name of the context, if it is a saved one.")
    change = s.ChoiceField(["offToOn", "onToOff", "variant", "payload", "share", "unknown"])
    before = ComparedResult()
    after = ComparedResult()


class ExpectationRecord(s.Serializer[Any]):
    savedContext = s.CharField()
    project = s.CharField()
    flag = s.CharField()
    environment = s.CharField()
    enabled = s.BooleanField(help_text="Whether the flag is expected to be on.")
    variant = s.CharField(allow_null=True)
    payload = Payload(required=False, help_text="Missing: any.")
    enforcedIn = s.CharField(
        allow_null=True, help_text="The project that refuses to break it, if it refuses that."
    )


class ChangedExpectation(ExpectationRecord):
    before = ComparedResult()
    after = ComparedResult()


class ChangedExpectations(s.Serializer[Any]):
    broken = ChangedExpectation(many=True, help_text="Met before, not after.")
    met = ChangedExpectation(many=True, help_text="Not met before, met after.")


class CompareResponse(s.Serializer[Any]):
    contexts = s.IntegerField()
    people = s.IntegerField(help_text="Contexts for which at least one flag changes.")
    counts = Counts()
    flags = ComparedFlag(many=True)
    examples = ComparedExample(many=True)
    expectations = ChangedExpectations()
    notes = Texts(required=False, help_text="Changes since then whose past is not known.")
