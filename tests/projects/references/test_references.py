"""Where flags are in the code: found by the command, reported from CI, shown beside the flag."""

import json
from pathlib import Path
from typing import Any

import pytest

from flagadmin.client import main as client
from flagadmin.client.references import find_references, list_files
from flagadmin.core.audit.models import AuditEvent
from projects.models import CodeReference, CodeReport, Flag
from tests.support.cast import make_project, make_token
from tests.support.flags import make_flag
from tests.support.for_each import for_each

URL = "/api/admin/code-references"
LINK = "https://git.example.com/blob/{revision}/{path}#L{line}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {
        "src/cart.ts": 'if (isEnabled("cart-hint")) {\n  old-cart-hint cart-hints\n}\nflags.cart-hint.on\n',
        "src/binary.bin": "cart-hint\0",
        ".gitignore": "build/\n*.log\n!kept.log\n",
        "build/out.js": "cart-hint",
        "a.log": "cart-hint",
        "kept.log": "cart-hint",
        "src/.gitignore": "made.ts\n",
        "src/made.ts": "cart-hint",
        ".git/config": "cart-hint",
        "node_modules/x.js": "cart-hint",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "link.ts").symlink_to(tmp_path / "src" / "cart.ts")
    return tmp_path


def test_names_are_found_as_words_in_files_that_git_keeps(tree: Path) -> None:
    places, _ = find_references(tree, {"cart-hint", "other"})
    assert places == {
        "cart-hint": [
            {"path": "kept.log", "line": 1},
            {"path": "src/cart.ts", "line": 1},
            {"path": "src/cart.ts", "line": 4},
        ]
    }
    listed = {path.relative_to(tree).as_posix() for path in list_files(tree)}
    assert listed == {".gitignore", "kept.log", "src/.gitignore", "src/binary.bin", "src/cart.ts"}


def report(api: Any, who: str = "owner", **more: Any) -> Any:
    body = {
        "repository": "shop/web",
        "revision": "4f2a",
        "link": LINK,
        "references": [{"flag": "cart-hint", "places": [{"path": "src/a b.ts", "line": 12}]}],
    }
    return api[who].post(URL, body | more, format="json")


@pytest.fixture
def flag(shop: Any) -> Flag:
    return make_flag("cart-hint", project=shop)


@pytest.mark.django_db
def test_a_report_is_shown_on_the_flags_page_and_by_api(api: Any, browse: Any, flag: Flag) -> None:
    assert report(api).json() == {"flags": 1, "ignored": 0}
    [reference] = api["viewer"].get("/api/admin/projects/shop/features/cart-hint/references").json()
    url = "https://git.example.com/blob/4f2a/src/a%20b.ts#L12"
    assert reference["places"] == [{"path": "src/a b.ts", "line": 12, "url": url}]
    page = browse("viewer").get("/projects/shop/features/cart-hint/").content.decode()
    assert f'href="{url}"' in page
    assert AuditEvent.objects.filter(type="code-references-reported", subject="shop/web").count() == 1


@pytest.mark.django_db
def test_a_report_replaces_the_last_one(api: Any, flag: Flag) -> None:
    report(api)
    report(api, references=[])
    assert CodeReport.objects.count() == 1
    assert not CodeReference.objects.exists()


@pytest.mark.django_db
def test_flags_of_others_stay_as_they_were_reported(api: Any, flag: Flag) -> None:
    make_flag("elsewhere", project=make_project("books"))
    both = [
        {"flag": name, "places": [{"path": "a", "line": 1}]} for name in ("cart-hint", "elsewhere", "unknown")
    ]
    assert report(api, "admin", references=both).json() == {"flags": 2, "ignored": 1}
    assert report(api, references=[]).json() == {"flags": 0, "ignored": 0}
    assert [row.flag.name for row in CodeReference.objects.all()] == ["elsewhere"]


@pytest.mark.django_db
def test_more_places_than_are_kept_are_counted(api: Any, flag: Flag) -> None:
    places = [{"path": "a", "line": line} for line in range(1, 151)]
    report(api, references=[{"flag": "cart-hint", "places": places}])
    [reference] = api["viewer"].get("/api/admin/projects/shop/features/cart-hint/references").json()
    assert (reference["count"], len(reference["places"])) == (150, 100)


@pytest.mark.django_db
@for_each(
    ("more", "path"),
    [
        ({"link": "javascript:alert(1)"}, "link"),
        ({"link": "https://x.example/{branch}"}, "link"),
        ({"repository": ""}, "repository"),
        ({"references": [{"flag": "cart-hint", "places": [{"path": "a", "line": 0}]}]}, "references[0].places[0].line"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(api: Any, flag: Flag, more: Any, path: str) -> None:
    refused = report(api, **more)
    assert (refused.status_code, refused.json()["details"][0]["path"]) == (400, path)


@pytest.mark.django_db
def test_the_stale_page_and_its_task_name_the_places(api: Any, browse: Any, flag: Flag) -> None:
    Flag.objects.update(stale=True)
    report(api)
    [stale] = api["viewer"].get("/api/admin/stale-flags").json()["flags"]
    assert stale["inCode"] == [{"repository": "shop/web", "count": 1}]
    assert "- shop/web: src/a b.ts:12" in stale["task"]
    assert (stale["canLeaveTheCode"], stale["canBeArchived"]) == (True, False)
    assert "1 place in shop/web" in browse("owner").get("/stale-flags/", follow=True).content.decode()
    report(api, references=[])
    assert api["viewer"].get("/api/admin/stale-flags").json()["flags"][0]["canBeArchived"]


@pytest.mark.django_db(transaction=True)
def test_the_command_finds_and_reports(
    tree: Path, live_server: Any, flag: Flag, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("FLAGADMIN_URL", live_server.url)
    monkeypatch.setenv("FLAGADMIN_TOKEN", make_token("admin"))
    assert client.run(["references", str(tree), "--dry-run"]) == 0
    assert "src/cart.ts:4: cart-hint" in capsys.readouterr().out
    assert not CodeReport.objects.exists()
    assert client.run(["references", str(tree), "--repository", "shop/web", "--link", LINK]) == 0
    assert "Reported 1 of 1 flags" in capsys.readouterr().out
    assert CodeReference.objects.get().count == 3
    assert client.run(["stale", "--all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert client.run(["references", str(tree / "nowhere")]) == 1
