"""The pages and actions that a search finds besides database rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from django.urls import reverse
from django.utils.http import urlencode

from flagadmin.console.api_docs.operations import list_operations
from flagadmin.console.navigation import THEMES, list_pages, list_sections_of
from flagadmin.console.search.kinds import Group, Hit, mark_words
from flagadmin.core.db.lookups import count_differences, find_similar_rows, rank_names
from groups.access import Caller, Permission
from projects.access import list_projects_with
from projects.console import flag_url, project_url
from projects.flags.lists.conditions import DIFFERS, FULL, OFF
from projects.flags.queries import list_production_toggles, search_flags
from projects.models import Flag
from projects.projects.queries import search_new_flag_projects
from projects.tokens.access import find_allowed_kinds

Words = Sequence[str]
# Words that people type to find a page, by its label in the navigation.
SYNONYMS = {
    "Playground": ("evaluate", "test", "debug", "why"),
    "Side by side": ("compare", "matrix", "diff"),
    "Who changes": ("compare", "impact", "users", "environments"),
    "Did it work": ("analyses", "experiment", "statistics", "a/b", "significance"),
    "Who had it": ("past", "assignments", "orders", "outcomes", "time"),
    "What happened": ("changes", "incident", "timeline", "history"),
    "Which change did this": ("incident", "cause", "errors", "outcomes"),
    "Home": ("start", "overview", "dashboard"),
    "Projects": ("workspaces",),
    "Flags": ("features", "toggles", "all flags"),
    "Requests": ("change requests", "approvals", "review"),
    "Environments": ("stages", "production", "staging", "promote"),
    "Segments": ("audiences", "targeting"),
    "Context fields": ("attributes", "properties", "vocabulary"),
    "Strategy types": ("custom strategies",),
    "Tag types": ("labels",),
    "Import": ("upload", "file"),
    "Past imports": ("import history", "undo"),
    "Integrations": ("webhooks", "addons", "datadog", "new relic", "teams", "slack"),
    "Signals": ("alerts", "alertmanager", "monitoring"),
    "Installation": ("maintenance", "email", "smtp", "statistics", "cors"),
    "Provisioning": ("scim", "entra", "okta"),
    "Roles": ("permissions", "access"),
    "Groups": ("teams", "access"),
    "Agents": ("mcp", "ai", "model context protocol"),
    "People": ("users", "members", "accounts", "access"),
    "Service accounts": ("bots", "machine users", "access"),
    "API tokens": ("keys", "secrets", "credentials", "access"),
    "Audit log": ("activity", "events", "changes", "history"),
    "API": ("openapi", "swagger", "operations", "documentation", "curl"),
    "Data fixes": ("admin", "raw records", "database"),
}
FLAG_LISTS = (
    ("Flags that can go", "state=removable", ("cleanup", "old", "stale")),
    ("Flags past their expected lifetime", "state=overdue", ("overdue", "old")),
    ("Flags that are off everywhere", f"rollout={OFF}", ("unused", "disabled")),
    ("Flags at 100 % for more than 30 days", f"rollout={FULL}", ("rolled out", "cleanup")),
    ("Flags that differ between environments", f"rollout={DIFFERS}", ("compare",)),
    ("Flags that were never evaluated", "seen=never", ("unused",)),
    ("Kill switches", "type=kill-switch", ()),
)
# Words that name an action on a flag; the other words find the flag.
VERBS = frozenset(
    {"archive", "evaluate", "why", "edit", "turn", "on", "off", "switch", "enable", "disable", "delete"}
)
MAX_OPERATIONS = 4
LAST = 100  # higher than the rank of any row
MAX_HITS, MAX_HITS_ALONE = 6, 30  # beside other kinds, and when only actions are shown


@dataclass(frozen=True, slots=True)
class Command:
    """A page or an action. ``theme`` makes it a button that switches to that theme."""

    label: str
    url: str
    place: str = ""
    synonyms: Sequence[str] = ()
    theme: str = ""

    @property
    def names(self) -> list[str]:
        return [self.label, *self.synonyms]


def make_page_group(caller: Caller, words: Words) -> Group | None:
    return _group("pages", "Pages", "window", _list_pages(caller), words)


def make_action_group(caller: Caller, words: Words, flags: Iterable[Flag], *, alone: bool) -> Group | None:
    """Actions whose label contains all words. ``flags`` are the best matches for the words alone."""
    words, user = _split_user(words)
    rest = [word for word in words if word.casefold() not in VERBS]
    if rest and len(rest) < len(words):
        flags = search_flags(caller, rest)[:2] or find_similar_flags(caller, rest, 2)
        if flags and rank_names(rest, [flag.name for flag in flags]) is None:
            words = [word for word in words if word.casefold() in VERBS]  # the name is misspelled
    of_flags = _list_flag_actions(caller, flags, user)
    commands = [*_list_actions(caller), *of_flags] if words else [*of_flags, *_list_actions(caller)]
    if words:
        commands += [
            Command(f"New flag in {project.name}", project_url(project.pk, "flag-new"), synonyms=[project.pk])
            for project in search_new_flag_projects(caller, words)[:MAX_HITS]
        ]
    return _group("actions", "Actions", "bolt", commands, words, MAX_HITS_ALONE if alone else MAX_HITS)


def make_operation_group(words: Words) -> Group | None:
    """Operations of the API, shown last because their summaries contain the words of all kinds."""
    matches = [operation for operation in list_operations() if operation.has(words)] if words else []
    hits = [
        Hit(
            mark_words(operation.summary, words),
            reverse("api-operation", args=[operation.id]),
            f"{operation.method} {operation.path}",
        )
        for operation in matches[:MAX_OPERATIONS]
    ]
    return Group("api", "API", "code", hits, len(hits), LAST) if hits else None


def find_similar_flags(caller: Caller, words: Words, limit: int) -> list[Flag]:
    """Active flags with similarly spelled names. One query."""
    flags = Flag.objects.active().readable_by(caller).select_related("project")
    return find_similar_rows(flags, words, "name", limit)


def find_similar_commands(caller: Caller, words: Words) -> Group | None:
    """Pages and actions with similarly spelled labels."""
    folded = [word.casefold() for word in words]
    ranked = [
        (errors, command)
        for command in (*_list_pages(caller), *_list_actions(caller))
        if (errors := count_differences(folded, command.names)) is not None
    ]
    best = [command for _, command in sorted(ranked, key=itemgetter(0))[:MAX_HITS]]
    hits = [Hit(mark_words(each.label, ()), each.url, each.place, each.theme) for each in best]
    return Group("pages", "Pages and actions", "window", hits, len(hits), 0) if hits else None


def _split_user(words: Words) -> tuple[Words, str]:
    """The words before "for user 42" or "for 42", and the user id."""
    folded = [word.casefold() for word in words]
    if not {"evaluate", "why"} & set(folded) or "for" not in folded:
        return words, ""
    at = folded.index("for")
    user = [word for word in words[at + 1 :] if word.casefold() != "user"]
    return words[:at], " ".join(user)


def _group(
    key: str, label: str, icon: str, commands: Iterable[Command], words: Words, limit: int = MAX_HITS
) -> Group | None:
    ranked = [(rank_names(words, command.names), command) for command in commands]
    matching = [(rank, command) for rank, command in ranked if rank is not None]
    if not matching:
        return None
    best = sorted(matching, key=itemgetter(0))[:limit]
    hits = [
        Hit(mark_words(command.label, words), command.url, command.place, command.theme)
        for _, command in best
    ]
    return Group(key, label, icon, hits, len(hits), best[0][0])


def _list_pages(caller: Caller) -> Iterator[Command]:
    for label, query, synonyms in FLAG_LISTS:
        yield Command(label, f"{reverse('all-flags')}?{query}", "Flags", synonyms)
    for section, _ in list_sections_of(caller):
        for page in list_pages(section, caller):
            section_label = section.label if section.label != page.label else ""
            yield Command(page.label, page.url, section_label, SYNONYMS.get(page.label, ()))
    yield Command(
        "Your account", reverse("account"), "", ("profile", "password", "personal tokens", "log out")
    )


def _list_actions(caller: Caller) -> Iterator[Command]:
    """Yields the commands that need no row and that the caller may perform."""
    admin = caller.is_admin
    may_create_token = find_allowed_kinds(caller, "CREATE") or list_projects_with(
        caller, Permission.CREATE_PROJECT_API_TOKEN
    )
    yield Command(
        "Connect an SDK", reverse("connect-anywhere"), synonyms=("install", "client", "library", "code")
    )
    yield Command("Import flags", reverse("import"), synonyms=("upload", "file"))
    for label, page, allowed, synonyms in (
        ("New project", "project-new", caller.can(Permission.CREATE_PROJECT), ()),
        ("New environment", "environment-new", admin, ("staging", "production")),
        ("New segment", "segment-new", caller.can(Permission.CREATE_SEGMENT), ()),
        ("New context field", "context-field-new", caller.can(Permission.CREATE_CONTEXT_FIELD), ()),
        ("New strategy type", "strategy-type-new", caller.can(Permission.CREATE_STRATEGY), ()),
        ("New tag type", "tag-type-new", caller.can(Permission.CREATE_TAG_TYPE), ()),
        ("New API token", "token-new", may_create_token, ("key", "secret")),
        (
            "New integration",
            "integrations",
            caller.can(Permission.CREATE_ADDON),
            ("webhook", "datadog", "teams"),
        ),
        ("Add user", "person-new", admin, ("new person", "invite")),
        ("New service account", "service-account-new", admin, ("bot",)),
        ("New group", "group-new", admin, ("team",)),
        ("New role", "role-new", admin, ("permissions",)),
        ("New personal token", "account-token-new", caller.user is not None, ()),
        ("Change password", "account-password", caller.user is not None, ()),
    ):
        if allowed:
            yield Command(label, reverse(page), synonyms=synonyms)
    if admin:
        url = f"{reverse('token-new')}?type=automation"
        yield Command("New automation token", url, synonyms=("ci", "bot", "pipeline", "service account"))
    for theme in (*THEMES, "system"):
        yield Command(f"Switch to {theme} theme", reverse("theme"), "", ("colors", "mode"), theme)


def _list_flag_actions(caller: Caller, flags: Iterable[Flag], user: str = "") -> Iterator[Command]:
    for position, flag in enumerate(flags):
        if flag.is_archived:
            continue
        name, project = flag.name, flag.project_id
        if user:
            url = f"{flag_url(project, name, 'flag-why')}?{urlencode({'as': user})}"
            yield Command(f"Evaluate {name} for user {user}", url, "Why?", ("why",))
        else:
            yield Command(
                f"Evaluate {name}", f"{reverse('playground')}?{urlencode({'q': name})}", "Playground"
            )
        if not position:
            yield from _list_toggles(caller, flag)
        if caller.can(Permission.DELETE_FEATURE, project=project):
            url = f"{project_url(project, 'flags-archive')}?{urlencode({'name': name})}"
            yield Command(f"Archive {name}…", url, project)
        if caller.can(Permission.UPDATE_FEATURE, project=project):
            yield Command(f"Edit {name}", flag_url(project, name, "flag-edit"), project)


def _list_toggles(caller: Caller, flag: Flag) -> Iterator[Command]:
    for environment, enabled in list_production_toggles(flag):
        if caller.can(
            Permission.UPDATE_FEATURE_ENVIRONMENT, project=flag.project_id, environment=environment
        ):
            query = urlencode({"environment": environment, "enabled": "off" if enabled else "on"})
            label = f"Turn {'off' if enabled else 'on'} {flag.name} in {environment}…"
            yield Command(
                label, f"{flag_url(flag.project_id, flag.name, 'flag-toggle')}?{query}", "asks first"
            )
