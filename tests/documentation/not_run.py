"""Which blocks of the documentation are run here, which by other tests, and which by none, each with its reason.

Blocks are named by their page and first line.
"""

from tests.documentation.blocks import Block, blocks, pages

RUN = [
    "README.md",
    "docs/openfeature.md",
    "docs/sdk.md",
    "docs/start.md",
    *(page for page in pages() if page.startswith("docs/how-to/")),
]

# What a reader of the page has already.
BEFORE = {
    "docs/openfeature.md": """
FLAG=$URL/api/admin/projects/storefront/features
curl -H "Authorization: $TOKEN" -H 'Content-Type: application/json' $FLAG -d '{"name": "new-checkout"}'
curl -H "Authorization: $TOKEN" -H 'Content-Type: application/json' \\
  $FLAG/new-checkout/environments/development/strategies \\
  -d '{"name": "flexibleRollout", "parameters": {"rollout": "80", "stickiness": "userId"}}'
curl -X POST -H "Authorization: $TOKEN" $FLAG/new-checkout/environments/development/on
TOKEN=$("$PYTHON" manage.py token create --kind backend --name ofrep --projects storefront --environment development)
""",
    "docs/sdk.md": """
export UNLEASH_TOKEN=$("$PYTHON" manage.py token create --kind backend --name sdk --projects '*' --environment production)
""",
}

# What follows a program that a page shows the beginning of.
AFTER = {
    ("docs/sdk.md", "js"): """
await new Promise((resolve) => unleash.once("synchronized", resolve));
if (!unleash.isEnabled("one-click-pay", { userId: "42" })) throw new Error("off");
unleash.destroy();
""",
    ("docs/sdk.md", "python"): """
import time
while not unleash.is_enabled("one-click-pay", {"userId": "42"}):
    time.sleep(0.1)
unleash.destroy()
""",
}

ELSEWHERE = {
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
    **{
        ("docs/api.md", block.first_line): "tests/flagadmin/test_api_guide.py"
        for block in blocks("docs/api.md")
    },
    ("docs/operations.md", "scrape_configs:"): "tests/flagadmin/core/metrics/test_processes.py",
}

_INSTALLS = "installs, or starts a server of its own"

NOT_RUN = {
    (
        "README.md",
        "make demo    # installs everything, loads demo data, serves http://127.0.0.1:8000 and prints a login link",
    ): _INSTALLS,
    ("README.md", "make install"): _INSTALLS,
    ("docs/start.md", "make demo"): _INSTALLS,
}

# Of these pages, the commands of flagadmin are parsed.
PAGES_NOT_RUN = {
    "deploy/README.md": "needs root, nginx or PostgreSQL; tests/flagadmin/deploy runs what it describes",
    "docs/architecture.md": "a picture",
    "docs/contributing.md": _INSTALLS,
    "docs/engine.md": "a sketch of the code",
    "docs/migrating.md": "needs an Unleash server",
    "docs/operations.md": "needs root, or a server of its own",
    "docs/saved-contexts.md": "needs a file of the reader; tests/importer/test_check_expectations.py runs such commands",
    "docs/sign-on.md": "needs an identity provider",
    "docs/site/index.md": _INSTALLS,
}


def why_not_run(block: Block) -> str | None:
    return NOT_RUN.get((block.page, block.first_line)) or PAGES_NOT_RUN.get(block.page)


def is_program(block: Block) -> bool:
    return block.language not in ("json", "text", "{toctree}")
