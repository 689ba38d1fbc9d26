"""Names that a project's pattern or a URL stand in the way of."""

from typing import Any

from projects.models import Flag
from tests.support.cast import make_project
from tests.support.flags import make_flag


def test_a_move_does_not_go_round_the_naming_pattern(api: Any, shop: Any) -> None:
    make_project("other", naming_pattern="other-.*", naming_example="other-cart")
    for name, status in (("cart", 403), ("other-cart", 200)):
        make_flag(name)
        path = f"/api/admin/projects/shop/features/{name}/changeProject"
        answer = api["admin"].post(path, {"newProjectId": "other"}, format="json")
        assert answer.status_code == status, answer.text
        assert status == 200 or "naming pattern other-.*. Example: other-cart" in answer.text


def test_a_flag_named_features_can_be_deleted_by_its_name(api: Any, shop: Any) -> None:
    make_flag("features", archived=True)
    assert api["viewer"].delete("/api/admin/archive/features").status_code == 403
    assert api["admin"].delete("/api/admin/archive/features").status_code == 200
    assert not Flag.objects.exists()
    assert api["admin"].get("/api/admin/archive/features").json()["features"] == []
    assert api["admin"].delete("/api/admin/archive/features").status_code == 404
