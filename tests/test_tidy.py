"""The rules of the house, as tests: what CONTRIBUTING.md asks for is looked up here in the files.

A rule about one file is a function from a `Source` to sentences; it is run over every Python file,
and on a bad example that it must find. Rules about several files are tests of their own.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("reference", "conformance", "chaos", "load", "reports")
PACKAGE = {"reference": "dtq_reference", "conformance": "dtq_conformance", "chaos": "dtq_chaos",
           "load": "dtq_load", "reports": "dtq_reports"}

FUNCTION_LINES, MODULE_LINES, TEST_MODULE_LINES, COLUMNS = 60, 400, 500, 100

MAY_IMPORT = {"reference": (), "conformance": (), "chaos": ("conformance",),
              "load": ("conformance",), "reports": ("conformance",)}
"""Whose packages a room imports beside its own. The engine's name falls in these files alone:"""
MAY_IMPORT_ENGINE = ("conformance/dtq_conformance/targets/reference.py",
                     "conformance/dtq_conformance/targets/defect.py",
                     "conformance/dtq_conformance/targets/broken/",
                     "load/dtq_load/peer_apps/dtq_app.py", "load/dtq_load/peer_apps/bare.py",
                     "load/dtq_load/peer_apps/straight.py")
REPORTS_MAY_IMPORT = frozenset({"history", "verdict", "operation", "clauses", "evidence",
                                "justification", "losses", "recovery", "exits", "target.TERMINAL"})
"""What reports may import of conformance: the saved run and what is read from it, the words of the
contract, and how a command ends. Nothing that runs, judges or knows a target."""

MAY_IMPORT_LOCUST = tuple(f"load/dtq_load/{name}.py"
                          for name in ("locustfile", "users", "shapes", "delivery_tab"))
"""Locust patches the standard library at import; these are loaded in its own process only."""

MAY_SLEEP = ("conformance/dtq_conformance/waiting.py", "conformance/dtq_conformance/pacemaker.py",
             "conformance/dtq_conformance/probe.py", "reference/dtq_reference/demo_tasks.py",
             "reference/dtq_reference/transport.py", "load/dtq_load/peer_apps/client.py")
"""Where sleeping is the work itself (tasks that sleep, the pause before something is sent again).
Everyone else waits for a condition."""

LISTED_FOLDERS = (
    "conformance/dtq_conformance/checkers", "conformance/dtq_conformance/cases",
    "conformance/dtq_conformance/targets/broken", "chaos/dtq_chaos/faults",
    "chaos/dtq_chaos/scenarios", "load/dtq_load/workloads", "load/dtq_load/bench/peers",
    "reports/dtq_reports/plots")
"""Folders with one file per instance; `__init__.py` holds the one list of them."""

TESTS_WITHOUT_A_MODULE = {
    "tests/test_tidy.py": "the rules of the house",
    "tests/conformance/test_strangers_target.py": "a target that nobody here knows",
    "tests/test_ci.py": "the workflow for GitHub",
    "tests/test_contract_tables.py": "the contract's tables and the engine",
    "tests/test_packaging.py": "pyproject.toml, the lock and the installed files",
    "tests/test_conftest.py": "what all tests share",
    "tests/reference/test_broker_trouble.py": "what may befall the broker, and all who use it",
    "tests/conformance/test_generated_histories.py": "all checkers, on generated histories",
}

FORBIDDEN = {
    "an unfinished note": r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b",
    "how the repository was made": r"(?i)\bhelper (?:ses" r"sion|ag" r"ent)",
    "a path of one machine": r"(?<![\w.~])/(?:wo" r"rk|ro" r"ot|home)/",
}

TEXT = (".py", ".lua", ".md", ".toml", ".html", ".jinja", ".j2", ".css", ".js")

FAMILIES = ("STATE|TASK|KEY|DLV|RETRY|SCHED|IDEM|PRIO|WORK|STOP|CANCEL|TTL|DLQ|PAUSE|BACK|EVT|MET|"
            "CONF|API|CLI|SEC|DEMO|HAND|DUR|CLAIM")
CLAUSE = re.compile(rf"\b(?:{FAMILIES})-(?!99)\d\d\b")
"""A clause id. Number 99 of a family is never given away: tests name it for "no such clause"."""


