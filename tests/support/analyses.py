"""A finished analysis, as the process beside the workers leaves it."""

from datetime import timedelta

from django.utils import timezone

from playground.models import Analysis
from playground.outcomes import experiment
from playground.outcomes.analyses.design import Design, read_measure
from projects.models import Flag


def make_done_analysis(flag: Flag) -> Analysis:
    """Of 600 users on ten days, half of whom had the flag."""
    until = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    since = until - timedelta(days=10)
    design = Design(since=since, until=until, measures=[read_measure("mean", "orders")], segments=["plan"])
    phases = [experiment.Phase(since, {"off": 0.5, "on": 0.5})]
    collector = experiment.collect(design.make_experiment(phases, "off", []))
    users = range(600)
    collector.add(
        [str(user) for user in users],
        ["on" if user % 2 else "off" for user in users],
        [since + timedelta(days=user % 10, hours=1) for user in users],
        {
            "orders": [str(user % 3) for user in users],
            "plan": ["pro" if user < 300 else "" for user in users],
        },
    )
    change = {
        "at": (since + timedelta(days=5)).isoformat(),
        "change": None,
        "sentence": f"turned on {flag.name}",
    }
    more = {"unit": "userId", "rows": 600, "leftOut": {"notDivided": 3}, "lacks": {}, "changes": [change]}
    return Analysis.objects.create(
        flag=flag,
        environment_id="production",
        name="Do more people finish?",
        design=design.to_json(),
        sight={"projects": [flag.project_id], "withDeleted": False},
        state="done",
        result=experiment.to_document(experiment.analyse(collector)) | more,
        rows=600,
        caller_name="aisha",
        created_at=until,
        finished_at=until,
    )
