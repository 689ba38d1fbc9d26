"""The applications that evaluate a flag."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from projects.applications.queries import find_project_applications, read_oldest_versions
from projects.applications.sdk_versions import group_sdks
from projects.flags.insights.evaluations import FlagUser, read_users
from projects.models import Flag


@dataclass(frozen=True, slots=True)
class UsingApplication:
    """An application that evaluated the flag. ``outdated``: it uses the oldest version of an SDK."""

    name: str
    environments: Sequence[str]
    last_used_at: datetime
    instances: int
    sdks: Sequence[str]
    outdated: bool


def list_using_applications(flag: Flag) -> list[UsingApplication]:
    """The applications, most recent first."""
    by_name: dict[str, list[FlagUser]] = defaultdict(list)
    for user in read_users([flag.pk]).get(flag.pk, []):
        by_name[user.application].append(user)
    if not by_name:
        return []
    lines = {
        line.name: line for line in find_project_applications(flag.project_id).filter(name__in=list(by_name))
    }
    oldest = read_oldest_versions(flag.project_id)
    applications = []
    for name, users in by_name.items():
        line = lines.get(name)
        sdks = group_sdks(line.sdks) if line else []
        applications.append(
            UsingApplication(
                name=name,
                environments=[user.environment for user in users],
                last_used_at=users[0].last_used_at,
                instances=line.instance_count if line else 0,
                sdks=[_describe_sdk(sdk["name"], sdk["versions"], oldest) for sdk in sdks],
                outdated=any(oldest.get(sdk["name"]) in sdk["versions"] for sdk in sdks),
            )
        )
    return applications


def _describe_sdk(sdk: str, versions: Sequence[str], oldest: Mapping[str, str]) -> str:
    """``unleash-node-sdk 6.11.0 (outdated), 6.12.1``"""
    named = [f"{version} (outdated)" if oldest.get(sdk) == version else version for version in versions]
    return f"{sdk} {', '.join(named)}".strip()