@dataclass(frozen=True)
class Source:
    """One Python file: where it stands, relative to the repository, and what it says."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def room(self) -> str:
        return PurePosixPath(self.path).parts[0]

    @cached_property
    def imports(self) -> list[tuple[int, str]]:
        """Every module or name that is imported, dotted, with its line; by name or by string."""
        return list(self._imports())

    def _imports(self) -> Iterator[tuple[int, str]]:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
            elif isinstance(node, ast.Call) and dotted(node.func).endswith("import_module"):
                yield from ((node.lineno, word.value) for word in node.args
                            if isinstance(word, ast.Constant) and isinstance(word.value, str))


def dotted(node: ast.AST) -> str:
    """A name with its dots, `a.b.c`; of anything else nothing, or its last part, `.c`."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def files(*suffixes: str) -> list[Path]:
    """The repository's own files with these suffixes; what runs and tools leave is not among them.
    """
    found = [path for path in ROOT.iterdir() if path.is_file()]
    for folder in (*ROOMS, "tests", "docs", ".ci"):
        found += (ROOT / folder).rglob("*")
    results = ROOT / "reports" / "results"
    return sorted(path for path in found
                  if path.suffix in suffixes and path.is_file() and not path.is_symlink()
                  and results not in path.parents)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


SOURCES = [Source(name_of(path), path.read_text()) for path in files(".py")]
TESTS = [source for source in SOURCES if source.room == "tests"]


# Rules about one file ---------------------------------------------------------------------------

def functions_are_short(source: Source) -> Iterator[str]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield (f"{source.path}:{node.lineno}: {node.name} has {lines} lines; "
                       f"{FUNCTION_LINES} are allowed")


def modules_are_short(source: Source) -> Iterator[str]:
    is_test = PurePosixPath(source.path).name.startswith("test_")
    allowed = TEST_MODULE_LINES if is_test else MODULE_LINES
    lines = len(source.text.splitlines())
    if lines > allowed:
        yield f"{source.path} has {lines} lines; {allowed} are allowed"


def modules_have_a_head(source: Source) -> Iterator[str]:
    if len((ast.get_docstring(source.tree) or "").split()) < 3:
        yield f"{source.path} has no docstring that says where it stands in the flow"


def no_star_imports(source: Source) -> Iterator[str]:
    for line, name in source.imports:
        if name.endswith(".*"):
            yield f"{source.path}:{line}: {name} cannot be found with grep; import names"


def imports_go_one_way(source: Source) -> Iterator[str]:
    if source.room not in ROOMS:
        return
    for line, name in source.imports:
        package, _, rest = name.partition(".")
        room = next((room for room in ROOMS if PACKAGE[room] == package), source.room)
        if room == source.room or room in MAY_IMPORT[source.room]:
            if source.room == "reports" and room == "conformance" and \
                    REPORTS_MAY_IMPORT.isdisjoint({rest, rest.partition(".")[0]}):
                yield f"{source.path}:{line}: reports reads what runs have saved, not {name}"
        elif not (room == "reference" and source.path.startswith(MAY_IMPORT_ENGINE)):
            yield f"{source.path}:{line}: {source.room} must not import {name}"


def locust_stays_in_its_process(source: Source) -> Iterator[str]:
    for line, name in source.imports:
        if name.partition(".")[0] in ("locust", "gevent") and \
                source.path not in MAY_IMPORT_LOCUST:
            yield f"{source.path}:{line}: only {', '.join(MAY_IMPORT_LOCUST)} import {name}"


def nobody_sleeps_to_be_safe(source: Source) -> Iterator[str]:
    if source.path in MAY_SLEEP:
        return
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and dotted(node) == "time.sleep":
            yield f"{source.path}:{node.lineno}: wait for a condition (waiting.wait_for)"
    for line, name in source.imports:
        if name == "time.sleep":
            yield f"{source.path}:{line}: wait for a condition (waiting.wait_for)"


def skips_are_counted(source: Source) -> Iterator[str]:
    if source.room != "tests":
        return
    for node in source.nodes:
        if isinstance(node, ast.Call):
            hides = dotted(node.func) in ("pytest.skip", "pytest.xfail", "pytest.importorskip")
        elif isinstance(node, ast.Attribute):
            hides = bool(re.fullmatch(r"pytest\.mark\.(skip|skipif|xfail)", dotted(node)))
        else:
            continue
        if hides:
            yield f"{source.path}:{node.lineno}: a skip goes through the fixture `need`"


RULES: tuple[Callable[[Source], Iterator[str]], ...] = (
    functions_are_short, modules_are_short, modules_have_a_head, no_star_imports,
    imports_go_one_way, locust_stays_in_its_process, nobody_sleeps_to_be_safe, skips_are_counted)

