"""The activity: audit events grouped into changes, with sentences and changed fields."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.template.loader import render_to_string
from django.utils import timezone

from flagadmin.core.audit.events import EventType as E
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.record import Event, record_all
from flagadmin.core.http.logs import request_id
from groups.access import Caller
from groups.models import User
from projects.history.changes import change_of, change_page
from projects.history.descriptions import describe
from projects.history.field_changes import FieldChange, changes_of
from projects.history.queries import EventFilter, narrow_events, readable_events
from tests.support.examined_rows import count_examined_rows
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.import_bodies import body
from tests.support.page_text import sentence_text

pytestmark = pytest.mark.django_db


def happened(*events: Event, by: Caller, request: str = "") -> None:
    token = request_id.set(request)
    with transaction.atomic():
        record_all(events, actor=by)
    request_id.reset(token)


def on_flag(kind: E, flag: str = "cart", **fields: object) -> Event:
    return Event(type=kind, project="shop", feature=flag, **({"environment": "production"} | fields))


def changes(caller: Caller, size: int = 50, before: int | None = None, **filters: object):
    events = narrow_events(readable_events(caller), EventFilter(**filters))
    return change_page(events, caller=caller, size=size, before=before).changes


def said(change) -> str:
    return sentence_text(change.sentence)


def described(event: Event) -> tuple[str, list[tuple[str, str | None, str | None]]]:
    stored = AuditEvent(
        **{name: getattr(event, name) for name in ("project", "environment", "feature", "subject")},
        type=event.type.value,
        before=event.before,
        after=event.after,
    )
    fields = [(change.field, change.before, change.after) for change in changes_of(stored)]
    return sentence_text(describe(stored)), fields


def rollout(share: str, **fields: object) -> dict[str, object]:
    parameters = {"rollout": share, "stickiness": "default", "groupId": "cart"}
    return {
        "id": "s1",
        "name": "flexibleRollout",
        "title": None,
        "disabled": False,
        "sortOrder": 0,
        "parameters": parameters,
        "constraints": [],
        "variants": [],
        "segments": [],
    } | fields


# Sentences --------------------------------------------------------------------------------------------------


def is_sentence(text: str) -> bool:
    return (text[:1].islower() or text.startswith("API")) and "{" not in text


def test_every_event_has_a_sentence_with_and_without_names() -> None:
    named = {"project": "shop", "environment": "production", "feature": "cart", "subject": "it"}
    sentences = {
        (kind.value, str(document)): described(Event(type=kind, **named, after=document))[0]
        for kind in E
        for document in (None, {}, {"name": "x"})
    }
    faults = {each: text for each, text in sentences.items() if not is_sentence(text)}
    nameless = [kind.value for kind in E if not described(Event(type=kind))[0]]
    assert (faults, nameless) == ({}, [])


@for_each(
    ("event", "sentence", "fields"),
    [
        (
            on_flag(E.FEATURE_ENVIRONMENT_DISABLED),
            "turned cart off in production",
            [("production", "On", "Off")],
        ),
        (
            on_flag(E.FEATURE_STRATEGY_UPDATE, before=rollout("25"), after=rollout("50")),
            "moved a strategy of cart in production from 25 % to 50 %",
            [("Rollout", "25 %", "50 %")],
        ),
        (
            on_flag(E.FEATURE_STRATEGY_UPDATE, before=rollout("25"), after=rollout("50", title="Half")),
            "changed a strategy of cart in production",
            [("Title", "none", "Half"), ("Rollout", "25 %", "50 %")],
        ),
        (
            on_flag(E.FEATURE_STRATEGY_ADD, after=rollout("25")),
            "added a strategy to cart in production",
            [("Strategy", None, "On for 25 % of users, by userId (or sessionId).")],
        ),
        (
            on_flag(
                E.FEATURE_METADATA_UPDATED,
                before={"type": "release", "description": None},
                after={"type": "experiment", "description": "New"},
            ),
            "changed the type and description of cart",
            [("Type", "release", "experiment"), ("Description", None, "New")],
        ),
        (
            on_flag(
                E.FEATURE_ENVIRONMENT_VARIANTS_UPDATED,
                before={"variants": [{"name": "buy", "weight": 900}, {"name": "order", "weight": 100}]},
                after={"variants": [{"name": "buy", "weight": 500}, {"name": "new", "weight": 500}]},
            ),
            "changed the variants of cart in production",
            [("buy", "90 %", "50 %"), ("order", "10 %", None), ("new", None, "50 %")],
        ),
        (
            on_flag(E.FEATURE_PROJECT_CHANGE, before={"project": "old"}, after={"project": "shop"}),
            "moved cart from old to shop",
            [],
        ),
        (
            on_flag(E.FEATURE_TAGGED, after={"type": "team", "value": "web"}),
            "tagged cart with team:web",
            [],
        ),
        (on_flag(E.FEATURE_DEPENDENCY_ADDED, after={"feature": "base"}), "made cart depend on base", []),
        (
            Event(type=E.PROJECT_ACCESS_ADDED, project="shop", subject="kari",
                  after={"roles": [{"id": 4, "name": "Owner"}]}),
            "gave kari the Owner role in project shop",
            [],
        ),
        (
            Event(type=E.PROJECT_UPDATED, project="shop", before={"featureLimit": 10, "name": "Shop"},
                  after={"featureLimit": 20, "name": "Shop"}),
            "changed the settings of project shop",
            [("Flag limit", "10", "20")],
        ),
    ],
)  # fmt: skip
def test_sentences_have_names_and_values(event: Event, sentence: str, fields: object) -> None:
    assert described(event) == (sentence, fields)


def test_flags_and_projects_are_links_unless_they_were_deleted() -> None:
    def links(kind: E) -> list[str]:
        event = AuditEvent(type=kind.value, project="shop", environment="production", feature="cart")
        return [part.url for part in describe(event) if part.url]

    assert links(E.FEATURE_ENVIRONMENT_ENABLED) == ["/projects/shop/features/cart/"]
    assert links(E.FEATURE_DELETED) == []
    assert links(E.PROJECT_ARCHIVED) == ["/projects/shop/"]
    assert links(E.PROJECT_DELETED) == []


def test_long_values_and_many_fields_are_shortened() -> None:
    event = AuditEvent(
        type=E.CONTEXT_FIELD_UPDATED.value,
        before={f"key{n:02}": "x" for n in range(20)},
        after={f"key{n:02}": "y" * 1000 for n in range(20)},
    )
    changes = changes_of(event)
    assert changes[0] == FieldChange("Key00", "x", "y" * 250 + "… (750 more characters)")
    assert changes[-1] == FieldChange("8 more", None, "")


# Groups -----------------------------------------------------------------------------------------------------


def test_events_of_one_request_are_one_change(callers, shop) -> None:
    member = callers("member")
    happened(on_flag(E.FEATURE_CREATED), on_flag(E.FEATURE_DEPENDENCY_ADDED, after={"feature": "base"}),
             by=member, request="request-1")  # fmt: skip
    happened(on_flag(E.FEATURE_STALE_ON), by=member, request="request-2")

    second, first = changes(member)

    assert said(first) == "created cart and made cart depend on base"
    assert (first.number, len(first.rows), first.fields) == (2, 2, ())
    assert said(second) == "marked cart as stale"
    assert second.number == 1

    happened(on_flag(E.FEATURE_CREATED), on_flag(E.FEATURE_STALE_ON), on_flag(E.FEATURE_ARCHIVED),
             by=member, request="request-3")  # fmt: skip
    assert said(changes(member)[0]) == "created cart and made 2 more changes"


def test_events_without_a_request_are_changes_of_their_own(callers, shop) -> None:
    happened(on_flag(E.FEATURE_CREATED), on_flag(E.FEATURE_STALE_ON), by=Caller.system())
    assert [said(change) for change in changes(callers("member"))] == [
        "marked cart as stale",
        "created cart",
    ]


def test_the_same_request_id_of_somebody_else_or_of_another_hour_is_another_change(callers, shop) -> None:
    happened(on_flag(E.FEATURE_CREATED), by=callers("member"), request="request-1")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_auditevent DISABLE TRIGGER USER")
        cursor.execute("UPDATE audit_auditevent SET created_at = created_at - interval '2 hours'")
        cursor.execute("ALTER TABLE audit_auditevent ENABLE TRIGGER USER")
    happened(on_flag(E.FEATURE_STALE_ON), by=callers("member"), request="request-1")
    happened(on_flag(E.FEATURE_STALE_OFF), by=callers("owner"), request="request-1")
    assert [change.number for change in changes(callers("member"))] == [1, 1, 1]


def test_the_same_change_of_several_flags_is_told_once(callers, shop) -> None:
    member = callers("member")
    for request, names in (("request-3", "abc"), ("request-5", "abcde")):
        happened(*[on_flag(E.FEATURE_ARCHIVED, name) for name in names], by=member, request=request)
    happened(
        *[on_flag(E.FEATURE_ENVIRONMENT_DISABLED, name) for name in "ab"], by=member, request="request-2"
    )

    off, five, three = changes(member)

    assert said(three) == "archived 3 flags: a, b and c"
    assert said(five) == "archived 5 flags: a, b, c and 2 more"
    assert said(off) == "turned 2 flags off in production: a and b"
    assert next(part.url for part in three.sentence if part.url) == "/projects/shop/features/a/"


APPLIED = Event(type=E.CHANGE_REQUEST_APPLIED, project="shop", environment="production", subject="7")
PLAN = [
    on_flag(E.RELEASE_PLAN_ADDED, subject="10 → 100 %"),
    on_flag(E.RELEASE_PLAN_MILESTONE_STARTED, subject="10 %"),
]
CHART = on_flag(E.METRIC_CHART_CHANGED, subject="Failures", environment=None, after={})
SAFEGUARD = on_flag(E.SAFEGUARD_CHANGED, subject="Failures", after={})


@for_each(
    ("events", "sentence"),
    [
        ([on_flag(E.FEATURE_ENVIRONMENT_ENABLED), APPLIED],
         "applied change request 7 to production: turned cart on in production"),
        ([*PLAN, SAFEGUARD], "started release plan 10 → 100 % of cart in production"),
        ([CHART, SAFEGUARD], "added safeguard Failures to cart in production and its chart"),
    ],
)  # fmt: skip
def test_what_caused_the_others_is_told(callers, shop, events, sentence) -> None:
    happened(*events, by=callers("member"), request="request-1")
    assert said(changes(callers("member"))[0]) == sentence


def test_steps_of_one_request_are_its_sending_and_a_discarded_one_is_no_link(callers, shop) -> None:
    def step(kind: E) -> Event:
        return Event(type=kind, project="shop", environment="production", subject="7")

    member, opened = callers("member"), [step(E.CHANGE_REQUEST_CREATED), step(E.CHANGE_ADDED)]
    happened(*opened, by=member, request="request-1")
    happened(*opened, step(E.CHANGE_REQUEST_SENT_TO_REVIEW), step(E.CHANGE_REQUEST_APPROVED),
             by=member, request="request-2")  # fmt: skip

    sent, begun = changes(member)

    assert [said(begun), said(sent)] == [
        "began change request 7 for production", "sent change request 7 (production) for review"
    ]  # fmt: skip
    assert begun.is_complete
    assert sent.is_complete
    assert [part.url for part in sent.sentence if part.url] == ["/projects/shop/change-requests/7/"]

    gone = Event(type=E.CHANGE_REQUEST_DISCARDED, project="shop", environment="production", subject="7")
    happened(gone, by=member)
    assert not any(part.url for part in changes(member)[0].sentence)


def test_an_import_is_one_change_with_its_flags_inside(api, callers, shop) -> None:
    names = [f"f{number:02}" for number in range(25)]
    answer = api["admin"].post("/api/admin/features-batch/import", body(*names))
    assert answer.status_code == 200, answer.text

    (change,) = changes(callers("member"))

    assert said(change) == "imported 25 flags into shop / development"
    assert change.event.type == "features-imported"
    assert change.pills == [("25 new", "on")]
    assert (change.number, len(change.rows), change.more) == (25, 19, 6)
    assert change.rows[-1].name == "f24"
    assert change_of(change.event, caller=callers("member")).count() == 26
    assert change_of(change.event, caller=callers("outsider")).count() == 0


def test_strategies_are_named_by_their_place(callers, shop) -> None:
    flag = make_flag("cart")
    add_strategy(flag, "production")
    second = add_strategy(flag, "production", sort_order=1)
    happened(
        on_flag(
            E.FEATURE_STRATEGY_UPDATE,
            before=rollout("25", id=str(second.pk)),
            after=rollout("50", id=str(second.pk)),
        ),
        by=callers("member"),
        request="request-1",
    )
    (change,) = changes(callers("member"))
    assert said(change) == "moved strategy 2 of cart in production from 25 % to 50 %"
    assert [part.mark for part in change.sentence if part.mark] == ["before", "after"]
    assert change.fields == [FieldChange("Rollout", "25 %", "50 %")]


def test_people_have_their_names_and_robots_are_marked(callers, people, shop) -> None:
    User.objects.filter(pk=people["member"].pk).update(name="Kari Nordmann")
    for number, who in enumerate((callers("member"), callers("service"), Caller.system())):
        happened(on_flag(E.FEATURE_STALE_ON), by=who, request=f"request-{number}")
    system, service, member = (change.actor for change in changes(callers("member")))
    assert (member.name, member.robot) == ("Kari Nordmann", False)
    assert service.robot
    assert (system.name, system.robot) == ("flagadmin", True)


def test_filters_select_changes_and_show_them_whole(callers, shop) -> None:
    member = callers("member")
    happened(on_flag(E.FEATURE_CREATED, "a"), on_flag(E.FEATURE_CREATED, "b"), by=member, request="request-1")
    happened(on_flag(E.FEATURE_CREATED, "c"), by=member, request="request-2")
    (change,) = changes(member, features=["a"])
    assert said(change) == "created 2 flags: a and b"
    assert changes(member, since=timezone.now() + timedelta(hours=1)) == []
    assert len(changes(member, since=timezone.now() - timedelta(hours=1))) == 2


def test_events_that_the_caller_may_not_read_are_in_no_change(callers, shop) -> None:
    happened(
        on_flag(E.FEATURE_CREATED),
        Event(type=E.FEATURE_CREATED, project="default", feature="secret"),
        by=callers("admin"),
        request="request-1",
    )
    assert said(changes(callers("member"))[0]) == "created cart"
    assert said(changes(callers("viewer"))[0]) == "created 2 flags: cart and secret"
    assert changes(callers("outsider")) == []


def test_pages_show_every_change_once(callers, shop) -> None:
    member = callers("member")
    for number in range(7):
        happened(on_flag(E.FEATURE_CREATED, f"a{number}"), on_flag(E.FEATURE_CREATED, f"b{number}"),
                 by=member, request=f"request-{number}")  # fmt: skip
    seen, before = [], None
    for _ in range(4):
        page = change_page(readable_events(member), caller=member, size=2, before=before)
        seen += [change.event.feature for change in page.changes]
        before = page.next
    assert seen == [f"b{number}" for number in reversed(range(7))]
    assert before is None


def test_changes_are_in_the_order_of_their_times_not_of_their_ids(callers, shop) -> None:
    """Of two transactions at once, the one that takes its ids first may take its moment later."""
    now, member = timezone.now(), callers("member")
    for name, hours in (("b", 2), ("d", 4), ("a", 1), ("c", 3)):
        fields = {"type": E.FEATURE_CREATED.value, "project": "shop", "feature": name, "actor_name": "ada"}
        AuditEvent.objects.create(**fields, created_at=now - timedelta(hours=hours), request_id=name)
    seen, before = [], None
    for _ in range(4):
        page = change_page(readable_events(member), caller=member, size=1, before=before)
        seen += [change.event.feature for change in page.changes]
        before = page.next
    assert seen == ["a", "b", "c", "d"]
    assert before is None
    page = change_page(readable_events(member), caller=member, before=2**62)
    assert [change.event.feature for change in page.changes] == [
        "d"
    ]  # what is older than c, which has the newest id


def test_a_page_deep_in_the_past_reads_few_events(callers, shop) -> None:
    viewer = callers("viewer")
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO audit_auditevent (type, project, feature, actor_name, request_id, created_at)
            SELECT %s, 'shop', 'f' || number %% 10, 'ada', 'r' || number, now() - number * interval '1 minute'
            FROM generate_series(0, 19999) number""",
            [E.FEATURE_STALE_ON.value],
        )
        cursor.execute("ANALYZE audit_auditevent")
    for filters in ({}, {"projects": ["shop"]}, {"features": ["f7"]}):
        deep = narrow_events(AuditEvent.objects.all(), EventFilter(**filters)).newest_first()[1_500]
        with count_examined_rows() as statements:
            page = change_page(
                narrow_events(readable_events(viewer), EventFilter(**filters)), caller=viewer, before=deep.pk
            )
        assert len(page.changes) == 50, filters
        assert sum(statement.examined for statement in statements) < 3_000, filters


