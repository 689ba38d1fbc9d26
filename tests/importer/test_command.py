"""`manage.py import_flags`"""

import json

import pytest
from django.core.management import CommandError, call_command

from importer.models import ImportRun
from projects.models import Flag
from tests.support.import_bodies import body, strategy

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(shop, tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(body("one", featureStrategies=[strategy("one")])))
    return path


def test_imports(file, capsys):
    call_command("import_flags", str(file))
    assert Flag.objects.get().name == "one"
    assert ImportRun.objects.get().source == "command"
    assert "create   one" in capsys.readouterr().out


def test_check_writes_nothing(file, capsys):
    call_command("import_flags", str(file), "--check")
    assert not Flag.objects.exists()
    assert "1 create" in capsys.readouterr().out


def test_takes_another_target(file):
    call_command("import_flags", str(file), "--project", "default", "--environment", "production")
    assert Flag.objects.get().project_id == "default"


def test_writes_a_report(file, tmp_path):
    call_command("import_flags", str(file), "--check", "--report", str(tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_bytes())
    assert report["flags"] == [
        {"name": "one", "action": "create", "summary": "release, off, strategy: On for everyone"}
    ]


@pytest.mark.parametrize("arguments", [[], ["--check"]])
def test_a_refusal_ends_with_2(file, arguments, capsys):
    file.write_text(json.dumps(body("apple pay")))
    with pytest.raises(CommandError) as refusal:
        call_command("import_flags", str(file), *arguments)
    assert refusal.value.returncode == 2
    assert not Flag.objects.exists()


def test_a_missing_file(shop):
    with pytest.raises(CommandError, match="Cannot read"):
        call_command("import_flags", "nowhere.json")
