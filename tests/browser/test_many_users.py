"""A CSV of users: uploaded, counted by flag, and downloaded with reasons, in few clicks."""

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.journeys import Clicks
from tests.support.cast import make_project
from tests.support.playground import live_flag


def test_what_every_user_of_a_file_gets(visit, transactional_db, tmp_path, check_accessible):
    make_project("shop")
    live_flag("lounge", strategies=[{"name": "userWithId", "parameters": {"userIds": "42"}}])
    file = tmp_path / "users.csv"
    file.write_text("userId,properties.plan\n42,pro\n7,\n")
    page = visit("admin", "/playground/")
    clicks = Clicks(page)

    clicks.on(page.get_by_role("link", name="Many users"))
    page.get_by_label("CSV file").set_input_files(file)
    clicks.on(page.get_by_role("button", name="Evaluate users"))
    expect(page.get_by_role("row", name="lounge")).to_contain_text("50 %")
    check_accessible(page)
    with page.expect_download() as download:
        clicks.on(page.get_by_role("link", name="Download result"))

    header, first, second = Path(download.value.path()).read_text().splitlines()
    assert header == "row,userId,flag,result,variant,reason"
    assert first.startswith("2,42,lounge,On,,")
    assert second.startswith("3,7,lounge,Off,,")
    assert clicks.count == 3
