"""What every endpoint of the admin API is made of. To add one:

1. In the subject's ``api.py``, write the serializers of its bodies and answers, and a ``ViewSet`` with the methods
   ``list``, ``create``, ``retrieve``, ``update``, ``partial_update`` and ``destroy`` where they fit, and ``@action``
   for the rest. (``replace``, ``edit`` and ``clear`` are PUT, PATCH and DELETE of the whole list, ``add`` is POST to a
   row.)
2. Name in ``permissions`` what each action that changes something needs: a permission, a tuple if any one of several
   is enough, or ``None`` if whoever can see the resource may do it. What lies in a project or on a flag extends
   ``InProjectViewSet`` or ``OnFlagViewSet`` of ``projects.viewsets``, which look up what the URL names. Elsewhere,
   override ``authorise``.
3. Write the action as a recipe: ``self.validated(Body)``, one call of ``actions``, ``Response``. 401, 404 and 403 have
   been ruled out by then; ``actions`` checks again under its locks, because rights and rows may have changed meanwhile.
4. Describe it with ``extend_schema``: ``operation_id``, ``request``, ``responses`` of success, and a 4xx answer only
   where it needs more than the usual text (``409: refusal(409, "…")``). ``tags`` stand on the class; the docstring is
   the description, one imperative sentence first.
5. Register the class in the app's ``api_urls.py``, and each action that changes something in
   ``tests/flagadmin/security/permissions.tsv``.

>>> class TagTypeViewSet(ViewSet):
...     tags = ("Tags",)
...     lookup_url_kwarg = "name"
...     permissions = {"create": Permission.CREATE_TAG_TYPE}
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured
from rest_framework import serializers, viewsets

from groups.access import Caller
from groups.authentication import ApiRequest
from groups.permissions import Permission

READS = frozenset({"get", "head", "options"})


class ViewSet(viewsets.ViewSet):
    """Finds what the URL names and checks the action's permission before the body is read."""

    request: ApiRequest
    tags: ClassVar[tuple[str, ...]] = ()
    permissions: ClassVar[Mapping[str, Permission | tuple[Permission, ...] | None]] = {}

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Any:
        for method, action in (actions or {}).items():
            if method not in READS and action not in cls.permissions:
                raise ImproperlyConfigured(f"{cls.__name__}.permissions does not say what {action} needs.")
        return super().as_view(actions, **initkwargs)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            # The framework binds the actions to the view set itself: a circle that would keep the body in memory.
            for method in self.action_map:
                vars(self).pop(method, None)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action in (None, "metadata"):  # a method that is not allowed, and OPTIONS
            return
        self.authorise(*args, **kwargs)

    def authorise(self, *args: Any, **kwargs: Any) -> None:
        """Raises NotFound, NoAccess. ``kwargs`` are the placeholders of the URL."""
        self.check_permission()

    def check_permission(self, *, project: str | None = None, environment: str | None = None) -> None:
        """Raises NoAccess unless the caller holds what this action needs."""
        if needed := self.needed_permissions:
            self.caller.check_any(needed, project=project, environment=environment)

    @property
    def needed_permissions(self) -> tuple[Permission, ...]:
        """Any one of these will do; nothing is needed if there are none."""
        needed = self.permissions.get(self.action) or ()
        return needed if isinstance(needed, tuple) else (needed,)

    @property
    def caller(self) -> Caller:
        return self.request.user

    def validated(self, body: type[serializers.BaseSerializer], **options: Any) -> Any:
        """The request's body as this serializer reads it. Raises ValidationError."""
        serializer = body(data=self.request.data, **options)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data
