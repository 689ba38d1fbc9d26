"""What a signal says, and which conditions it meets."""

import pytest

from integrations.signals.receive import look_up, meets, read_items
from tests.support.signals import make_alert, make_body


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a", "1"),
        ("b.c", "true"),
        ("b.app.kubernetes.io/name", "cart"),
        ("b.app", ""),
        ("b", ""),
        ("list", ""),
        ("a.deeper", ""),
        ("nothing", ""),
    ],
)
def test_paths(path, text):
    document = {"a": 1, "b": {"c": True, "app.kubernetes.io/name": "cart", "app": {}}, "list": ["x"]}
    assert look_up(document, path) == text


@pytest.mark.parametrize(
    ("match", "is_met"),
    [
        ({"labels.alertname": "CheckoutErrors"}, True),
        ({"labels.alertname": "CheckoutErrors", "labels.severity": "critical"}, True),
        ({"labels.alertname": "CheckoutErrors", "labels.severity": "warning"}, False),
        ({"labels.severity": "*"}, True),
        ({"labels.region": "*"}, False),
        ({"labels.alertname": "checkouterrors"}, False),
    ],
)
def test_conditions(match, is_met):
    assert meets(match, make_alert()) == is_met


def test_only_alerts_that_are_firing_count():
    items = read_items("alertmanager", make_body(make_alert(), make_alert(status="resolved")))
    assert [(item.key, item.summary) for item in items] == [
        ("c0ffee 2026-11-25T10:00:00Z", "5 % of checkouts fail")
    ]


@pytest.mark.parametrize("alerts", [None, {}, "x", ["x"], [{}] * 101])
def test_bodies_that_alertmanager_would_not_send(alerts):
    with pytest.raises(ValueError, match="alerts must"):
        read_items("alertmanager", {"alerts": alerts})


def test_any_other_body_is_one_item():
    [item] = read_items("generic", {"id": 7, "message": "a\n b" * 200})
    assert (item.key, len(item.summary)) == ("7", 300)
