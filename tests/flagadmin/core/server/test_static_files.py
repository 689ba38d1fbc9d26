"""`manage.py serve` answers static files with hashed names, compressed, and cacheable forever."""

import gzip
import re
import shutil
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.http import HttpResponseBase
from django.templatetags.static import static
from django.test import Client, override_settings

from flagadmin.core.server import static_files
from flagadmin.core.server.static_files import IMPORT, SOURCES, collect_static_files, join_files

REQUESTS, BYTES = 6, 69_000  # of a page without its HTML, at the first visit
PAGES = ["/login/", "/admin/login/", "/api/docs/"]


@pytest.fixture(scope="module")
def collected_once(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("collected") / "static"
    with override_settings(**as_served(root)):
        collect_static_files()
    return root


@pytest.fixture
def collected(settings, collected_once, tmp_path) -> Path:
    root = tmp_path / "static"
    shutil.copytree(collected_once, root)
    for name, value in as_served(root).items():
        setattr(settings, name, value)
    return root


def as_served(root: Path) -> dict[str, Any]:
    storage = {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"}
    return {
        "STATIC_ROOT": root,
        "STORAGES": settings.STORAGES | {"staticfiles": storage},
        "WHITENOISE_USE_FINDERS": False,
        "WHITENOISE_AUTOREFRESH": False,
    }


def assets(url: str) -> list[str]:
    return re.findall(r'(?:href|src)="(/static/[^"]+)"', Client().get(url, follow=True).text)


def get(url: str, encodings: str = "identity") -> tuple[HttpResponseBase, bytes]:
    with closing(Client().get(url, headers={"Accept-Encoding": encodings})) as response:
        return response, response.getvalue()


@pytest.mark.parametrize("address", PAGES)
def test_every_asset_of_a_page_is_there_and_cached_for_good(collected, db, address):
    found = assets(address)

    assert len(found) >= 4
    for asset in found:
        answer, _ = get(asset)
        assert answer.status_code == 200, asset
        assert answer["Cache-Control"] == "max-age=315360000, public, immutable"
        assert "default-src" in answer["Content-Security-Policy"]


def test_the_style_sheet_has_all_styles_in_it(collected, db):
    styles = get(static("flagadmin/app.css"))[1].decode()

    assert "@import" not in styles
    assert all(path.read_text() in styles for path in (SOURCES / "styles").glob("*.css"))


def test_the_script_has_all_modules_in_it_each_after_what_it_imports():
    script = join_files(SOURCES / "app.js")
    names = IMPORT.findall((SOURCES / "app.js").read_text())

    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    assert sorted(names) == sorted(f"./js/{path.name}" for path in (SOURCES / "js").glob("*.js"))
    for position, name in enumerate(names):
        needed = IMPORT.findall((SOURCES / name).read_text())
        assert {f"./js/{Path(other).name}" for other in needed} <= set(names[:position]), name


def test_no_two_modules_declare_the_same_name():
    declared = re.findall(
        r"^(?:async )?(?:function|const|let) (\w+)", join_files(SOURCES / "app.js"), re.MULTILINE
    )

    assert len(declared) > 20
    assert sorted(declared) == sorted(set(declared))


def test_a_file_is_sent_compressed(collected, db):
    styles = static("flagadmin/app.css")
    plain, content = get(styles)
    packed, compressed = get(styles, "gzip, br")

    assert "Content-Encoding" not in plain.headers
    assert packed["Content-Encoding"] == "gzip"
    assert packed["Vary"] == plain["Vary"] == "Accept-Encoding"
    assert gzip.decompress(compressed) == content
    assert packed["Content-Type"] == plain["Content-Type"]


def test_a_page_takes_few_and_small_files(collected, db):
    found = assets("/login/")
    sent = [get(asset, "gzip")[1] for asset in found]

    assert len(found) <= REQUESTS
    assert sum(map(len, sent)) <= BYTES


def test_nothing_is_collected_again_while_nothing_changed(collected, monkeypatch):
    monkeypatch.setattr(static_files, "call_command", lambda *args, **options: pytest.fail("collected again"))
    collect_static_files()


def test_a_changed_file_gets_another_url_and_the_old_one_still_works(collected, settings, db, tmp_path):
    before = static("flagadmin/app.css")
    (tmp_path / "source" / "flagadmin").mkdir(parents=True)
    (tmp_path / "source" / "flagadmin" / "app.css").write_text("body { color: black }")
    settings.STATICFILES_DIRS = [tmp_path / "source"]  # searched first
    collect_static_files()
    after = static("flagadmin/app.css")

    assert before != after
    assert get(after)[1] == b"body { color: black }"
    assert get(before)[0].status_code == 200


def test_servers_that_start_at_once_collect_once(settings, collected, monkeypatch):
    (collected / "source.sha256").write_text("")
    calls = []
    monkeypatch.setattr(static_files, "call_command", lambda *args, **options: calls.append(args))
    threads = [threading.Thread(target=collect_static_files) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(calls) == 1


@pytest.mark.parametrize("address", ["/static/nothing.css", "/static/flagadmin/../settings.py"])
def test_nothing_else_is_there(collected, db, address):
    assert get(address)[0].status_code == 404
