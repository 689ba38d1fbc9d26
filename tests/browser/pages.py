"""Every page of the console, checked in both themes by ``test_every_page.py``. A new page gets a line here."""

PAGES = [
    "/",
    "/activity/",
    "/activity/?kind=flags&sort=when",
    "/nowhere/",
]
