"""Flag types that do not exist, and texts that readers of YAML 1.1 take for something else."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from yaml12 import parse_yaml

from flagadmin.client.merge import rewrite, write_new
from tests.support.as_code import FLAG, URL
from tests.support.flags import make_flag

TEXTS = (
    "no", "Yes", "on", "OFF", "y", "N", "true", "null", "~", "", "1", "1e2", "1_000", "0b1", "0o7", "012", "1:30", "190:20:30",
    "2024-01-01", "2024-01-01T00:00:00Z", "<<", "=", ".inf", ".NaN", "-1", "+5", "No way", "a: b", "#no", "- no", "|", 'say "no"',
)  # fmt: skip
DOCUMENT = {
    "name": "no",
    "values": list(TEXTS),
    "environments": {"on": {"enabled": True}},
    "note": "a\n- no\nb: on\n",
}


def read_by_both(path: Path) -> list[Any]:
    text = path.read_text()
    return [yaml.safe_load(text), parse_yaml(text)]


def test_new_files_and_changed_ones_are_read_alike_by_all(tmp_path: Path) -> None:
    path = tmp_path / "flag.yaml"
    write_new(path, DOCUMENT, "flag")
    assert read_by_both(path) == [DOCUMENT, DOCUMENT]
    path.write_text("name: cart # mine\nvalues:\n  - before\n")
    rewrite(path, DOCUMENT)
    assert read_by_both(path) == [DOCUMENT, DOCUMENT]
    assert "# mine" in path.read_text() or "cart" not in path.read_text()


@pytest.mark.django_db
def test_a_flag_type_that_does_not_exist_is_refused(api: Any, shop: Any) -> None:
    body = {
        "flags": [{"project": "shop", "flag": {**FLAG, "type": "relase"}}],
        "segments": [{"name": "beta-users", "constraints": []}],
    }
    for path in (f"{URL}/plan", f"{URL}/apply"):
        answer = api["admin"].post(path, body)
        assert answer.status_code == 400, path
        assert "flags[0].flag.type" in answer.text
        assert "Available: " in answer.text
        assert "release" in answer.text
    make_flag("cart")
    for method, path in (("post", "features"), ("put", "features/cart"), ("patch", "features/cart")):
        sent: Any = {"name": "guide" if method == "post" else "cart", "type": "relase"}
        if method == "patch":
            sent = [{"op": "replace", "path": "/type", "value": "relase"}]
        answer = getattr(api["admin"], method)(f"/api/admin/projects/shop/{path}", sent)
        assert answer.status_code == 400, (method, answer.text)


@pytest.mark.django_db
def test_a_flag_keeps_a_type_that_it_has_already(api: Any, shop: Any) -> None:
    make_flag("cart", type="custom")
    read = api["admin"].get(URL, {"project": "shop"}).json()
    [entry] = read["flags"]
    changed = {"flags": [{**entry, "flag": entry["flag"] | {"description": "New"}}]}
    assert api["admin"].post(f"{URL}/apply", changed).status_code == 200
