"""A switch says on or off: anything else must not turn a flag off."""

from projects.models import FlagEnvironment
from tests.support.flags import make_flag, switch_on
from tests.support.for_each import for_each

ONE = "/projects/shop/features/cart/switch"


@for_each("path", [ONE, "/flags/switch"])
@for_each("enabled", [{}, {"enabled": ""}, {"enabled": "yes"}, {"enabled": "true"}, {"do": "on"}])
@for_each("environment", ["development", "production"])
def test_a_switch_without_a_value_is_refused(browse, shop, path, enabled, environment):
    switch_on(make_flag("cart"), environment)
    form = {"environment": environment, "name": "cart", "confirmed": "yes"} | enabled
    for given in (form, {name: value for name, value in form.items() if name != "confirmed"}):
        answer = browse("admin").post(path, given)
        assert answer.status_code == 400
        assert "must be on or off" in answer.text
    assert FlagEnvironment.objects.get(environment=environment).enabled
