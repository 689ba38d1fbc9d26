"""A path converter for names of any characters: ``<text:name>``."""

from django.urls import register_converter
from django.urls.converters import StringConverter


class TextConverter(StringConverter):
    """Text with slashes and line breaks. Django's ``path`` has no line breaks."""

    regex = r"[\s\S]+"


register_converter(TextConverter, "text")
