"""Every form that edits a stored object: who may, three things to send, and what is told of the first."""

from groups.models import Group, Role
from integrations.models import SignalRule, SignalSource
from playground.models import SavedContext
from projects.models import (
    ContextField,
    Environment,
    Flag,
    FlagLink,
    ListSource,
    PayloadSchema,
    Project,
    ProjectEnvironment,
    Segment,
    StrategyType,
    TagType,
)
from tests.support.cast import make_user
from tests.support.flags import add_strategy
from tests.support.receiver import make_integration
from tests.support.scenery import make_vocabulary

FLAG = "/projects/shop/features/cart/"


class Strategy:
    who = "member"
    first, second, third = (
        {"p-rollout": share, "p-stickiness": "userId", "title": "Ours", "disabled": "on", "confirmed": "yes"}
        for share in ("10", "20", "30")
    )
    told = "admin changed a strategy of cart in production"
    says = "Stored now: On for 10 % of users, by userId. (Ours, disabled)"

    def __init__(self, flag):
        made = add_strategy(flag, "production", "flexibleRollout", parameters={"rollout": "1"})
        self.url = f"{FLAG}strategies/edit?environmentId=production&strategyId={made.pk}"
        self.row = made

    def stored(self):
        self.row.refresh_from_db()
        return self.row.parameters["rollout"]


class OfShare(Strategy):
    first, second, third = ({"share": share} for share in ("10", "20", "30"))
    says = "Stored now: On for 10 % of users"

    def __init__(self, flag):
        super().__init__(flag)
        self.url = f"{FLAG}share?environmentId=production"


class Variants:
    who = "member"
    first, second, third = ({"v": "0", "v-0-name": name, "confirmed": "yes"} for name in ("10", "20", "30"))
    told = "admin changed the variants of cart in production"
    says = "Stored now: Variants: 10 100 %"

    def __init__(self, flag):
        self.url = f"{FLAG}variants?environmentId=production"
        self.row = flag.environments.get(environment="production")

    def stored(self):
        self.row.refresh_from_db()
        return self.row.variants[0]["name"]


class OfSegment:
    who = "editor"
    first, second, third = (
        {"name": "vip", "c": "0", "c-0-field": "plan", "c-0-operator": "STR_CONTAINS", "c-0-values": share}
        for share in ("10", "20", "30")
    )
    told = "admin changed segment vip"
    says = "Stored now: plan is a string containing 10. (vip, for all projects)"

    def __init__(self, flag):
        make_vocabulary()
        self.row = Segment.objects.create(name="vip", constraints=[])
        self.url = f"/segments/{self.row.pk}/"

    def stored(self):
        self.row.refresh_from_db()
        return self.row.constraints[0]["values"][0]


class OfList(OfSegment):
    first, second, third = (
        {"text": share, "mode": "replace", "confirmed": "yes"} for share in ("10", "20", "30")
    )
    says = "Stored now: userId is one of 10. (vip, for all projects)"

    def __init__(self, flag):
        super().__init__(flag)
        self.url += "list"


class Row:
    """A form of plain fields that edits one row; ``field`` is the one that is changed."""

    who, field, given = "boss", "name", {}

    def __init__(self, flag):
        self.first, self.second, self.third = (
            self.given | {self.field: share} for share in ("10", "20", "30")
        )
        self.says = f"Stored now: {self.field.capitalize()}: 10."
        self.row = self.make()

    def make(self):
        raise NotImplementedError

    def stored(self):
        self.row.refresh_from_db()
        return getattr(self.row, self.field)


class Settings(Row):
    who, given = "owner", {"default_stickiness": "default", "mode": "open"}
    told, url = "admin changed the settings of project shop", "/projects/shop/settings/"

    def make(self):
        return Project.objects.get(pk="shop")


class DefaultStrategy(Row):
    who, field, given = "owner", "title", {"name": "flexibleRollout", "p-rollout": "5"}
    told = "admin changed the default strategy of shop in production"
    url = "/projects/shop/environments/production/strategy"

    def make(self):
        self.says = "Stored now: On for 5 % of users, by userId (or sessionId). (10)"
        return ProjectEnvironment.objects.get(project="shop", environment="production")

    def stored(self):
        self.row.refresh_from_db()
        return self.row.default_strategy["title"]


class Approvals(Row):
    who, field = "owner", "value_1"
    given = {"condition_1": "changesUsers", "needs_1": "2", "approvals": "1"}
    told = "admin changed who must approve changes of production in project shop"
    url = "/projects/shop/environments/production/approvals"

    def make(self):
        self.says = "Stored now: Rule 1: percent, or tag as type:value: 10."
        rules = [{"condition": "changesUsers", "percent": 5.0, "requiredApprovals": 2}]
        links = ProjectEnvironment.objects.filter(project="shop", environment="production")
        links.update(required_approvals=1, approval_rules=rules)
        return links.get()

    def stored(self):
        self.row.refresh_from_db()
        return f"{self.row.approval_rules[0]['percent']:g}"