def test_the_number_of_queries_does_not_grow(callers, shop, django_assert_max_num_queries) -> None:
    member = callers("member")
    _ = member.rights
    for number in range(10):
        events = (on_flag(E.FEATURE_STRATEGY_UPDATE, before=rollout("1"), after=rollout("2", segments=[1])),
                  on_flag(E.FEATURE_STALE_ON))  # fmt: skip
        happened(*events, by=member, request=f"request-{number}")
    with django_assert_max_num_queries(7):
        assert len(changes(member)) == 10


def test_the_includes_mark_what_was_and_what_is() -> None:
    event = AuditEvent(
        type=E.FEATURE_STRATEGY_UPDATE.value,
        project="shop",
        feature="<b>",
        before=rollout("25"),
        after=rollout("50"),
    )
    sentence = render_to_string("includes/sentence.html", {"parts": describe(event)})
    assert "from <del>25 %</del> to <ins>50 %</ins>" in sentence
    assert "&lt;b&gt;</a>" in sentence
    fields = render_to_string("includes/field_changes.html", {"fields": changes_of(event)})
    assert '<span>Rollout</span><span><del>25 %</del> <span class="arrow">→</span> <ins>50 %</ins>' in fields


def test_the_activity_shows_four_fields_of_an_event_and_links_to_all(callers, shop) -> None:
    event = AuditEvent.objects.create(
        type=E.FEATURE_METADATA_UPDATED,
        actor_name="ada",
        feature="f",
        project="shop",
        before={f"field{n}": "old" for n in range(6)},
        after={f"field{n}": "new" for n in range(6)},
    )
    (change,) = change_page(AuditEvent.objects.filter(pk=event.pk), caller=callers("admin")).changes
    shown = render_to_string("history/rows.html", {"change": change})
    assert (shown.count("<del>"), len(change.fields)) == (4, 6)
    assert f'?change={event.pk}">Show all 6 fields' in shown


def test_members_of_a_document_are_words():
    rules = [
        {"condition": "onlyTurnsOff", "requiredApprovals": 0},
        {"condition": "changesUsers", "percent": 5, "requiredApprovals": 2},
    ]
    link = {"urlTemplate": "https://tickets.example/{{feature}}", "title": None}
    _, fields = described(
        Event(
            type=E.PROJECT_UPDATED,
            project="shop",
            before={"approvalRules": [], "linkTemplates": [], "mode": {"isOpen": True}},
            after={"approvalRules": rules, "linkTemplates": [link], "mode": {"isOpen": False}},
        )
    )
    assert fields == [
        (
            "Approval rules",
            None,
            "only turns flags off: 0 approvals; changes more than 5 % of generated users: 2 approvals",
        ),
        ("Links of new flags", None, "url template https://tickets.example/{{feature}}"),
        ("Access", "is open Yes", "is open No"),
    ]
