"""The tool that connects an SDK: a program in the given language, with the URL of this server."""

from pydantic import Field

from flagadmin.core.errors import ValidationError, choices
from integrations.mcp.tool import Answer, Arguments, Call, Tool, Whole
from projects.connect.snippets import read_snippets, render_text


class ConnectSdk(Arguments):
    language: str = Field(
        description="node, python, java, go, net, react, curl, … What is not known is answered with all of them."
    )
    flag: str = Field("", max_length=100, description="The flag that the program asks for.")
    application: str = Field("my-app", max_length=100)


def connect_sdk(call: Call, arguments: ConnectSdk) -> Answer:
    snippets = read_snippets()
    snippet = snippets.get(arguments.language.lower())
    if snippet is None:
        raise ValidationError.at("language", f"must be one of {choices(snippets, limit=50)}")
    code = render_text(snippet, url=call.server, flag=arguments.flag, application=arguments.application)
    return {
        "language": snippet.label,
        "install": f"{snippet.tool} {snippet.install}".strip(),
        "code": Whole(code),
        "token": f"A {snippet.kind} token, in the environment variable UNLEASH_TOKEN if the program reads it. "
        f"Tokens are not created here: people do that on the page {call.server}/connect/.",
    }


TOOLS = [
    Tool(
        "connect_sdk",
        "Connect an SDK",
        "The program that connects an application in a language, ready to paste.",
        ConnectSdk,
        connect_sdk,
    )
]
