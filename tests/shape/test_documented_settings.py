"""docs/reference/settings.md lists the environment variables that the code reads, with their defaults."""

import re
from dataclasses import fields

from groups.login.sign_on.settings import OidcSettings, SamlSettings
from tests.support.paths import ROOT, sources

READ = re.compile(r'environment\.\w+\(\s*f?"([A-Z0-9_{}]+)"(?:,\s*([\d_]+)(?=\s*[,)]))?')
VARIABLE = re.compile(r"`([A-Z][A-Z0-9_]+)`")
PAGE = (ROOT / "docs" / "reference" / "settings.md").read_text()

# Where files are by default, as other programs have it.
OF_THE_DESKTOP = {"XDG_DATA_HOME"}


def read_variables() -> dict[str, str]:
    """The variables that the code reads, with their default if it is a number."""
    return dict.fromkeys(sign_on_variables(), "") | {
        name.replace("{OIDC}", "FLAGADMIN_OIDC_"): default.replace("_", "")
        for path in sources()
        for name, default in READ.findall(path.read_text())
    }


def sign_on_variables() -> set[str]:
    """Those with the names of fields. SAML's metadata have the others."""
    kinds = (OidcSettings, SamlSettings)
    named = {
        f"{k.prefix}{f.name.upper().replace('CLAIM', k.claim.upper())}" for k in kinds for f in fields(k)
    }
    return named - {f"{SamlSettings.prefix}{name}" for name in ("ISSUER", "URL", "CERTIFICATES")}


def documented() -> dict[str, str]:
    """The variables of the tables, with their default. A row may have several."""
    rows = [line.strip("|").split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
    defaults_by_name = {}
    for row in rows:
        names, defaults = VARIABLE.findall(row[0]), row[-1].strip(" |").split(", ")
        defaults_by_name |= dict(
            zip(names, defaults if len(defaults) == len(names) else [""] * len(names), strict=True)
        )
    return defaults_by_name


def test_every_variable_is_documented() -> None:
    assert read_variables().keys() - documented().keys() - OF_THE_DESKTOP == set()


def test_every_documented_variable_is_read() -> None:
    code = "".join(path.read_text() for path in sources())
    read = read_variables()
    missing = [name for name in documented() if name not in read and name not in code]
    assert [name for name in missing if f"{{SAML}}{name.removeprefix('FLAGADMIN_SAML_')}" not in code] == []


UNITS = {"MB": 1_000_000, "GB": 1_000_000_000}


def read_number(text: str) -> int | str:
    """The number that a cell shows, or its text if it shows none."""
    number, _, unit = text.replace(",", "").partition(" ")
    return int(number) * UNITS.get(unit, 1) if number.isdigit() else text


def test_defaults_are_those_of_the_code() -> None:
    """Of each variable whose default is a number."""
    shown = documented()
    numbers = {name: int(default) for name, default in read_variables().items() if default}
    assert len(numbers) > 20
    wrong = {
        name: (shown[name], number) for name, number in numbers.items() if read_number(shown[name]) != number
    }
    assert not wrong, wrong
