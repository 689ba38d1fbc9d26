"""A DRF router for the API's view sets, and a path converter for names with any characters: ``<text:name>``."""

from typing import Any

from django.urls import register_converter
from django.urls.converters import StringConverter
from rest_framework.routers import DynamicRoute, Route, SimpleRouter


class TextConverter(StringConverter):
    """Text with slashes and line breaks. Django's ``path`` has no line breaks."""

    regex = r"[\s\S]+"


register_converter(TextConverter, "text")


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
