"""The subject of each commit since `FIRST` is an imperative sentence of at most 72 characters."""

import re
import subprocess

import pytest

from tests.support.paths import ROOT

FIRST = "Store the past, close ways round approvals, and halve the tests' time"
LONGEST = 72
# What a subject may be tempted to begin with: articles, pronouns, question words, prepositions, numbers.
NO_VERBS = re.compile(
    "A|All|An|And|As|At|By|Each|Every|For|From|How|If|In|Its?|Many|More|Most|Much|New|No|Nobody|None|Of|On|One|Only|Others?|Our|"
    "Some|Somebody|Something|Such|Than|That|The|Their|There|These|They|This|Those|Three|To|Two|What|When|Where|Whether|Which|"
    "While|Who|Whoever|Whom|Whose|Why|With|Without"
)
IMPERATIVES_IN_ED_OR_ING = {
    "Bring",
    "Embed",
    "Exceed",
    "Feed",
    "Need",
    "Ping",
    "Proceed",
    "Seed",
    "Shed",
    "Speed",
    "String",
}


def find_fault(subject: str) -> str:
    """What is wrong with a subject, or ""."""
    first = subject.partition(" ")[0]
    if len(subject) > LONGEST:
        return f"has {len(subject)} characters"
    if not re.fullmatch(r"[A-Z][a-z-]+", first) or NO_VERBS.fullmatch(first):
        return "does not begin with a verb"
    if re.search(r"(ed|ing)$", first) and first not in IMPERATIVES_IN_ED_OR_ING:
        return "does not begin with an imperative"
    if subject.endswith((".", ";", ",")):
        return "ends with punctuation"
    return ""


@pytest.mark.parametrize(
    ("subject", "fault"),
    [
        ("Compare fingerprints before applying an approved request", ""),
        ("What the end of a turn is to a connection", "does not begin with a verb"),
        ("Deleting a group names its approvals", "does not begin with an imperative"),
        ("Added a page", "does not begin with an imperative"),
        ("fix pages", "does not begin with a verb"),
        ("Compare pages.", "ends with punctuation"),
        ("Compare " + "x" * 65, "has 73 characters"),
    ],
)
def test_faults_are_found(subject: str, fault: str) -> None:
    assert find_fault(subject) == fault


def test_subjects() -> None:
    subjects = git("log", "--no-merges", "--format=%s").splitlines()
    if FIRST not in subjects:
        pytest.skip(
            f"NOT CHECKED: this clone is shallow or has no history, so commits since {FIRST!r} are unknown."
        )
    since = subjects[: subjects.index(FIRST)]
    faults = [f"{subject!r} {fault}" for subject in since if (fault := find_fault(subject))]
    assert not faults, "\n".join(faults)


def git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout
