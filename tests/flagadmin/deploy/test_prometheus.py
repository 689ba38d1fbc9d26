"""deploy/'s alerts and dashboard: Prometheus accepts them, they ask for metrics that exist, and the docs have them all."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.urls import get_resolver
from prometheus_client import REGISTRY

from flagadmin.core.hook import load_all
from tests.support.paths import ROOT
from tests.support.programs import program

RULES = ROOT / "deploy" / "prometheus-alerts.yml"
DASHBOARD = ROOT / "deploy" / "grafana-dashboard.json"
OF_A_HISTOGRAM = re.compile(r"(_seconds)_(bucket|sum|count)$")


@pytest.fixture(scope="module")
def declared() -> set[str]:
    get_resolver().url_patterns  # noqa: B018 - reading it and `load_all` load all that counts
    load_all()
    metrics = [metric for metric in REGISTRY.collect() if metric.name.startswith("flagadmin_")]
    return {metric.name + ("_total" if metric.type == "counter" else "") for metric in metrics}


def named_in(text: str) -> set[str]:
    """The metrics that a text names."""
    return {OF_A_HISTOGRAM.sub(r"\1", name) for name in re.findall(r"\bflagadmin_[a-z_]+", text)}


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.processes
def test_alerts_fire_when_they_should(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    shutil.copy(Path(__file__).with_name("alerts.yml"), tmp_path)
    promtool("check", "rules", tmp_path / RULES.name)
    promtool("test", "rules", tmp_path / "alerts.yml")


def test_every_alert_is_tried() -> None:
    tried = re.findall(r"alertname: (\w+)", Path(__file__).with_name("alerts.yml").read_text())
    assert {alert["alert"] for alert in alerts()} == set(tried)


def test_the_docs_say_what_to_do_at_each_alert() -> None:
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE)
    assert headings == [alert["alert"] for alert in alerts()]


@pytest.mark.processes
def test_prometheus_understands_the_dashboard(tmp_path: Path) -> None:
    queries = [
        expression.replace("$__rate_interval", "5m").replace("$instance", ".*")
        for expression in expressions()
    ]
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(queries)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", tmp_path / "rules.yml")


def test_the_dashboard_shows_every_metric_and_no_other(declared: set[str]) -> None:
    assert named_in(" ".join(expressions())) == declared


def test_alerts_ask_for_metrics_that_exist(declared: set[str]) -> None:
    assert named_in(" ".join(alert["expr"] for alert in alerts())) <= declared


def test_the_docs_list_every_metric(declared: set[str]) -> None:
    text = (ROOT / "docs" / "operations" / "monitor.md").read_text()
    assert named_in(text.partition("## Monitoring")[2].partition("\n## ")[0]) == declared


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken
        taken |= cells
