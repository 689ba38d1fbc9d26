"""Which blocks of the documentation are run here, which by other tests, and which by none, each with its reason.

Blocks are named by their page and first line.
"""

from tests.documentation.blocks import Block, blocks, pages

RUN = [
    "README.md",
    "docs/experiments.md",
    "docs/flags-as-code.md",
    "docs/migrating.md",
    "docs/openfeature.md",
    "docs/operations/maintenance.md",
    "docs/saved-contexts.md",
    "docs/sdk-languages.md",
    "docs/sdk.md",
    "docs/start.md",
    *(page for page in pages() if page.startswith("docs/how-to/")),
]

# What a reader of the page has already.
BEFORE = {
    "docs/flags-as-code.md": """
export FLAGADMIN_URL=$URL FLAGADMIN_TOKEN=$TOKEN
""",
    "docs/how-to/remove-a-flag.md": """
export FLAGADMIN_URL=$URL FLAGADMIN_TOKEN=$TOKEN
""",
    "docs/migrating.md": """
UNLEASH_URL=$URL UNLEASH_TOKEN=$TOKEN
""",
    "docs/openfeature.md": """
FLAG=$URL/api/admin/projects/storefront/features
curl -H "Authorization: $TOKEN" -H 'Content-Type: application/json' $FLAG -d '{"name": "new-checkout"}'
curl -H "Authorization: $TOKEN" -H 'Content-Type: application/json' \\
  $FLAG/new-checkout/environments/development/strategies \\
  -d '{"name": "flexibleRollout", "parameters": {"rollout": "80", "stickiness": "userId"}}'
curl -X POST -H "Authorization: $TOKEN" $FLAG/new-checkout/environments/development/on
TOKEN=$("$PYTHON" manage.py token create --kind backend --name ofrep --projects storefront --environment development)
""",
    # The demo has an expectation that is not met, which is exit status 1.
    "docs/saved-contexts.md": """
flagadmin() { "$PYTHON" manage.py "$@" || [ $? = 1 ]; }
curl -H "Authorization: $TOKEN" -H 'Content-Type: application/json' $URL/api/admin/features-batch/export \\
  -d '{"environment": "production", "project": "checkout"}' > export.json
""",
    "docs/sdk-languages.md": """
export UNLEASH_TOKEN=$("$PYTHON" manage.py token create --kind backend --name sdk --projects '*' --environment production)
FRONTEND_TOKEN=$("$PYTHON" manage.py token create --kind frontend --name browser --projects '*' --environment production)
sed -i "s/FRONTEND-TOKEN/$FRONTEND_TOKEN/" "$PAGE"/*.js
""",
    "docs/sdk.md": """
export UNLEASH_TOKEN=$("$PYTHON" manage.py token create --kind backend --name sdk --projects '*' --environment production)
""",
}

_MAINTENANCE = (
    """curl -X POST -H "Authorization: $TOKEN" -H 'Content-Type: application/json' """
    """$URL/api/admin/maintenance -d '{"enabled": true}'"""
)

# What follows a block: the rest of a program that a page shows the beginning of, or what ends what it has begun.
AFTER = {
    ("docs/operations/maintenance.md", _MAINTENANCE): _MAINTENANCE.replace("true", "false"),
    ("docs/sdk-languages.md", 'import { startUnleash } from "unleash-client";'): "unleash.destroy();",
    ("docs/sdk-languages.md", "import os"): "unleash.destroy()\n",
    ("docs/sdk-languages.md", 'import { UnleashClient } from "unleash-proxy-client";'): "process.exit();",
    ("docs/sdk.md", 'import { initialize } from "unleash-client";'): """
await new Promise((resolve) => unleash.once("synchronized", resolve));
if (!unleash.isEnabled("one-click-pay", { userId: "42" })) throw new Error("off");
unleash.destroy();
""",
    ("docs/sdk.md", "import os"): """
import time
while not unleash.is_enabled("one-click-pay", {"userId": "42"}):
    time.sleep(0.1)
unleash.destroy()
""",
}

