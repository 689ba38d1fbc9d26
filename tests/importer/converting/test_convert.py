"""`manage.py convert`, and the file that it makes: it can be imported, and its choices do what they say."""

import json

import pytest
from django.core.management import CommandError, call_command

from flagadmin.core.errors import PayloadTooLarge, ValidationError
from importer.converting.changes import count_changes, read_users
from importer.converting.convert import Missing, Options, convert_file
from importer.converting.files import read_document, read_with_notes
from importer.converting.strategies import Choice
from projects.models import Flag, Segment, Strategy
from tests.importer.converting import (
    flagd_flags,
    flagsmith_environment,
    gofeatureflag_flags,
    growthbook_features,
    launchdarkly_flags,
)
from tests.importer.converting.comparing import convert, evaluate_here, exactness_of

ROLLOUT = {
    "flags": {
        "rollout": flagd_flags.flag({"fractional": [["on", 20], ["off", 80]]}),
        "colors": flagd_flags.flag(
            {"fractional": [["a", 50], ["b", 50]]}, variants=flagd_flags.TEXTS, default="c"
        ),
        "on": flagd_flags.flag(default="on"),
        "odd": flagd_flags.flag({"if": [{"cat": []}, "on"]}),
    }
}
CSV = "userId,plan\n" + "".join(f"user-{number},pro\n" for number in range(1000))
DOCUMENTS = {
    "flagd": flagd_flags.DOCUMENT,
    "launchdarkly": launchdarkly_flags.listed(),
    "growthbook": growthbook_features.DOCUMENT,
    "flagsmith": flagsmith_environment.ENVIRONMENT,
    "gofeatureflag": gofeatureflag_flags.DOCUMENT,
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "flags.json"
    path.write_text(json.dumps(ROLLOUT))
    return path


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "users.csv"
    path.write_text(CSV)
    return path


@pytest.mark.django_db
@pytest.mark.parametrize("product", DOCUMENTS)
def test_the_result_is_imported_as_it_is(product, shop, tmp_path, capsys):
    source, result = tmp_path / "source.json", tmp_path / "import.json"
    source.write_text(json.dumps(DOCUMENTS[product]))
    call_command("convert", product, str(source), "--output", str(result))
    call_command("import_flags", str(result), "--project", "shop", "--environment", "production")
    names = {flag["name"] for flag in json.loads(result.read_bytes())["features"]}
    assert {flag.name for flag in Flag.objects.all()} == names
    on = set(Flag.objects.filter(environments__enabled=True).values_list("name", flat=True))
    assert {flag.name for flag in convert(DOCUMENTS[product]).flags if flag.is_enabled} == on
    assert not Strategy.objects.filter(flag__name="static-off").exists()


@pytest.mark.django_db
def test_users_are_kept_in_segments_that_the_import_creates(shop, file, users, tmp_path):
    result = tmp_path / "import.json"
    arguments = [
        "--users",
        str(users),
        "--percentages",
        "both",
        "--flag",
        "colors=keep",
        "--output",
        str(result),
    ]
    call_command("convert", "auto", str(file), *arguments)
    call_command("import_flags", str(result), "--project", "shop", "--environment", "production")
    assert set(Segment.objects.values_list("name", flat=True)) == {
        "rollout (today)",
        "colors: a (today)",
        "colors: b (today)",
    }


def test_writes_the_result_and_says_what_became_of_each_flag(file, capsys, tmp_path):
    call_command("convert", "flagd", str(file), "--report", str(tmp_path / "report.json"))
    written = capsys.readouterr()
    assert [flag["name"] for flag in json.loads(written.out)["features"]] == [
        "rollout",
        "colors",
        "on",
        "odd",
    ]
    assert "flagd: 1 exact, 2 approximate, 1 imported off" in written.err
    report = json.loads((tmp_path / "report.json").read_bytes())
    flags = {flag["name"]: flag for flag in report["flags"]}
    assert flags["rollout"]["users"]["users"] == 10_000
    assert 0.25 < flags["rollout"]["users"]["changed"] / 10_000 < 0.40  # 2p(1 - p) is 0.32
    assert flags["odd"] == {
        "name": "odd",
        "path": "flags.odd",
        "exactness": "imported off",
        "notes": [{"kind": "targeting", "message": "The operator cat of its targeting has no equivalent."}],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--percentages", "keep"], "name them with --users"),
        (["--flag", "rollout"], "must be FLAG=CHOICE"),
        (["--flag", "rollout=maybe"], "must be FLAG=CHOICE"),
        (["--flag", "rolout=new"], "--flag rolout: the file has no such flag .* Available: colors, rollout"),
        (["--users", "nowhere.csv"], "Cannot read nowhere.csv"),
    ],
)
def test_refuses_unknown_choices(file, arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("convert", "flagd", str(file), *arguments)


def test_refuses_what_is_no_file_of_a_product(tmp_path):
    path = tmp_path / "flags.json"
    path.write_text('{"features": []}')
    with pytest.raises(
        CommandError, match="This is not a file of a product that can be converted: LaunchDarkly, "
    ):
        call_command("convert", "auto", str(path))


def test_refuses_a_file_of_another_product(file):
    with pytest.raises(CommandError, match="source: is growthbook, but this is a file of flagd"):
        call_command("convert", "growthbook", str(file))


def test_refuses_a_file_without_flags(tmp_path):
    (tmp_path / "flags.json").write_text('{"a": 1}')
    with pytest.raises(CommandError, match="flags: is required"):
        call_command("convert", "launchdarkly", str(tmp_path / "flags.json"))


# Choices ---------------------------------------------------------------------------------------------------


def of_choice(choice: Choice, table: str = CSV):
    users = read_users(table.encode())
    content = json.dumps(ROLLOUT).encode()
    conversion = convert_file(content, options=Options(choice), identifiers=users.identifiers)
    return conversion, count_changes(conversion, users)


def test_anew_says_how_many_users_change():
    _, changes = of_choice(Choice.NEW)
    rollout, colors = changes["rollout"], changes["colors"]
    assert rollout.users == colors.users == 1000
    assert 250 < rollout.changed < 390  # 2p(1 - p) is 320
    assert 430 < colors.changed < 570  # 1 - Σw² is 500
    assert abs(rollout.before - 0.2) < 0.05
    assert abs(rollout.after - 0.2) < 0.05


def test_keeping_changes_nobody():
    conversion, changes = of_choice(Choice.KEEP)
    assert {name: change.changed for name, change in changes.items()} == {"rollout": 0, "colors": 0}
    strategies = {flag.name: flag.strategies for flag in conversion.flags}
    assert [each["parameters"]["rollout"] for each in strategies["rollout"]] == ["100", "0"]
    assert [each["parameters"]["rollout"] for each in strategies["colors"]] == ["100"] * 4


def test_both_takes_nothing_from_anybody_and_says_the_share():
    _, changes = of_choice(Choice.BOTH)
    assert changes["colors"].changed == 0
    assert abs(changes["rollout"].after - 0.36) < 0.05  # p(2 - p)
    assert changes["rollout"].changed == round(1000 * (changes["rollout"].after - changes["rollout"].before))


@pytest.mark.parametrize("choice", [Choice.KEEP, Choice.BOTH])
def test_nobody_is_kept_without_the_field_that_is_hashed_and_that_is_said(choice):
    conversion, changes = of_choice(choice, "email,plan\nada@example.org,pro\n")
    assert exactness_of(conversion)["rollout"] == "imported off"
    sentence = "The file of users has no userId, which its percentages depend on."
    assert [note.sentence for note in conversion.flags[0].notes] == [sentence]
    assert changes == {}


def test_unfinished_rollouts_are_left_out():
    conversion, _ = of_choice(Choice.FINISH)
    assert exactness_of(conversion) == {
        "rollout": "left out",
        "colors": "left out",
        "on": "exact",
        "odd": "imported off",
    }


def test_more_users_than_a_segment_takes_are_kept_in_several():
    conversion, _ = of_choice(Choice.KEEP, "userId\n" + "".join(f"u{n}\n" for n in range(30_000)))
    assert 5 <= sum(name.startswith("rollout") for name in conversion.segments) <= 7
    assert all(len(constraints[0]["values"]) <= 1000 for _, constraints in conversion.segments.values())
    assert (
        exactness_of(conversion)["colors"] == "imported off"
    )  # it would need more strategies than a flag can have


# Flags that are left out -----------------------------------------------------------------------------------


def test_names_that_cannot_be_here_are_left_out():
    conversion = convert({"flags": {"my flag": flagd_flags.flag(), "fine": flagd_flags.flag()}})
    assert exactness_of(conversion) == {"my flag": "left out", "fine": "exact"}
    assert [note.sentence for note in conversion.flags[0].notes] == [
        "It cannot have this name here: Spaces are not allowed. Use my-flag?."
    ]


def test_a_flag_that_is_on_for_nobody_gets_no_default_strategy():
    conversion = convert(
        {"flags": {"nobody": flagd_flags.flag({"if": [{"==": [{"var": "a"}, "b"]}, "off"]})}}
    )
    assert evaluate_here(conversion, [{"userId": "1"}]) == [{"nobody": "off"}]
    assert not conversion.flags[0].is_enabled


def test_left_out_flags_are_not_in_the_file():
    content = json.dumps(ROLLOUT).encode()
    conversion = convert_file(content, options=Options(missing=Missing.LEAVE_OUT))
    names = [flag["name"] for flag in json.loads(conversion.dump())["features"]]
    assert names == ["rollout", "colors", "on"]


YAML_NUMBERS = b"""
features:
  nan: {defaultValue: .nan}
  infinite: {defaultValue: 1.5, rules: [{force: .inf}]}
  compared: {defaultValue: 1.5, rules: [{condition: {a: .nan}, force: 2}]}
"""


def test_numbers_that_json_does_not_have_are_not_converted():
    assert set(exactness_of(convert(YAML_NUMBERS)).values()) == {"imported off"}


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.yaml", b"[" * 50_000, "nested at most 100 levels"),
        ("a.yaml", b"- " * 50_000, "nested at most 100 levels"),
        ("a.yaml", b"{a: " * 50_000, "nested at most 100 levels"),
        ("a.yaml", b"a: 1" + b":59" * 50_000, "more than 400 digits"),
        ("a.yaml", b"a: 1" + b":59" * 50_000 + b".5", "more than 400 digits"),
        ("a.yaml", b"a: 0x" + b"f" * 50_000, "more than 400 digits"),
        ("a.yaml", b"a: !!binary aGk=", "a value that JSON cannot have"),
        ("a.yaml", b"a: !!set {b}", "a value that JSON cannot have"),
        ("a.yaml", b'"\\0": 1', "NUL"),
        ("a.toml", b'a = ["\\u0000"]', "NUL"),
        ("a.toml", b"a." * 50_000 + b"b = 1", "more than 100 parts"),
        ("a.toml", b"[" + b'"a" . ' * 50_000 + b"b]", "more than 100 parts"),
        ("", b"[" * 50_000, "is not valid"),
    ],
    ids=range(13),
)
def test_files_that_would_take_too_much_are_refused(name, content, why):
    """In no time: a nested file of 50 kB ended the process, and long numbers and keys took seconds."""
    with pytest.raises(ValidationError, match=why):
        read_document(content, name)


