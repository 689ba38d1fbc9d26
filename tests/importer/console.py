"""The steps of an import through the console."""

import json
import re


def export(*names, source="development", **parts):
    """An export of new flags that are on for half of the users."""
    return {
        "features": [{"name": name} for name in names],
        "featureStrategies": [
            {"name": "flexibleRollout", "featureName": name, "parameters": {"rollout": "50"}}
            for name in names
        ],
        "featureEnvironments": [
            {"name": name, "featureName": name, "environment": source, "enabled": True} for name in names
        ],
        "tagTypes": [],
    } | parts


def bring(browser, document, project="shop", environment="production", **more):
    text = document if isinstance(document, str) else json.dumps(document)
    return browser.post("/import/", {"text": text, "project": project, "environment": environment} | more)


def preview(browser, document, **target):
    response = bring(browser, document, **target)
    assert response.status_code == 302, response.text
    return response["Location"], browser.get(response["Location"])


def fingerprint(page):
    return re.search(r'name="fingerprint" value="(\w+)"', page.text)[1]


def confirm(browser, address, *excluded):
    """Presses the button of the page as it is now."""
    seen = fingerprint(browser.get(address))
    return browser.post(address, {"do": "confirm", "fingerprint": seen, "flag": excluded})
