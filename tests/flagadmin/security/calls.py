"""Calls of routes, each with a body that is valid there."""

from tests.flagadmin.security.batches import undone
from tests.flagadmin.security.routes import METHODS, Route
from tests.flagadmin.security.world import address, body_for

# What a viewer may send: it reads, checks, or concerns the viewer alone.
HARMLESS = {
    ("post", "/api/admin/constraints/validate"),
    ("post", "/api/admin/context/validate"),
    ("post", "/api/admin/environments/validate"),
    ("post", "/api/admin/feedback"),
    ("put", "/api/admin/feedback/<str:feedback_id>"),
    ("post", "/api/admin/record-ui-error"),
    ("post", "/api/admin/splash/<str:splash_id>"),
    ("post", "/api/admin/events/search"),
    ("post", "/api/admin/features-batch/compare"),
    ("post", "/api/admin/features-batch/export"),
    ("post", "/api/admin/features-batch/validate"),
    ("post", "/api/admin/features/validate"),
    ("post", "/api/admin/flag-views"),
    ("delete", "/api/admin/flag-views/<str:view_id>"),
    ("post", "/api/admin/playground"),
    ("post", "/api/admin/playground/advanced"),
    ("post", "/api/admin/playground/assignments"),
    ("post", "/api/admin/playground/change-request/<str:request_id>"),
    ("post", "/api/admin/playground/check-expectations"),
    ("post", "/api/admin/playground/compare"),
    ("post", "/api/admin/playground/incidents"),
    ("post", "/api/admin/playground/users"),
    ("delete", "/api/admin/playground/users/<str:run_id>"),
    ("post", "/api/admin/projects/<str:project_id>/context/validate"),
    ("post", "/api/admin/projects/<str:project_id>/features/<str:name>/analyses"),
    # Whoever may read a project may propose and comment; the rest is the author's, or of the state, and tested there.
    ("post", "/api/admin/projects/<str:project_id>/environments/<str:environment>/change-requests"),
    ("delete", "/api/admin/projects/<str:project_id>/change-requests/<str:request_id>"),
    ("put", "/api/admin/projects/<str:project_id>/change-requests/<str:request_id>/state"),
    ("put", "/api/admin/projects/<str:project_id>/change-requests/<str:request_id>/title"),
    ("put", "/api/admin/projects/<str:project_id>/change-requests/<str:request_id>/approvers"),
    ("post", "/api/admin/projects/<str:project_id>/change-requests/<str:request_id>/comments"),
    ("post", "/api/admin/projects/<str:project_id>/change-requests/<str:request_id>/revert"),
    ("put", "/api/admin/projects/<str:project_id>/change-requests/<str:request_id>/changes/<str:change_id>"),
    (
        "delete",
        "/api/admin/projects/<str:project_id>/change-requests/<str:request_id>/changes/<str:change_id>",
    ),
    ("post", "/api/admin/projects/<str:project_id>/favorites"),
    ("delete", "/api/admin/projects/<str:project_id>/favorites"),
    ("post", "/api/admin/projects/<str:project_id>/features/<str:name>/favorites"),
    ("delete", "/api/admin/projects/<str:project_id>/features/<str:name>/favorites"),
    ("post", "/api/admin/projects/validate"),
    ("post", "/api/admin/segments/validate"),
    ("post", "/api/admin/tag-types/validate"),
    ("post", "/api/admin/user-admin/validate-password"),
    ("post", "/api/admin/user/change-password"),
    ("post", "/api/admin/user/tokens"),
    ("delete", "/api/admin/user/tokens/<str:token_id>"),
}


def calls(of: list[Route], methods=METHODS):
    return [(method, route) for route in of for method in methods if method in route.methods]


def send(caller, method, route, world):
    """The answer to a call with the body that BODIES has for it, else with an empty one; undone afterwards."""
    with undone():
        return getattr(caller, method)(address(route, world), body_for(method, route, world))
