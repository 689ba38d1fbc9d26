"""Bodies and records of change requests."""

from django.utils.functional import lazy
from django.utils.text import format_lazy
from rest_framework import serializers

from flagadmin.core.http.fields import Body, JsonValue, ListOf, Moment, Texts
from projects.projects.required_comments import CONDITIONS, MAX_RULES
from releases.changes import KINDS
from releases.models import ChangeRequest


class ChangeBody(Body):
    feature = serializers.CharField(
        max_length=255, required=False, default="", allow_blank=True, help_text="The flag; not for segments."
    )
    action = serializers.CharField(
        max_length=40, help_text=format_lazy("One of {kinds}.", kinds=lazy(", ".join, str)(KINDS))
    )
    payload = JsonValue(
        required=False,
        default=None,
        help_text="What the action takes: the fields that its own endpoint takes.",
    )


class RuleBody(Body):
    condition = serializers.CharField(max_length=40, help_text=f"One of {', '.join(CONDITIONS)}.")
    percent = serializers.FloatField(required=False, help_text="For `changesUsers`: above this percentage.")
    tag = serializers.CharField(max_length=255, required=False, help_text="Of `touchesTag`, as type:value.")
    requiredApprovals = serializers.IntegerField(help_text="0 to 10.")


class PolicyBody(Body):
    changeRequestsEnabled = serializers.BooleanField()
    requiredApprovals = serializers.IntegerField(
        required=False, allow_null=True, default=None, help_text="0 to 10. Default 1."
    )
    approvalRules = ListOf(
        child=RuleBody(),
        required=False,
        allow_null=True,
        default=None,
        help_text=f"At most {MAX_RULES}. The first that holds counts; without any, `requiredApprovals`.",
    )
    approverGroups = ListOf(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        required=False,
        allow_null=True,
        default=None,
        help_text="Ids of the groups whose members may approve. []: everybody with the permission.",
    )


class PolicyRecord(serializers.Serializer):
    environment = serializers.CharField()
    type = serializers.CharField()
    changeRequestEnabled = serializers.BooleanField()
    requiredApprovals = serializers.IntegerField(allow_null=True)
    approvalRules = RuleBody(many=True)
    approverGroups = serializers.ListField(child=serializers.IntegerField())


class NewStateBody(Body):
    state = serializers.CharField(help_text="In review, Approved, Scheduled, Rejected, Applied or Cancelled.")
    scheduledAt = Moment(required=False, help_text="With `Scheduled`: at least a minute ahead.")
    comment = serializers.CharField(required=False, allow_blank=True, default="")


class TitleBody(Body):
    title = serializers.CharField(max_length=255, allow_blank=True)


class CommentBody(Body):
    text = serializers.CharField()


class ReviewersBody(Body):
    reviewers = ListOf(child=serializers.IntegerField(), help_text="Ids of users; at most 10.")


class AuthorRecord(serializers.Serializer):
    id = serializers.IntegerField(required=False)
    username = serializers.CharField()
    imageUrl = serializers.CharField(help_text="Always empty.")


class MeetingRequestRecord(serializers.Serializer):
    id = serializers.IntegerField()
    title = serializers.CharField(required=False)


class ScheduleConflictsRecord(serializers.Serializer):
    changeRequests = MeetingRequestRecord(many=True)


class ChangeRecord(serializers.Serializer):
    id = serializers.IntegerField()
    action = serializers.CharField()
    payload = serializers.JSONField(required=False, help_text="Absent if the action takes none.")
    conflict = serializers.CharField(required=False, help_text="Why it cannot be applied as it is.")
    scheduleConflicts = ScheduleConflictsRecord(
        required=False, help_text="Other requests that are scheduled and change the same."
    )
    createdBy = AuthorRecord()
    createdAt = serializers.DateTimeField()


class FeatureChangesRecord(serializers.Serializer):
    name = serializers.CharField()
    changes = ChangeRecord(many=True)


class SegmentChangeRecord(ChangeRecord):
    name = serializers.CharField()


