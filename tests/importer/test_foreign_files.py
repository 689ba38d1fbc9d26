"""Files that are no JSON, or no import: what they are, and what to do."""

import gzip
import io
import json
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from flagadmin.core.errors import Conflict, ValidationError
from groups.access import Caller
from importer.apply.undo import undo_import
from importer.converting.convert import convert_file
from importer.models import ImportRun
from projects.models import Flag
from tests.importer.console import bring
from tests.support.import_bodies import body

IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"


def zipped(text: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("flags.json", text)
    return made.getvalue()


TEXT = json.dumps(body("cart") | {"comment": "Für alle"}, ensure_ascii=False)
FOREIGN = {
    "UTF-16 text. Save it as UTF-8": (
        TEXT.encode("utf-16"),
        TEXT.encode("utf-16-le"),
        TEXT.encode("utf-16-be"),
    ),
    "UTF-32 text. Save it as UTF-8": (TEXT.encode("utf-32"), TEXT.encode("utf-32-be")),
    "perhaps Latin-1": (TEXT.encode("latin-1"),),
    "gzip data. Unpack it, or send the header Content-Encoding: gzip": (gzip.compress(TEXT.encode()),),
    "a ZIP archive. Unpack it": (zipped(TEXT),),
    "an HTML page, such as a login page": (b"\n<!DOCTYPE html><html>", b"<html lang=en>"),
    "is not valid JSON": (b"{", b"flags: []"),
}


def post(api: Any, path: str, content: bytes) -> Any:
    return api["admin"].post(path, content, content_type="application/json")


def test_a_body_that_is_no_json_is_named_for_what_it_is(api: Any, shop: Any) -> None:
    unlike = []
    for said, contents in FOREIGN.items():
        for content in contents:
            for path in (IMPORT, VALIDATE, "/api/admin/projects"):
                answer = post(api, path, content)
                if answer.status_code != 400 or said not in answer.json()["message"]:
                    unlike.append((said, path, answer.status_code, answer.text[:200]))
    assert unlike == []


def test_an_uploaded_file_is_named_too(browse: Any, shop: Any) -> None:
    page = browse("admin").post(
        "/import/",
        {"project": "shop", "environment": "development", "file": io.BytesIO(TEXT.encode("utf-16"))},
    )
    assert "UTF-16 text. Save it as UTF-8" in page.content.decode()


def test_members_that_are_there_twice_are_said(api: Any, shop: Any) -> None:
    text = json.dumps(body("cart")).replace(
        '{"name": "cart"}', '{"name": "cart", "stale": true, "stale": false}'
    )
    answer = post(api, VALIDATE, text.encode()).json()
    assert answer["errors"] == []
    assert "stale of cart is there 2 times in one object: the last counts." in str(answer["warnings"])
    tricky = body("cart")
    tricky["data"]["features"][0]["description"] = '"a":"b", {"\\":'
    assert "times in one object" not in post(api, VALIDATE, json.dumps(tricky).encode()).text


def test_state_files_of_unleash_4_are_recognized(api: Any, shop: Any) -> None:
    flag = {"name": "cart", "enabled": True, "strategies": [{"name": "default"}]}
    for document in (
        {"version": 1, "features": [flag], "strategies": []},
        {
            "version": 4,
            "features": [{"name": "cart"}],
            "projects": [],
            "environments": [],
            "featureStrategies": [],
        },
    ):
        answer = post(api, IMPORT, json.dumps(document).encode())
        assert answer.status_code == 400
        assert "This is a state file of Unleash 4" in answer.json()["message"], document


STATE = """version: 4
features:
  - name: cart
    strategies: [{name: default}]
projects: []
"""
EXPORT = "features: [{name: cart}]\nfeatureStrategies: []\ntagTypes: []\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("state.yml", STATE, "This is a state file of Unleash 4"),
        ("state", STATE, "This is a state file of Unleash 4"),
        (
            "state.json",
            json.dumps({"version": 1, "features": [], "strategies": []}),
            "state file of Unleash 4",
        ),
        ("export.yaml", EXPORT, "Imports read exports in JSON"),
        ("export", EXPORT, "Imports read exports in JSON"),
    ],
)
def test_uploaded_files_that_are_no_json_exports(
    browse: Any, shop: Any, name: str, text: str, said: str
) -> None:
    page = bring(browse("admin"), "", file=SimpleUploadedFile(name, text.encode()))
    assert said in page.content.decode()


def test_converting_a_state_file_names_it() -> None:
    with pytest.raises(ValidationError, match="This is a state file of Unleash 4"):
        convert_file(STATE.encode())


def test_faults_of_a_body_are_said_before_an_unknown_project(api: Any, shop: Any) -> None:
    document = body("cart", project="moon")
    assert post(api, IMPORT, json.dumps(document).encode()).status_code == 404
    document["data"]["features"].append({"name": None})
    answer = post(api, IMPORT, json.dumps(document).encode())
    assert answer.status_code == 400
    assert "data.features[1].name" in answer.text


def test_undoing_names_all_that_has_changed_and_the_day(api: Any, shop: Any) -> None:
    api["admin"].post(IMPORT, body("cart", "guide"))
    for name in ("cart", "guide"):
        path = f"/api/admin/projects/shop/features/{name}"
        api["admin"].put(path, {"name": name, "description": "New"})
    [stored] = ImportRun.objects.all()
    with pytest.raises(Conflict) as refused:
        undo_import(stored.pk, caller=Caller.system())
    message = refused.value.message
    day = f"{Flag.objects.get(name='cart').created_at:%-d %B}"
    assert message.startswith(f"cart was changed on {day} at ")
    assert "Also changed since: guide." in message
