"""The settings of a project, each with all that is said of it. The model has their types and defaults."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """`field` is the model's. `member` is its name in the API and in audit events: "featureNaming.pattern" is a member
    of an object, in which null means empty. Forms show it under `group`, with `label` and `help`.
    """

    field: str
    member: str
    group: str
    label: str
    help: str = ""


ACCESS = Setting(
    "mode",
    "mode",
    "General",
    "Access",
    "Admins can do both. Only roles in the project allow changes. SDK tokens are not affected.",
)
SETTINGS = (
    Setting("name", "name", "General", "Name"),
    Setting("description", "description", "General", "Description"),
    ACCESS,
    Setting(
        "default_stickiness", "defaultStickiness", "Flags", "Default stickiness", "Used by new rollouts."
    ),
    Setting("flag_limit", "featureLimit", "Flags", "Flag limit", "Maximum number of active flags."),
    Setting("link_templates", "linkTemplates", "Flags", "Links of new flags"),
    Setting(
        "naming_pattern",
        "featureNaming.pattern",
        "Names of flags",
        "Naming pattern",
        "New flag names must match this regular expression (RE2).",
    ),
    Setting("naming_example", "featureNaming.example", "Names of flags", "Example name"),
    Setting("naming_description", "featureNaming.description", "Names of flags", "Pattern description"),
    Setting(
        "refuse_broken_expectations",
        "refuseBrokenExpectations",
        "Expectations",
        "Refuse changes that break an expectation",
        "Blocks saves that break a saved context's expectation. People who can switch flags may override.",
    ),
    Setting("comment_links", "commentLinks", "Comments", "Links in comments"),
)