BAD: list[tuple[Callable[[Source], Iterator[str]], str, str]] = [
    (functions_are_short, "chaos/x.py", "def f():\n" + "    pass\n" * 60),
    (functions_are_short, "chaos/x.py", "class C:\n  async def f(self):\n" + "    pass\n" * 60),
    (modules_are_short, "chaos/x.py", "\n" * 401),
    (modules_are_short, "tests/test_x.py", "\n" * 501),
    (modules_have_a_head, "chaos/x.py", "import os"),
    (modules_have_a_head, "chaos/x.py", '"""x"""'),
    (no_star_imports, "chaos/x.py", "from os import *"),
    (imports_go_one_way, "reference/x.py", "from dtq_conformance.history import History"),
    (imports_go_one_way, "conformance/dtq_conformance/lab.py", "import dtq_reference.queue"),
    (imports_go_one_way, "conformance/x.py", "def f():\n    from dtq_chaos import fault"),
    (imports_go_one_way, "conformance/x.py", "importlib.import_module('dtq_chaos.fault')"),
    (imports_go_one_way, "load/x.py", "from dtq_reference import queue"),
    (imports_go_one_way, "load/x.py", "from dtq_chaos import fault"),
    (imports_go_one_way, "reports/x.py", "from dtq_conformance import lab"),
    (imports_go_one_way, "reports/x.py", "from dtq_conformance.lab import Lab"),
    (locust_stays_in_its_process, "load/dtq_load/__main__.py", "import locust.env"),
    (locust_stays_in_its_process, "tests/load/test_x.py", "from gevent import monkey"),
    (nobody_sleeps_to_be_safe, "chaos/x.py", "import time\ntime.sleep(1)"),
    (nobody_sleeps_to_be_safe, "tests/test_x.py", "from time import sleep"),
    (skips_are_counted, "tests/test_x.py", "import pytest\npytest.skip('not here')"),
    (skips_are_counted, "tests/test_x.py", "@pytest.mark.skipif(True)\ndef test_x(): ..."),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_python_file_keeps(rule: Callable[[Source], Iterator[str]]) -> None:
    report([sentence for source in SOURCES for sentence in rule(source)])


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_each_rule_finds_its_bad_example(
        rule: Callable[[Source], Iterator[str]], path: str, text: str) -> None:
    assert list(rule(Source(path, text)))


def test_each_rule_has_a_bad_example() -> None:
    assert {rule for rule, _, _ in BAD} == set(RULES)


def report(violations: list[str]) -> None:
    """Fail with all sentences at once, one a line."""
    assert not violations, "\n" + "\n".join(violations)


# Rules about several files ----------------------------------------------------------------------

def test_lines_are_at_most_100_wide() -> None:
    report([f"{name_of(path)}:{number} has {len(line)} columns; {COLUMNS} are allowed"
            for path in files(".py", ".lua")
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if len(line) > COLUMNS])


def test_no_file_holds_a_forbidden_word() -> None:
    report([f"{name_of(path)}:{number} holds {what}: {line.strip()}"
            for path in [*files(*TEXT), ROOT / ".ci" / "run"]
            for number, line in enumerate(path.read_text().splitlines(), 1)
            for what, pattern in FORBIDDEN.items() if re.search(pattern, line)])


@pytest.mark.parametrize("line", ["# TO" "DO: later", "FIX" "ME", "by a helper ses" "sion",
                                  "cd /wo" "rk/main", "'/ro" "ot/x'"])
def test_a_forbidden_word_is_found(line: str) -> None:
    assert any(re.search(pattern, line) for pattern in FORBIDDEN.values())


@pytest.mark.parametrize("folder", LISTED_FOLDERS)
def test_the_list_in_init_equals_the_folder(folder: str) -> None:
    init = ROOT / folder / "__init__.py"
    assert init.exists(), f"{folder} has no __init__.py with the list of its files"
    files_here = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__", "__main__"}
    assert files_here == listed(ast.parse(init.read_text()), files_here), (
        f"{folder}: the files and the list in __init__.py differ")


def listed(tree: ast.Module, stems: set[str]) -> set[str]:
    """The names in the one list of an `__init__.py`: strings, or modules that it holds.

    The list is the first collection that is assigned at the top level: a tuple, a list, or a dict,
    whose values count. `module.check` and `checks.module` both name `module`. Of a dict that is
    made of the modules in a tuple, `{… for module in (a, b)}`, the tuple counts.
    """
    for node in tree.body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.DictComp):
            value = value.generators[0].iter
        if isinstance(value, ast.Dict):
            return {spelled(entry, stems) for entry in value.values}
        if isinstance(value, ast.Tuple | ast.List):
            return {spelled(entry, stems) for entry in value.elts}
    return set()


