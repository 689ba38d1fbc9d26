"""Measures change requests: the page of one with 50 changes, applying it, the gate, and lists of open ones.

    python -m tests.benchmarks.bench_change_requests [FLAGS [OPEN]]

Over HTTP against a server of its own with one worker; times are medians. A save is measured where nothing asks for a
request, before and after another environment of the project does, and where it does and an admin skips it.
"""

import sys
from collections.abc import Callable
from typing import Any

from tests.benchmarks.bench_import import make_body, post
from tests.support.live_server import Client, data_directory, median_ms, running

PROJECT = "/api/admin/projects/default"
IMPORT = "/api/admin/features-batch/import"
CHANGES = 50


def switching(port: int, key: str, environment: str) -> Callable[[], Any]:
    """Saves: one flag, on and off in turn."""
    turn = [True]

    def call() -> None:
        turn[0] = not turn[0]
        path = f"{PROJECT}/features/bench-000007/environments/{environment}/{'on' if turn[0] else 'off'}"
        post(port, path, b"", key)

    return call


def changes_of(flags: int) -> list[Any]:
    from projects.models import Strategy
    from releases.derive import ProposedChange

    names = [f"bench-{index:06d}" for index in range(flags)]
    rows = Strategy.objects.filter(flag__name__in=names, environment="production").order_by("flag__name")
    return [
        ProposedChange(
            row.flag.name,
            "updateStrategy",
            {"id": str(row.pk), "parameters": row.parameters | {"rollout": "73"}},
        )
        for row in rows.select_related("flag")[:CHANGES]
    ]


def session_of_admin() -> str:
    from django.test import Client

    from groups.permissions import BuiltIn
    from tests.support.cast import make_user

    browser = Client()
    browser.force_login(make_user("bench", root_role=BuiltIn.ADMIN))
    return browser.cookies["sessionid"].value


def page_ms(port: int, session: str, path: str) -> float:
    browser = Client(port)

    def visit() -> None:
        status, page = browser.call("GET", path, Cookie=f"sessionid={session}")
        assert status == 200, page[:2000]

    return median_ms(visit)


def apply_ms(port: int, path: str, key: str) -> float:
    def apply() -> None:
        status, answer = Client(port, key).call("PUT", path, {"state": "Applied"})
        assert status == 200, answer[:1000]

    return median_ms(apply, runs=1, warm_up=0)


def set_policy(approvals: int | None) -> None:
    from projects.models import ProjectEnvironment

    ProjectEnvironment.objects.filter(project="default", environment="production").update(
        required_approvals=approvals
    )


def make_open(number: int, author: Any) -> None:
    """Requests in review with a change each."""
    from releases.models import Change, ChangeRequest

    impact = {
        "users": 10_000,
        "seed": 0,
        "changed": 100,
        "counts": {},
        "savedContexts": [],
        "brokenExpectations": 0,
    }
    times = {"In review": "2026-11-25T10:00:00.000Z"}
    requests = ChangeRequest.objects.bulk_create(
        ChangeRequest(
            project_id="default", environment_id="production", state="In review", author=author,
            author_name=author.username, title=f"Request {index}", impact=impact, state_times=times,
        )
        for index in range(number)
    )  # fmt: skip
    Change.objects.bulk_create(
        Change(
            request=request, feature=f"bench-{index % 5_000:06d}", action="updateEnabled",
            payload={"enabled": False}, made_from=True, author_name=author.username,
        )
        for index, request in enumerate(requests)
    )  # fmt: skip


def main(flags: int, number: int) -> None:
    with data_directory():
        from groups.access import Caller
        from groups.models import User
        from releases.requests.propose import send_changes
        from releases.requests.states import set_state
        from tests.support.cast import make_token, make_user

        key, session = make_token("admin"), session_of_admin()
        with running(workers=1) as port:
            body = make_body(flags).replace(b'"development"', b'"production"')
            post(port, IMPORT, body, key)
            free, guarded = switching(port, key, "development"), switching(port, key, "production")
            guarded()
            before = median_ms(free)
            alone = median_ms(guarded)
            set_policy(1)
            unprotected, protected = median_ms(free), median_ms(guarded)
            print(
                f"{flags:,} flags | a save {before:5.1f} ms without any policy, {unprotected:5.1f} ms in another"
                f" environment than the guarded one | in it {alone:5.1f} ms before, {protected:5.1f} ms guarded"
            )
            author = Caller(user=make_user("author", root_role=2))
            request = send_changes("default", "production", changes_of(flags), caller=author)
            page = page_ms(port, session, f"/projects/default/change-requests/{request.pk}/")
            floor = page_ms(port, session, "/projects/default/change-requests/?state=Rejected")
            admin = Caller(user=User.objects.filter(root_role=1).first())
            set_state("default", request.pk, "Approved", caller=admin)
            applied = apply_ms(port, f"{PROJECT}/change-requests/{request.pk}/state", key)
            print(
                f"a request of {CHANGES} changes: its page {page:4.0f} ms, applied in {applied:4.0f} ms | an empty list, the floor: {floor:4.0f} ms"
            )
            make_open(number, author.user)
            listed = page_ms(port, session, "/projects/default/change-requests/")
            start = page_ms(port, session, "/")
            flag_list = page_ms(port, session, "/projects/default/")
            print(
                f"{number:,} open: list {listed:4.0f} ms, start page {start:4.0f} ms, list of flags {flag_list:4.0f} ms"
            )


if __name__ == "__main__":
    arguments = [int(text) for text in sys.argv[1:]]
    main(*(arguments + [5_000, 5_000][len(arguments) :]))
