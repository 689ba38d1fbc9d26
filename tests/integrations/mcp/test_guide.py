"""The conversations of docs/agents.md are real, and its table has all tools."""

import json
from itertools import pairwise
from typing import Any

import pytest

from groups.models import User
from integrations.mcp.api import TOOLS
from tests.documentation.blocks import blocks
from tests.support.cast import client, make_token
from tests.support.demo import loaded_demo
from tests.support.mcp_client import call
from tests.support.paths import ROOT
from tests.support.shown_answers import contains

__all__ = ["loaded_demo"]
PAGE = "docs/agents.md"


@pytest.mark.django_db
def test_each_call_has_the_answer_that_is_shown(loaded_demo: User) -> None:
    agent = client(make_token("personal", user=loaded_demo))
    shown = [json.loads(block.text) for block in blocks(PAGE)]
    conversation = [(asked, answer) for asked, answer in pairwise(shown) if "arguments" in asked]
    assert len(conversation) == 6
    for asked, expected in conversation:
        answer: Any = call(agent, asked["name"], error="error" in expected, **asked["arguments"])
        assert contains(answer, expected), (asked, answer)


def test_every_tool_is_in_the_table() -> None:
    rows = [line.split("`")[1] for line in (ROOT / PAGE).read_text().splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted(TOOLS)
