"""Contracts of ``lint-imports`` that go by the names of files (``[tool.importlinter]`` in ``pyproject.toml``)."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

import grimp
from importlinter import Contract, ContractCheck, fields, output


class FileContract(Contract):
    """Base class. Patterns of names are separated by spaces: ``api *_api``."""

    packages = fields.SetField(subfield=fields.StringField())

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        modules = sorted(module for module in graph.modules if module.partition(".")[0] in self.packages)
        chains = [chain for module in modules for chain in self.find_violations(graph, module)]
        return ContractCheck(kept=not chains, metadata={"chains": chains})

    def find_violations(self, graph: grimp.ImportGraph, module: str) -> Iterator[list[str]]:
        """Chains of imports that begin with the module and must not be."""
        raise NotImplementedError

    def render_broken_contract(self, check: ContractCheck) -> None:
        for chain in check.metadata["chains"]:
            output.print_error(" -> ".join(chain))


class FileOrder(FileContract):
    """A file imports only files of its own and lower rows, even through files that stand in no row.

    A pattern with a dot is a module, of any package. All others are names of files and folders.
    """

    type_name = "file_order"

    rows = fields.ListField(subfield=fields.StringField())  # from the highest to the lowest

    def find_violations(self, graph: grimp.ImportGraph, module: str) -> Iterator[list[str]]:
        package = module.partition(".")[0]
        own_row = self._row(module, package)
        if own_row is None:
            return
        chains, seen = [[module]], {module}
        while chains:
            chain = chains.pop()
            for imported in sorted(graph.find_modules_directly_imported_by(chain[-1]) - seen):
                seen.add(imported)
                row = self._row(imported, package)
                if row is None and imported.startswith(f"{package}."):
                    chains.append([*chain, imported])
                elif row is not None and row < own_row:
                    yield [*chain, imported]

    def _row(self, module: str, package: str) -> int | None:
        root, *names = module.split(".")
        for row, patterns in enumerate(self.rows):
            if module in patterns.split() or (root == package and any(_matches(n, patterns) for n in names)):
                return row
        return None


class SubjectFaces(FileContract):
    """What a subject shows of itself is imported only inside the subject, and by files that gather all of them."""

    type_name = "subject_faces"

    faces = fields.StringField()
    gathered_by = fields.StringField()

    def find_violations(self, graph: grimp.ImportGraph, module: str) -> Iterator[list[str]]:
        *folders, name = module.split(".")
        if len(folders) < 2 or not _matches(name, self.faces):
            return
        for importer in sorted(graph.find_modules_that_directly_import(module)):
            own = importer.split(".")[:2] == module.split(".")[:2]
            if not own and not _matches(importer.rpartition(".")[2], self.gathered_by):
                yield [importer, module]


def _matches(name: str, patterns: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns.split())
