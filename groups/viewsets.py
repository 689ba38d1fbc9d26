"""The base class of the admin API's endpoints. To add an endpoint:

1. In the subject's ``api.py``, write the serializers of its bodies and responses, and a ``ViewSet`` with the
   methods ``list``, ``create``, ``retrieve``, ``update``, ``partial_update`` and ``destroy`` that apply. Use
   ``@action`` for others. (``replace``, ``edit`` and ``clear`` are PUT, PATCH and DELETE of a whole list; ``add`` is
   POST to a single row.)
2. In ``permissions``, declare the requirement of each action that writes: a permission, a tuple if any one of them
   is enough, or ``None`` if every caller who can read the resource may do it. For resources in a project or
   on a flag, extend ``InProjectViewSet`` or ``OnFlagViewSet`` from ``projects.project_scope``, which load the objects
   named in the URL. For others, override ``authorize``.
3. In the action, call ``self.validated(Body)``, then one function of ``actions``, and return a ``Response``.
   401, 404 and 403 have been ruled out by then. ``actions`` checks again under its locks, because rights and
   rows may have changed since.
4. Describe it with ``extend_schema``: ``operation_id``, ``request``, ``responses`` for success, and a 4xx
   response only if its text differs from the default (``409: refusal(409, "…")``). ``tags`` are set on the
   class. The docstring is the description; it begins with an imperative sentence.
5. Register the class in the app's ``api_urls.py``, and each action that writes in
   ``tests/flagadmin/security/permissions.tsv``.

>>> class TagTypeViewSet(ViewSet):
...     tags = ("Tags",)
...     lookup_url_kwarg = "name"
...     permissions = {"create": Permission.CREATE_TAG_TYPE}
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from rest_framework import serializers, viewsets
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.views import APIView

from flagadmin.core.change_checks.comments import make_comment_reader
from flagadmin.core.change_checks.override import ignores_expectations
from flagadmin.core.change_options import changing
from flagadmin.core.errors import NoAccess, Problem
from flagadmin.core.http.fields import Body
from flagadmin.core.http.request_bodies import FreedBodies
from flagadmin.core.unreadable_values import HEADER, make_header
from groups.access import Caller
from groups.authentication import ApiRequest
from groups.permissions import Permission

READS = frozenset({"get", "head", "options"})


class ViewSet(FreedBodies, viewsets.ViewSet):
    """Loads the objects in the URL and checks the action's permission before the body is read."""

    request: ApiRequest
    tags: ClassVar[tuple[str, ...]] = ()
    body_limit: int | None = None  # bytes; None is the general limit
    permissions: ClassVar[Mapping[str, Permission | tuple[Permission, ...] | None]] = {}
    _kept: Sequence[Problem] = ()

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Any:
        for method, action in (actions or {}).items():
            if method not in READS and action not in cls.permissions:
                raise ImproperlyConfigured(f"{cls.__name__}.permissions does not say what {action} needs.")
        return super().as_view(actions, **initkwargs)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with ExitStack() as self._ended:
                return super().dispatch(request, *args, **kwargs)
        finally:
            # DRF sets bound methods on the view set: a reference cycle that would keep the request body in
            # memory.
            for method in self.action_map:
                vars(self).pop(method, None)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action in (None, "metadata"):  # an unsupported method, or OPTIONS
            return
        self.authorize(*args, **kwargs)
        ignores = ignores_expectations(request)
        if request.method not in SAFE_METHODS:
            self._kept, comment = [], make_comment_reader(request)
            self.caller.skips_requests, self.caller.breaks_expectations = True, ignores
            options = changing(comment=comment, keeps_unreadable=True, unreadable=self._kept)
            self._ended.enter_context(options)

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        if self._kept and response.status_code < 400:
            response[HEADER] = make_header(self._kept)
        return response

    def authorize(self, *args: Any, **kwargs: Any) -> None:
        """Raises NotFound, NoAccess. ``kwargs`` are the URL's parameters."""
        self.check_permission()

    def check_permission(self, *, project: str | None = None, environment: str | None = None) -> None:
        """Raises NoAccess unless the caller holds a permission that this action requires."""
        if needed := self.needed_permissions:
            self.caller.check_any(needed, project=project, environment=environment)

    @property
    def needed_permissions(self) -> tuple[Permission, ...]:
        """The permissions of which the caller needs any one. If empty, none is needed."""
        needed = self.permissions.get(self.action) or ()
        return needed if isinstance(needed, tuple) else (needed,)

    @property
    def caller(self) -> Caller:
        return self.request.user

    def validated(self, body: type[serializers.BaseSerializer], **options: Any) -> Any:
        """The request's body, validated by this serializer. Raises ValidationError."""
        serializer = body(data=self.request.data, **options)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data


class OpenView(FreedBodies, APIView):
    """Needs no token. Accepts only JSON, which browsers do not send across sites, and refuses other origins."""

    tags: ClassVar[tuple[str, ...]] = ("Login",)
    authentication_classes = ()
    permission_classes = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        check_origin(request._request)

    def validated(self, body: type[Body]) -> Any:
        serializer = body(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data


def check_origin(request: HttpRequest) -> None:
    """Raises NoAccess for a request from another site's page, which could log its visitors in or out."""
    origin = request.headers.get("Origin")
    own_origin = f"{request.scheme}://{request.get_host()}"
    if origin is not None and origin not in (own_origin, *settings.CSRF_TRUSTED_ORIGINS):
        raise NoAccess("Pages of other origins cannot use this.")