class ChangedContextRecord(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()


class ShareRecord(serializers.Serializer):
    users = serializers.IntegerField()
    changed = serializers.IntegerField()


class OwnImpactRecord(serializers.Serializer):
    by = serializers.CharField(help_text="Who keeps the file: the author, or somebody who may approve.")
    users = serializers.IntegerField()
    changed = serializers.IntegerField()


class ImpactRecord(serializers.Serializer):
    users = serializers.IntegerField(help_text="Generated users that were compared.")
    seed = serializers.IntegerField()
    changed = serializers.IntegerField(help_text="Users for whom at least one flag changes.")
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="Users by change of result.")
    savedContexts = ChangedContextRecord(many=True, help_text="Those that change.")
    brokenExpectations = serializers.IntegerField()
    onlyTurnsOff = serializers.BooleanField(help_text="It only turns flags off.")
    unmeasured = Texts(
        required=False,
        help_text="Parts of flags about which generated users tell nothing, such as patterns of ids: sentences.",
    )
    named = ShareRecord(
        required=False, help_text="Of these, users whose ids conditions list, and how many of them change."
    )
    mostAffected = ShareRecord(
        required=False,
        help_text="The users who meet all conditions of a changed strategy, for the one where most of these change.",
    )
    own = OwnImpactRecord(required=False, help_text="The same of the users of an uploaded file.")
    fingerprint = serializers.CharField(
        required=False,
        allow_blank=True,
        help_text="The same where the same was measured; empty if it also depends on the time.",
    )


class WholeImpactRecord(ImpactRecord):
    ifBreached = ImpactRecord(
        required=False,
        help_text="The same once a safeguard of the request is breached, which may be at any time.",
    )


class MovedRecord(serializers.Serializer):
    at = serializers.DateTimeField()
    approvedAt = serializers.DateTimeField()
    before = WholeImpactRecord(allow_null=True, help_text="What was approved.")
    after = WholeImpactRecord(allow_null=True)
    reasons = Texts(help_text="What has changed since.")
    causes = Texts(required=False, help_text="Who changed it, and when.")
    withdrawn = Texts(help_text="Whose approvals.")


class SignedRecord(serializers.Serializer):
    createdBy = AuthorRecord()
    createdAt = serializers.DateTimeField()


class ReviewRecord(SignedRecord):
    impact = WholeImpactRecord(required=False, help_text="Who changed when it was decided.")
    origin = serializers.CharField(
        required=False,
        help_text="How the account came from the author: `invited by the author`, for example.",
    )
    lapsed = serializers.CharField(
        required=False, help_text="Of an open request: why this approval does not count any more, or not yet."
    )


class CommentRecord(SignedRecord):
    id = serializers.IntegerField()
    text = serializers.CharField()


class ScheduleRecord(serializers.Serializer):
    scheduledAt = serializers.DateTimeField()
    status = serializers.CharField(help_text="`pending`, `suspended` or `failed`.")
    reason = serializers.CharField(required=False, help_text="Why it is suspended or failed.")


class ScheduledRecord(serializers.Serializer):
    id = serializers.IntegerField()
    environment = serializers.CharField()
    title = serializers.CharField(required=False)


class NamedRequest(serializers.Serializer):
    id = serializers.IntegerField()
    title = serializers.CharField(required=False)
    environment = serializers.CharField()
    project = serializers.CharField()
    createdAt = serializers.DateTimeField()
    state = serializers.CharField(help_text=f"One of {', '.join(ChangeRequest.State.values)}.")
    schedule = ScheduleRecord(required=False, help_text="In state `Scheduled`.")


class ChangeRequestRecord(NamedRequest):
    minApprovals = serializers.IntegerField()
    features = FeatureChangesRecord(many=True)
    segments = SegmentChangeRecord(many=True)
    approvals = ReviewRecord(many=True)
    rejections = ReviewRecord(many=True)
    comments = CommentRecord(many=True)
    createdBy = AuthorRecord()
    stateTimestamps = serializers.DictField(child=serializers.DateTimeField())
    impact = WholeImpactRecord(required=False, help_text="Who changes, as last measured.")
    moved = MovedRecord(required=False, help_text="Why approvals were withdrawn.")


class CountRecord(serializers.Serializer):
    total = serializers.IntegerField()
    applied = serializers.IntegerField()
    approved = serializers.IntegerField()
    rejected = serializers.IntegerField()
    reviewRequired = serializers.IntegerField()
    scheduled = serializers.IntegerField()


class TotalRecord(serializers.Serializer):
    total = serializers.IntegerField()


class ReviewerRecord(serializers.Serializer):
    id = serializers.IntegerField()
    name = serializers.CharField()
    username = serializers.CharField()
    email = serializers.CharField(help_text="Empty if they have none.")
    imageUrl = serializers.CharField(help_text="Always empty.")


class ReviewersRecord(serializers.Serializer):
    reviewers = ReviewerRecord(many=True)