# Files -----------------------------------------------------------------------------------------------------

YAML = b"""
flags: &flags
  on: {state: ENABLED, variants: {on: true, off: false}, defaultVariant: on}
more: *flags
"""


@pytest.mark.parametrize(
    ("content", "document"),
    [
        (b'\xef\xbb\xbf {"a": 1}', {"a": 1}),
        (b"a: yes\nb: true\non: 2026-01-01\n1: x", {"a": "yes", "b": True, "on": "2026-01-01", "1": "x"}),
        (b"[a]\nb = 2026-01-01T00:00:00Z", {"a": {"b": "2026-01-01T00:00:00+00:00"}}),
        (b"[1, 2]", [1, 2]),
        (b"- 1\n- 2", [1, 2]),
    ],
)
def test_the_format_is_found(content, document):
    assert read_document(content) == document


def test_yaml_is_read_as_go_does():
    document = read_document(YAML, "flags.yaml")
    assert document["more"] == document["flags"]
    assert document["flags"]["on"]["variants"] == {"on": True, "off": False}


BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)
MERGED = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n}\n  <<: [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, "line 6: must have at most 500,000 values, with those that aliases repeat"),
        (MERGED, "line 13: must have at most 500,000 values, with those that aliases repeat"),
        ("a: &a [*a]", "contains itself"),
        ("a: !!python/object/apply:os.system [ls]", "not valid YAML"),
        ("a: [", "not valid YAML"),
        ("a: " + "{b: " * 500, "line 1: must be nested at most 100"),
        ('{"a": ', "not valid JSON"),
        ("[a\nb = 2", "not valid JSON"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("a: " + "[" * 200 + "]" * 200, "nested at most"),
    ],
)
def test_malformed_files_are_refused(content, message):
    with pytest.raises(ValidationError, match=message):
        read_document(content.encode())


