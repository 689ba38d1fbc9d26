"""Reports and proofs in sentences."""

from collections.abc import Iterator, Sequence

from importer.moving.proving.proof import TokenProof
from importer.moving.report import Report, name_some_flags

SHOWN = 50
"""Flags of one token whose differences are named. A report has all."""


def count_lines(report: Report) -> str:
    counted = [f"{count:,} {kind}" for kind, count in report.counts.items() if count]
    return f"{', '.join([*counted, f'{report.same:,} flags are the same'])}."


def describe_proof(proof: TokenProof, users: int) -> Iterator[str]:
    differing = f"{len(proof.differences):,} of {proof.flags:,} flags differ for {users:,} users"
    result = differing if proof.differences else proof.problem or proof.note or differing
    yield f"token {proof.name} ({proof.environment}): {result}"
    if proof.left_out:
        yield f"  left out: {name_some_flags(proof.left_out)}"
    for each in proof.differences[:SHOWN]:
        yield f"  {each.flag}: {each.users:,} of {each.of:,}: {each.reason}"
        if each.example:
            yield f"    {each.example}"
    if proof.spellings:
        yield f"  {len(proof.spellings):,} flags are written otherwise and give the same results:"
    for each in proof.spellings[:SHOWN]:
        yield f"  {each.flag}: {each.reason}"


def summarize_proofs(proofs: Sequence[TokenProof]) -> str:
    if not proofs:
        return "There is no SDK token to compare with."
    if unequal := sum(not proof.is_equal for proof in proofs):
        return f"{unequal} of {len(proofs)} tokens get something else here."
    left_out = {name for proof in proofs for name in proof.left_out}
    but = f", but for what is left out: {name_some_flags(sorted(left_out))}" if left_out else ""
    return f"All {len(proofs)} tokens get the same here{but}."