# The requests of these pages are made one after the other.
GUIDES = {
    "docs/api.md": "tests/flagadmin/test_api_guide.py",
    "docs/integrations.md": "tests/integrations/test_guide.py",
    "docs/release-plans.md": "tests/releases/plans/test_guide.py",
    "docs/releases.md": "tests/releases/test_guide.py",
    "docs/scim.md": "tests/groups/scim/test_guide.py",
}

ELSEWHERE = {
    ("docs/engine.md", '"STR_EQUALS": Operator('): "tests/projects/strategies/test_new_operator.py",
    ("docs/engine.md", "StrategyType("): "tests/projects/strategies/test_new_strategy_type.py",
    (
        "docs/contributing.md",
        '"""Posts the sentence of an event to a pager."""',
    ): "tests/integrations/test_new_provider.py",
    ("docs/openfeature.md", "from openfeature import api"): "tests/sdk/ofrep/test_python_provider.py",
    (
        "docs/openfeature.md",
        "from openfeature.contrib.provider.ofrep import OFREPProvider",
    ): "tests/sdk/ofrep/test_python_provider.py",
    (
        "docs/openfeature.md",
        'import { OFREPProvider } from "@openfeature/ofrep-provider";',
    ): "tests/sdk/ofrep/test_node_provider.py",
    (
        "docs/openfeature.md",
        'import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";',
    ): "tests/browser/test_openfeature.py",
    (
        "docs/sdk-languages.md",
        'import { FlagProvider, useFlag } from "@unleash/proxy-client-react";',
    ): "tests/projects/connect/test_components.py",
    ("docs/sdk-languages.md", "<script setup>"): "tests/projects/connect/test_components.py",
    **{(page, block.first_line): test for page, test in GUIDES.items() for block in blocks(page)},
    ("docs/how-to/check-a-pull-request.md", "name: Flags"): "tests/importer/diff/test_ci_examples.py",
    ("docs/how-to/check-a-pull-request.md", "diff:"): "tests/importer/diff/test_ci_examples.py",
    ("docs/flags-as-code.md", "name: Flags"): "tests/importer/as_code/test_ci_examples.py",
    ("docs/flags-as-code.md", "default:"): "tests/importer/as_code/test_ci_examples.py",
    ("deploy/README.md", "./rolling-restart.sh \\"): "tests/flagadmin/deploy/test_rolling_restart.py",
    ("deploy/README.md", "PATRONI_NAME=db1"): "tests/flagadmin/deploy/test_failover.py",
    (
        "docs/engine.md",
        'snapshot = compile_snapshot(flags, segments, environment="production")',
    ): "tests/documentation/test_engine_example.py",
    (
        "docs/sign-on.md",
        "FLAGADMIN_OIDC_ISSUER=https://login.example.org/realms/work",
    ): "tests/groups/login/sign_on/test_settings.py",
    (
        "docs/saml.md",
        "FLAGADMIN_PUBLIC_URL=https://YOUR-HOST",
    ): "tests/groups/login/sign_on/saml/test_settings.py",
    ("docs/operations/run.md", "python3 -m venv /opt/flagadmin"): "tests/flagadmin/deploy/test_package.py",
    (
        "docs/operations/run.md",
        "ssh-keygen -Y verify -f signers -I release -n flagadmin-release -s SHA256SUMS.sig < SHA256SUMS "
        "&& sha256sum --check SHA256SUMS",
    ): "tests/flagadmin/deploy/test_release.py",
    ("docs/operations/monitor.md", "scrape_configs:"): "tests/flagadmin/core/metrics/test_processes.py",
    (
        "docs/operations/monitor.md",
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318   # or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    ): "tests/flagadmin/core/server/test_tracing.py",
    (
        "docs/operations/back-up.md",
        "flagadmin backup before-upgrade.backup          # one file; servers go on",
    ): "tests/flagadmin/core/db/backups/test_backup.py",
    **{
        ("docs/operations/back-up.md", line): "tests/flagadmin/core/db/backups/test_versions.py"
        for line in (
            "export DATABASE_URL=postgresql://flagadmin:PASSWORD@db1/flagadmin",
            'pg_dump --format=custom --file=flagadmin.dump "$DATABASE_URL"',
            "sudo -u postgres dropdb --force flagadmin",
        )
    },
    **{
        ("docs/operations/back-up.md", line): "tests/flagadmin/deploy/test_point_in_time.py"
        for line in (
            "sudo -u postgres pgbackrest --stanza=flagadmin stanza-create",
            "sudo -u postgres pgbackrest --stanza=flagadmin --delta --type=time "
            '"--target=2026-11-23 12:02:59+00" --target-action=promote restore',
        )
    },
    (
        "docs/operations/several-machines.md",
        "DATABASE_URL=postgresql://flagadmin@db1:5432,db2:5432/flagadmin?target_session_attrs=read-write",
    ): "tests/flagadmin/deploy/test_failover.py",
    ("docs/migrating.md", "export UNLEASH_TOKEN='*:*.…'"): "tests/importer/test_move.py",
    (
        "docs/migrating.md",
        "export UNLEASH_DATABASE_URL=postgres://unleash:PASSWORD@db.example.com/unleash",
    ): "tests/importer/test_move_database.py",
    **{
        (
            "docs/migrating.md",
            f".venv/bin/python manage.py move {step} --from https://unleash.example.com",
        ): "tests/importer/test_move.py"
        for step in ("apply", "prove", "follow")
    },
    (
        "docs/migrating.md",
        ".venv/bin/python manage.py move apply --from https://unleash.example.com --leave-out checkout "
        "--leave-out segment:nordics",
    ): "tests/importer/test_move_leave_out.py",
    (
        "docs/migrating.md",
        "UNLEASH_TOKEN='user:…' .venv/bin/python manage.py move back --to https://unleash.example.com --check",
    ): "tests/importer/test_move_back.py",
}

_INSTALLS = "installs, or starts a server of its own"
_SYSTEMD = "needs systemd; tests/flagadmin/deploy/test_service.py has it check the units"

NOT_RUN = {
    (
        "README.md",
        "make demo    # installs everything, loads demo data, serves http://127.0.0.1:8000 and prints a login link",
    ): _INSTALLS,
    ("README.md", "make install"): _INSTALLS,
    ("docs/operations/run.md", "make install"): _INSTALLS,
    ("docs/operations/run.md", "sudo cp deploy/flagadmin.service /etc/systemd/system/"): _SYSTEMD,
    (
        "docs/operations/back-up.md",
        "sudo cp deploy/flagadmin-backup.service deploy/flagadmin-backup.timer /etc/systemd/system/",
    ): _SYSTEMD,
    (
        "docs/how-to/convert-from-another-product.md",
        'curl -s -H "Authorization: $LAUNCHDARKLY_TOKEN" \\',
    ): "asks LaunchDarkly; tests/importer/converting reads what it lists",
    ("docs/start.md", "make demo"): _INSTALLS,
    (
        "deploy/README.md",
        "kubectl create namespace flagadmin",
    ): "needs a cluster; test_kubernetes.py checks the manifests",
    (
        "deploy/README.md",
        "helm upgrade --install flagadmin deploy/helm --namespace flagadmin \\",
    ): "needs a cluster; test_kubernetes.py renders the chart",
}

# Of these pages, the commands of flagadmin are parsed.
PAGES_NOT_RUN = {
    "docs/architecture.md": "a picture",
    "docs/contributing.md": _INSTALLS,
    "docs/site/index.md": _INSTALLS,
    "docs/operations/replace-edge.md": "starts a relay of its own; tests/relay",
    "docs/relay.md": "starts a server of its own; tests/relay",
}


def why_not_run(block: Block) -> str | None:
    if block.language in _LANGUAGES:
        return f"needs a package for {block.language}"
    return NOT_RUN.get((block.page, block.first_line)) or PAGES_NOT_RUN.get(block.page)


# Of languages whose packages the tests cannot have.
_LANGUAGES = {"csharp", "dart", "go", "java", "kotlin", "php", "ruby", "rust", "svelte", "swift"}


def is_program(block: Block) -> bool:
    return block.language not in ("json", "text", "{toctree}")
