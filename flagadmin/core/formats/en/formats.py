"""Matches ``flagadmin/core/templatetags/moments.py`` without JavaScript."""

DATE_FORMAT = "j M Y"
TIME_FORMAT = r"H:i \U\T\C"
DATETIME_FORMAT = r"j M Y, H:i \U\T\C"