class OfRole(Row):
    given = {"permissions": ["UPDATE_FEATURE", "UPDATE_FEATURE_ENVIRONMENT development"]}
    told = "admin changed role 10"

    def make(self):
        role = Role.objects.create(name="Helper", type=Role.Type.CUSTOM)
        self.url = f"/access/roles/{role.pk}/edit/"
        return role


class OfGroup(Row):
    told = "admin changed group 10"

    def make(self):
        group = Group.objects.create(name="Team")
        self.url = f"/access/groups/{group.pk}/edit/"
        return group


class Account(Row):
    told = "admin changed user ada"

    def make(self):
        self.says = "Stored now: Full name: 10."
        user = make_user("ada")
        self.url = f"/access/people/{user.pk}/edit/"
        return user


class ServiceAccount(Row):
    told = "admin changed service account bot"

    def make(self):
        self.says = "Stored now: Full name: 10."
        user = make_user("bot", is_service=True)
        self.url = f"/access/service-accounts/{user.pk}/edit/"
        return user


class OfContextField(Row):
    who, field, given = "editor", "description", {"sort_order": "1", "legal_values": "pro :: pays"}
    told, url = "admin changed context field tier", "/context-fields/tier/"

    def make(self):
        return ContextField.objects.create(name="tier")


class OfStrategyType(Row):
    who, field, given = "editor", "title", {"parameters": "hosts :: list"}
    told, url = "admin changed strategy type hostGroup", "/strategy-types/hostGroup/"

    def make(self):
        return StrategyType.objects.create(name="hostGroup", built_in=False)


class OfEnvironment(Row):
    who, field = "boss", "type"
    told, url = "admin changed environment staging", "/environments/staging/"

    def make(self):
        return Environment.objects.create(name="staging", type="test")


class OfTagType(Row):
    who, field = "editor", "icon"
    told, url = "admin changed tag type team", "/tag-types/team/"

    def make(self):
        return TagType.objects.create(name="team")


class OfIntegration(Row):
    field, given = "description", {"enabled": "on", "parameter_url": "*****"}

    def make(self):
        made = make_integration("https://receiver.example.org/hook")
        self.url, self.told = f"/integrations/{made.pk}/", f"admin changed integration Webhook {made.pk}"
        return made


class OfSignalRule(Row):
    given = {
        "match": "status = firing",
        "project": "shop",
        "flag": "cart",
        "environment": "production",
        "then": "note",
    }

    def make(self):
        source = SignalSource.objects.create(name="pager", kind="generic")
        values = self.given | {"name": "1", "match": {"status": "firing"}}
        made = SignalRule.objects.create(source=source, **values)
        self.url, self.told = (
            f"/signals/{source.pk}/rules/{made.pk}/",
            "admin changed source of signals pager",
        )
        return made


class Metadata(Row):
    who, field, given = "member", "description", {"type": "kill-switch", "stale": "on"}
    told, url = "admin changed the description of flag cart", f"{FLAG}edit"

    def make(self):
        return Flag.objects.get(name="cart")


class OfLink(Row):
    who, field = "member", "title"
    given, told = {"url": "https://a.example"}, "admin changed a link of flag cart"

    def make(self):
        link = FlagLink.objects.create(flag=Flag.objects.get(name="cart"), url="https://a.example")
        self.url = f"{FLAG}link/{link.pk}/"
        return link


class OfSavedContext(Row):
    who, field, given = "editor", "note", {"name": "Ada", "context": '{"userId": "42"}'}
    told = "admin changed saved context Ada"

    def make(self):
        saved = SavedContext.objects.create(name="Ada")
        self.url = f"/playground/contexts/{saved.pk}/"
        return saved


class OfPayloadSchema:
    who = "member"
    first, second, third = ({"schema": f'{{"title": "{share}"}}'} for share in ("10", "20", "30"))
    told = "admin changed the payload schema of flag cart"
    says = 'Stored now: JSON Schema: { "title": "10" }.'

    def __init__(self, flag):
        self.flag = flag
        self.url = "/projects/shop/features/cart/payload-schema"

    def stored(self):
        return PayloadSchema.objects.get(flag=self.flag).schema["title"]


class OfListSource:
    who = "editor"
    first, second, third = (
        {"url": "https://crm.example.com/beta", "format": "csv", "column": share, "minutes": "60"}
        for share in ("10", "20", "30")
    )
    told = "admin changed the source of the list of segment vip"
    says = "Stored now: Column: 10."

    def __init__(self, flag):
        self.row = Segment.objects.create(name="vip", constraints=[])
        self.url = f"/segments/{self.row.pk}/list/source"

    def stored(self):
        return ListSource.objects.get(pk=self.row.pk).column


FORMS = [
    Strategy, OfShare, Variants, OfSegment, OfList, Settings, DefaultStrategy, Approvals, OfRole, OfGroup, Account, ServiceAccount,
    OfContextField, OfStrategyType, OfEnvironment, OfTagType, OfIntegration, OfSignalRule, Metadata, OfLink,
    OfSavedContext, OfPayloadSchema, OfListSource,
]  # fmt: skip
