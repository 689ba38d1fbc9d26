"""Block tag of the style guide: ``{% example "Pills" %}…{% endexample %}`` shows the content and its HTML."""

import re

from django import template
from django.template.base import NodeList, Parser, Token
from django.template.context import Context
from django.utils.html import format_html
from django.utils.safestring import mark_safe

register = template.Library()


class ExampleNode(template.Node):
    def __init__(self, name: str, nodelist: NodeList) -> None:
        self.name = name
        self.nodelist = nodelist

    def render(self, context: Context) -> str:
        html = self.nodelist.render(context)
        source = re.sub(r"\n\s*\n", "\n", re.sub(r"(?s)<svg viewBox=\"0 0 16.*?</svg>", "<svg>…</svg>", html))
        return format_html(
            '<section><h2>{}</h2>{}<details><summary class="small">HTML</summary><pre tabindex="0">{}</pre></details>'
            "</section>",
            self.name,
            mark_safe(html),  # noqa: S308 (rendered above)
            source.strip(),
        )


@register.tag
def example(parser: Parser, token: Token) -> ExampleNode:
    name = token.split_contents()[1].strip('"')
    nodelist = parser.parse(("endexample",))
    parser.delete_first_token()
    return ExampleNode(name, nodelist)
