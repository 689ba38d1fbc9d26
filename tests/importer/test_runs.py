"""An uploaded import body waits as a pending run until the user confirms it."""

from datetime import timedelta

import orjson
import pytest
from django.utils import timezone

from flagadmin.core.errors import Conflict, NotFound
from importer.apply.execute import OutdatedPlan, import_body
from importer.body.schemas import read_body
from importer.models import FlagReport, ImportRun
from importer.runs import access_run, check_run, confirm_run, create_run, delete_expired
from projects.models import Flag
from tests.support.import_bodies import body, strategy

pytestmark = pytest.mark.django_db


@pytest.fixture
def kept(callers):
    document = body("one", "two", featureStrategies=[strategy("one", parameters={"rollout": "10"})])
    return create_run(orjson.dumps(document), caller=callers("member"), file_name="export.json")


def test_is_checked_then_confirmed(kept, callers):
    plan = check_run(kept, caller=callers("member"))
    assert plan.counts["create"] == 2
    assert not Flag.objects.exists()
    assert kept.reports.first().document() == {
        "name": "one",
        "action": "create",
        "summary": "release, off, strategy: On for 10 % of users, by userId (or sessionId)",
    }
    done = confirm_run(kept, caller=callers("member"), fingerprint=kept.fingerprint)
    assert (done.id, done.state, done.body) == (kept.id, ImportRun.State.DONE, None)
    assert Flag.objects.count() == 2


def test_is_bound_to_the_check_that_was_seen(kept, callers):
    seen = kept.fingerprint
    check_run(kept, caller=callers("member"), excluded=["two"])
    with pytest.raises(OutdatedPlan, match="checked again after this page was opened"):
        confirm_run(kept, caller=callers("member"), fingerprint=seen)
    assert not Flag.objects.exists()


def test_excludes_flags_when_it_is_confirmed(kept, callers):
    done = confirm_run(kept, caller=callers("member"), fingerprint=kept.fingerprint, excluded=["two"])
    assert list(Flag.objects.values_list("name", flat=True)) == ["one"]
    assert done.excluded == ["two"]
    assert [report.name for report in done.reports.all()] == ["one"]


def test_what_happens_to_the_rest_is_what_was_seen(callers):
    """Without the excluded flag another would be imported that was seen to be blocked."""
    import_body(read_body(body("middle", "top")), caller=callers("admin"))
    document = body(
        "middle",
        "child",
        dependencies=[
            {"feature": "middle", "dependencies": [{"feature": "top"}]},
            {"feature": "child", "dependencies": [{"feature": "middle"}]},
        ],
    )
    run = create_run(orjson.dumps(document), caller=callers("member"))
    assert [(r.name, r.action) for r in run.reports.all()] == [("middle", "refuse"), ("child", "refuse")]
    with pytest.raises(OutdatedPlan, match="changes what the import does to 1 flag: child"):
        confirm_run(run, caller=callers("member"), fingerprint=run.fingerprint, excluded=["middle"])
    assert not Flag.objects.filter(name="child").exists()


def test_a_run_that_was_confirmed_cannot_be_checked(kept, callers):
    confirmed_run = access_run(callers("member"), kept.id)
    assert confirmed_run.body
    confirm_run(kept, caller=callers("member"), fingerprint=kept.fingerprint)
    with pytest.raises(Conflict, match="confirmed in the meantime"):
        check_run(confirmed_run, caller=callers("member"))


def test_a_killed_one_waits_again_and_is_forgotten_in_its_time(kept, callers):
    ImportRun.objects.filter(id=kept.id).update(state=ImportRun.State.RUNNING)
    assert access_run(callers("member"), kept.id).state == ImportRun.State.PENDING
    assert ImportRun.objects.get().state == ImportRun.State.RUNNING  # reading changes nothing
    ImportRun.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    delete_expired()
    assert not ImportRun.objects.exists()
    assert not FlagReport.objects.exists()


def test_expires(kept, callers):
    ImportRun.objects.filter(id=kept.id).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(NotFound):
        access_run(callers("member"), kept.id)
    delete_expired()
    assert not ImportRun.objects.exists()


def test_may_be_a_bare_export(callers):
    document = orjson.dumps(body("one")["data"])
    run = create_run(document, caller=callers("member"), project="shop", environment="production")
    assert check_run(run, caller=callers("member")).counts["create"] == 1
