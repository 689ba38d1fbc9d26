"""A DRF router for the API's view sets: path converters, no trailing slashes, more methods per URL."""

from typing import Any

from rest_framework.routers import DynamicRoute, Route, SimpleRouter

from flagadmin.core.http import converters  # noqa: F401 - prefixes and lookups may have <text:…>


class Router(SimpleRouter):
    """Routes with Django's path converters and no trailing slash: ``features``, ``features/<str:name>``.

    ``prefix`` may contain placeholders (``projects/<str:project_id>/features``). In addition to DRF's
    methods, PUT replaces a whole list, PATCH edits it, DELETE clears it, and POST to an object's URL adds to
    the object.
    """

    routes: list[Route | DynamicRoute] = [
        Route(
            url=r"{prefix}{trailing_slash}",
            mapping={"get": "list", "post": "create", "put": "replace", "patch": "edit", "delete": "clear"},
            name="{basename}-list",
            detail=False,
            initkwargs={"suffix": "List"},
        ),
        *SimpleRouter.routes[1:2],
        *SimpleRouter.routes[3:],  # before a lookup that may contain slashes
        Route(
            url=r"{prefix}/{lookup}{trailing_slash}",
            mapping={
                "get": "retrieve",
                "post": "add",
                "put": "update",
                "patch": "partial_update",
                "delete": "destroy",
            },
            name="{basename}-detail",
            detail=True,
            initkwargs={"suffix": "Instance"},
        ),
    ]

    def __init__(self) -> None:
        super().__init__(trailing_slash=False, use_regex_path=False)

    def get_default_basename(self, viewset: Any) -> str:
        return viewset.__name__
