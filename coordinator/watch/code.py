"""Compares the code of the LPs of a run: one module must have one content in all of them.

An LP reports the files that it has imported in `Hello`, in `Ready` and in `Done`, each time those
which are new. Modules that two LPs have both imported are compared by name; an LP need not import
what another one does.

A child of multiprocessing imports the user's program before its recorder exists, and hashes these
files a moment later: an edit in between would be missed. So the coordinator hashes the files of its
own modules before the first LP starts. An LP that finds the same content has imported it.
"""

from collections.abc import Iterator, Mapping, Sequence

from coordinator.watch.failure import CodeDiffersError
from runtime.core.code.imported_code import CodeFile, imported_code, script_of_this_process
from runtime.wire.control import ModuleCode

COORDINATOR = "the coordinator"


class RunCode:
    """The code of one run: by module, what each process of the run has imported.

    `coordinator` are the modules of this process, by default as their files are now.
    """

    def __init__(self, coordinator: Mapping[str, CodeFile] | None = None) -> None:
        if coordinator is None:
            coordinator = imported_code() | script_of_this_process()
        self._coordinator = coordinator
        self._lps = dict[int, dict[str, CodeFile]]()

    def add(self, lp: int, modules: Sequence[ModuleCode]) -> None:
        """LP `lp` reports `modules`; a later report of a module replaces an earlier one."""
        files = {each.module: CodeFile(each.file, each.sha256) for each in modules}
        self._lps.setdefault(lp, {}).update(files)

    def check(self) -> None:
        """Raise `CodeDiffersError` for the first module that differs between two LPs."""
        seen = dict[str, tuple[int, CodeFile]]()
        for lp, module, file in self._reports():
            other, known = seen.setdefault(module, (lp, file))
            if known.sha256 != file.sha256:
                raise CodeDiffersError(module, f"LP {other}", known, f"LP {lp}", file)

    def check_start(self) -> None:
        """Raise `CodeDiffersError` for a file that was edited while the LPs were starting."""
        for lp, module, file in self._reports():
            known = self._coordinator.get(module)
            # The coordinator may have imported another module of this name.
            if known and known.file == file.file and known.sha256 != file.sha256:
                raise CodeDiffersError(module, COORDINATOR, known, f"LP {lp}", file)

    @property
    def files(self) -> dict[str, CodeFile]:
        """The file of every module that an LP has imported, in the order of their names."""
        return dict(sorted((module, file) for _, module, file in self._reports()))

    def _reports(self) -> Iterator[tuple[int, str, CodeFile]]:
        for lp in sorted(self._lps):
            for module, file in self._lps[lp].items():
                yield lp, module, file