DOUBLE = """flags:
  on: {state: ENABLED, variants: {on: true, off: false}, defaultVariant: on}
  on: {state: DISABLED, variants: {on: true, off: false}, defaultVariant: on}
"""
DOUBLE_JSON = """{"flags": {
  "on": {"state": "ENABLED", "variants": {"on": true, "off": false}, "defaultVariant": "on"},
  "on": {"state": "DISABLED", "variants": {"on": true, "off": false}, "defaultVariant": "on"}
}}"""


@pytest.mark.parametrize(
    ("name", "text", "note"),
    [
        ("flags.yaml", DOUBLE, "Line 2: on is there 2 times in one object: the last counts."),
        ("flags.json", DOUBLE_JSON, "on is there 2 times in one object: the last counts."),
    ],
)
def test_members_that_are_there_twice_are_noted(name, text, note):
    conversion = convert_file(text.encode(), file_name=name)
    assert note in conversion.notes
    assert [flag.name for flag in conversion.flags] == ["on"]


def test_keys_of_merged_mappings_are_not_there_twice():
    text = b"a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: *a\n"
    assert read_with_notes(text, "a.yaml") == (
        {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}, "c": {"x": 1, "y": 2}},
        [],
    )


def test_many_members_that_are_there_twice_are_counted():
    text = "".join(f"- {{a: {number}, a: 1}}\n" for number in range(12))
    _, notes = read_with_notes(text.encode(), "a.yaml")
    assert len(notes) == 11
    assert notes[-1] == "2 more members are there several times."


def test_text_in_another_encoding_is_refused():
    with pytest.raises(ValidationError, match="another encoding than UTF-8"):
        read_document("a: ü".encode("latin-1"), "flags.yaml")


def test_large_files_are_refused(settings):
    settings.IMPORT_BODY_LIMIT = 10
    with pytest.raises(PayloadTooLarge):
        read_document(b'{"a": "bbbbbbbb"}')
