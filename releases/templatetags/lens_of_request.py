"""``{% tell_request change_request groups as noticed_by %}``: what the lens gets now, and after the request."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.template import Library
from django.utils import timezone

from flagadmin.core.errors import AppError
from playground.lens import Noticed, evaluate_for, tell
from releases.models import ChangeRequest
from releases.requests.impact import predict_request
from releases.requests.queries import CLOSED

register = Library()
MAX_FLAGS = 50


@register.simple_tag(takes_context=True)
def tell_request(
    context: Mapping[str, Any], request: ChangeRequest, groups: Sequence[Any]
) -> Mapping[str, Noticed]:
    """By the name of the flag; nothing once the request is closed, or if it cannot be applied."""
    lens = context.get("lens")
    if not lens or request.state in CLOSED:
        return {}
    try:
        states = predict_request(request)
    except AppError:
        return {}
    now, environment = timezone.now(), request.environment_id
    names = [group.feature for group in groups if group.feature][:MAX_FLAGS]
    places = [(request.project_id, environment, name) for name in names]
    before, after = (list(evaluate_for(lens, read, environment, places, now)) for read in states)
    return {
        place[2]: Noticed(place[2], tell(old, lens, place), tell(new, lens, place))
        for place, old, new in zip(places, before, after, strict=True)
    }
