"""Checks the expectations of saved contexts: ``manage.py check_expectations --environment production``."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from flagadmin.core.errors import pluralize
from flagadmin.core.http.json_bodies import parse_json
from groups.access import Caller
from importer.body.schemas import parse_body
from importer.effects import answer_plan, check_if_imported, find_broken_if_imported
from importer.management.files import REFUSED, read_bytes, read_percent, refusing, write_bytes
from importer.plan.build import plan_import
from importer.plan.import_plan import Plan
from playground.comparison.given_contexts import check_contexts
from playground.saved_contexts.checks import choose_expectations, list_lines, summarize, write_junit
from playground.saved_contexts.expectations import Checked, check_expectations

NOT_MET = 1


class Command(BaseCommand):
    help = (
        "Check what saved contexts expect of flags and, for a file that could be imported, how many people it changes. "
        "Exit status: 0 if all expectations are met; 1 if some are not, or too many people change; "
        "2 if that could not be checked."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--project", action="append", help="only flags of this project; may be repeated")
        parser.add_argument(
            "--environment", action="append", help="only in this environment; may be repeated"
        )
        parser.add_argument(
            "--saved", action="append", metavar="NAME", help="only this saved context; may be repeated"
        )
        parser.add_argument("--junit", type=Path, metavar="FILE", help="write the results as JUnit XML")
        imported = parser.add_argument_group("as if a file had been imported")
        imported.add_argument(
            "--as-if-imported",
            metavar="FILE",
            help="check what importing this file would break in its project and environment (- for standard input); "
            "writes nothing",
        )
        imported.add_argument(
            "--into",
            metavar="PROJECT/ENVIRONMENT",
            help="where the file would be imported; default: the project and environment in it",
        )
        imported.add_argument(
            "--all",
            action="store_true",
            help="check everything, also what is not met now and what is elsewhere",
        )
        people = parser.add_argument_group("who changes, with --as-if-imported")
        people.add_argument(
            "--at-most",
            type=read_percent,
            metavar="PERCENT",
            help="of people who may get another result; more is exit status 1",
        )
        people.add_argument(
            "--synthetic", type=int, metavar="NUMBER", help="of generated users with ids of their own"
        )
        people.add_argument(
            "--fixed",
            action="append",
            type=_read_field,
            metavar="FIELD=VALUE",
            help="what all of them have, such as country=DE; may be repeated",
        )
        people.add_argument(
            "--contexts", metavar="FILE", help="these people: a JSON list of contexts, or CSV with a header"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with refusing(self.stderr):
            _check_options(options)
            refusals = list(self._list_refusals(options))
        if refusals:
            raise CommandError(" ".join(refusals), returncode=NOT_MET)

    def _list_refusals(self, options: Mapping[str, Any]) -> Iterator[str]:
        caller = Caller.system()
        choice = {"projects": options["project"], "environments": options["environment"]}
        if options["saved"]:
            choice["contexts"] = options["saved"]
        if options["as_if_imported"] is None:
            yield from self._report(check_expectations(caller, choose_expectations(caller, choice)), options)
            return
        plan = _plan(options, caller)
        yield from self._report(self._check_import(plan, choice, options, caller), options)
        if contexts := _read_contexts(options):
            yield from self._check_people(plan, contexts, options["at_most"], caller)

    def _report(self, results: Sequence[Checked], options: Mapping[str, Any]) -> Iterator[str]:
        if options["junit"] is not None:
            write_bytes(options["junit"], write_junit(results), REFUSED)
        for line in list_lines(results):
            self.stdout.write(line)
        if all(result.met for result in results):
            self.stdout.write(f"{summarize(results)}.")
        else:
            yield f"{summarize(results)}."

    def _check_import(
        self, plan: Plan, choice: dict[str, Any], options: Mapping[str, Any], caller: Caller
    ) -> list[Checked]:
        """All expectations, with ``--all``; otherwise those about the import's project and environment that the import
        breaks.
        """
        if options["all"]:
            return check_if_imported(plan, choice, caller=caller)
        choice["projects"] = choice["projects"] or [plan.project]
        choice["environments"] = choice["environments"] or [plan.environment]
        results = check_if_imported(plan, choice, caller=caller)
        broken = {id(result) for result in find_broken_if_imported(plan, results, caller=caller)}
        counting = [result for result in results if result.met or id(result) in broken]
        if before := len(results) - len(counting):
            self.stdout.write(f"{pluralize(before, 'expectation')} not met now either; --all counts them.")
        return counting

    def _check_people(
        self, plan: Plan, contexts: Mapping[str, Any], at_most: float | None, caller: Caller
    ) -> Iterator[str]:
        answer = answer_plan(plan, caller=caller, contexts=contexts, limit=0)
        share = 100 * answer["people"] / answer["contexts"]
        sentence = f"{answer['people']:,} of {answer['contexts']:,} people change ({share:.3g} %)"
        if at_most is not None and share > at_most:
            yield f"{sentence}; at most {at_most:.3g} % may."
        else:
            self.stdout.write(f"{sentence}.")


def _check_options(options: Mapping[str, Any]) -> None:
    """Raises CommandError for options that require others."""
    people = ("at_most", "synthetic", "fixed", "contexts")
    if options["as_if_imported"] is None:
        for name in ("into", "all", *people):
            if options[name] not in (None, False):
                raise CommandError(f"--{name.replace('_', '-')} needs --as-if-imported.", returncode=REFUSED)
    if any(options[name] is not None for name in people) and not (
        options["synthetic"] or options["contexts"]
    ):
        raise CommandError("Say which people: --synthetic NUMBER or --contexts FILE.", returncode=REFUSED)
    if options["fixed"] and not options["synthetic"]:
        raise CommandError("--fixed needs --synthetic.", returncode=REFUSED)


def _plan(options: Mapping[str, Any], caller: Caller) -> Plan:
    """The plan of a possible import. Raises ValidationError, NoAccess."""
    into = options["into"]
    project, slash, environment = (into or "").partition("/")
    if into is not None and not (project and slash and environment):
        raise CommandError(f"--into must be PROJECT/ENVIRONMENT, not {into}.", returncode=REFUSED)
    body = parse_body(
        read_bytes(options["as_if_imported"], REFUSED),
        project=project or None,
        environment=environment or None,
    )
    plan = plan_import(body, caller=caller)
    plan.check()
    return plan


def _read_contexts(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The contexts to compare, as in the body of a comparison. Raises ValidationError."""
    contexts: dict[str, Any] = {}
    if options["synthetic"] is not None:
        contexts["synthetic"] = options["synthetic"]
        contexts["fixed"] = dict(options["fixed"] or ())
    if options["contexts"] is not None:
        content = read_bytes(options["contexts"], REFUSED)
        if content.lstrip()[:1] in (b"[", b"{"):
            contexts["explicit"] = parse_json(content)
        else:
            contexts["csv"] = content.decode("utf-8-sig", errors="replace")
    return check_contexts(contexts) if contexts else {}


def _read_field(text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not (field and equals):
        raise argparse.ArgumentTypeError(f"must be FIELD=VALUE, not {text}")
    return field, value
