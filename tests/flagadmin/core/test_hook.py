"""What apps register by its path is there when it is used."""

import sys

import pytest

from flagadmin.core import hook


@pytest.fixture(autouse=True)
def own_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_registered", "_provided", "_collections"):
        monkeypatch.setattr(hook, name, dict(getattr(hook, name)))


def test_everything_that_apps_register_exists() -> None:
    hook.load_all()
    assert hook._provided
    assert all(registered._object for registered in hook._registered.values())


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("playground.comparison.compare.forecast", "releases.gate:no_such_function"),
        ("playground.comparison.compare.no_such_hook", "releases.forecast:forecast"),
    ],
)
def test_a_wrong_name_fails_when_a_server_starts(name: str, path: str) -> None:
    hook.provide(name, path)
    with pytest.raises(AttributeError, match="no_such"):
        hook.load_all()


def test_a_hook_calls_its_default_until_a_function_is_provided() -> None:
    measure = hook.Hook("tests.measure", lambda text: f"default {text}")
    assert measure("a") == "default a"
    hook.provide("tests.measure", "textwrap:dedent")
    assert measure("  b") == "b"


def test_a_module_is_imported_at_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    convert = hook.later("colorsys:rgb_to_hls")
    assert "colorsys" not in sys.modules
    assert convert(0, 0, 0) == (0, 0, 0)
    assert convert is hook.later("colorsys:rgb_to_hls")
