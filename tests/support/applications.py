"""Usage reports, and the list of a project's applications."""

from datetime import datetime

from projects.applications.usage_report import Count, FlagUse, Instance, InstanceKey, UsageReport


def report_of(apps: list[str], flags: list[str], instance: str, now: datetime) -> UsageReport:
    report = UsageReport()
    for app in apps:
        report.add_instance(
            InstanceKey(app, instance, "development"), Instance(f"unleash-go:1.{instance}"), ["default"]
        )
        for flag in flags:
            report.add_count(FlagUse(app, flag, "development"), now, Count(1, 0, {"red": 1}), now=now)
    return report


def listing(api, query: str = "", *, project: str = "default", caller: str = "viewer"):
    answer = api[caller].get(f"/api/admin/projects/{project}/applications{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def names(api, query: str = "", **more) -> list[str]:
    return [application["name"] for application in listing(api, query, **more)["applications"]]