def spelled(entry: ast.expr, stems: set[str]) -> str:
    """The module that an entry of a list names, or the entry as it is written."""
    if isinstance(entry, ast.Constant):
        return str(entry.value)
    words = [node.id for node in ast.walk(entry) if isinstance(node, ast.Name)]
    words += [node.attr for node in ast.walk(entry) if isinstance(node, ast.Attribute)]
    return next((word for word in words if word in stems), ast.unparse(entry))


@pytest.mark.parametrize(("text", "expected"), [
    ("X = ('a', 'b')", {"a", "b"}),
    ("from x import a, b\nX = {'k': a.check, 'l': b.check}", {"a", "b"}),
    ("X: tuple[str, ...] = (a.CASE, b.CASE)", {"a", "b"}),
    ("X = ('a', 'gone')", {"a", "gone"}),
    ("from x import a, b\nX = (a,)", {"a"}),
    ("from x import a, b\nX = {m.CASE.name: m.CASE for m in (a, b)}", {"a", "b"}),
    ("from x import a\nX = {c.name: c for m in (a,) for c in m.CASES}", {"a"}),
])
def test_a_list_is_read_as_it_is_written(text: str, expected: set[str]) -> None:
    assert listed(ast.parse(text), {"a", "b"}) == expected


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_holds_one_package_and_a_readme(room: str) -> None:
    packages = sorted(path.parent.name for path in (ROOT / room).glob("*/__init__.py"))
    assert packages == [PACKAGE[room]]
    assert not list((ROOT / room).glob("*.py")), f"{room}/ holds modules beside its package"
    assert (ROOT / room / "README.md").exists(), f"{room}/ has no README.md"


def commands(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.startswith("python3 -m venv ")]


def test_ci_runs_the_two_commands_of_the_readme_word_for_word() -> None:
    verify, tests = commands(ROOT / "README.md")
    assert commands(ROOT / ".ci" / "run") == [tests, verify]
    assert verify.replace("-s verify", "-s tests") == tests


def test_each_test_module_mirrors_a_module() -> None:
    report([f"{source.path} mirrors no module; name it after what it tests"
            for source in TESTS if is_test(source) and not mirrored(source)
            and source.path not in TESTS_WITHOUT_A_MODULE])
    assert all((ROOT / path).exists() for path in TESTS_WITHOUT_A_MODULE)


def is_test(source: Source) -> bool:
    return PurePosixPath(source.path).name.startswith("test_")


def mirrored(source: Source) -> bool:
    """Whether tests/<room>/…/test_x.py has an x.py, x.lua or x/ somewhere in <room>."""
    room = PurePosixPath(source.path).parts[1]
    stem = PurePosixPath(source.path).stem.removeprefix("test_")
    return room in ROOMS and any(
        path.stem == stem and (path.is_dir() or path.suffix in (".py", ".lua"))
        for path in (ROOT / room / PACKAGE[room]).rglob("*"))


CONTRACT = (ROOT / "CONTRACT.md").read_text()
CLAUSES = re.findall(r"^### ([A-Z]+-\d\d) · (?:MUST|SHOULD|MAY) · [a-z:-]+$", CONTRACT, re.M)


def test_the_ids_of_clauses_are_unique_and_every_heading_is_a_clause() -> None:
    assert len(CLAUSES) == len(re.findall(r"^### ", CONTRACT, re.M)), "a heading is not of the form"
    assert sorted(CLAUSES) == sorted(set(CLAUSES))
    report([f"{clause} is of no known family" for clause in CLAUSES if not CLAUSE.search(clause)])


def test_every_clause_that_is_named_anywhere_exists() -> None:
    report([f"{name_of(path)} names {clause}, which CONTRACT.md does not have"
            for path in files(*TEXT)
            for clause in sorted(set(CLAUSE.findall(path.read_text())) - set(CLAUSES))])


def test_each_dependency_says_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    project = tomllib.loads(text)
    lists = [project["project"]["dependencies"],
             *project["project"]["optional-dependencies"].values(),
             *project["dependency-groups"].values()]
    report([f"pyproject.toml: {name} has no reason beside it" for names in lists for name in names
            if not name.startswith("dtq-contract[")
            and not re.search(rf'^\s+"{re.escape(name)}",\s+# \w', text, re.M)])
