"""The jobs of this repository; `nox -l` lists them, and what stands after `--` goes to the job.

Each room has the session that bears its name and runs the room's command. A session installs what
it needs by itself, wheels only, in the versions of requirements.lock: what a stranger runs is what
passed here. uv installs where it can be had (`pip install 'nox[uv]'`), else pip.
"""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "tests"]

# A Python process that has to compile redis-py first takes three times as long to start, and a run
# starts hundreds: installations are compiled, and what is compiled later is kept.
os.environ.setdefault("UV_COMPILE_BYTECODE", "1")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROOT = Path(__file__).parent
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
LOCK = ROOT / "requirements.lock"
RESULTS = ROOT / "reports" / "results"
TESTS_AT_ONCE = 1 + (os.cpu_count() or 1)
"""Most of a test's time is spent waiting for a process or a lease."""

PACKAGES = ("dtq_reference", "dtq_conformance", "dtq_chaos", "dtq_load", "dtq_reports")


def install(session: nox.Session, extra: str, *groups: str) -> None:
    """Install the project with one extra, editable, and the dependency groups of these names."""
    session.install("--only-binary", ":all:", "--no-binary", "dtq-contract",
                    "--constraint", str(LOCK), "--editable", f".[{extra}]",
                    *nox.project.dependency_groups(PYPROJECT, *groups))


def install_toxiproxy(session: nox.Session) -> None:
    """Get the Toxiproxy server; the command knows where from, and whether it may be missing."""
    session.run("python", "-m", "dtq_chaos.toxiproxy", "install")


@nox.session
def lint(session: nox.Session) -> None:
    """Read the code: ruff's rules, and mypy --strict over the five rooms."""
    install(session, "all", "lint", "tests")
    run_all(session, [("ruff", "check", *session.posargs), ("mypy",),
                      ("mypy", "noxfile.py", "conftest.py")])


@nox.session
def tests(session: nox.Session) -> None:
    """Run the house's own tests, several at once; `-- -m "not slow"` leaves out the long ones."""
    install(session, "all,bench", "tests")
    install_toxiproxy(session)
    session.run("pytest", "--numprocesses", str(TESTS_AT_ONCE), "--dist", "worksteal",
                *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """Judge a target by the cases of every clause; default: run --target reference."""
    install(session, "conformance,api")
    session.run("dtq-conformance", *(session.posargs or ["run", "--target", "reference"]))


@nox.session
def chaos(session: nox.Session) -> None:
    """Tell the stories with faults; default: run --all --target reference."""
    install(session, "chaos,api")
    install_toxiproxy(session)
    session.run("dtq-chaos", *(session.posargs or ["run", "--all", "--target", "reference"]))


@nox.session
def load(session: nox.Session) -> None:
    """Start broker, workers and Locust's web page, and print its address; default: serve."""
    install(session, "load,reports")
    session.run("dtq-load", *(session.posargs or ["serve"]))


@nox.session
def bench(session: nox.Session) -> None:
    """Measure this engine beside its peers; `-- --quick` within a minute, this engine alone."""
    install(session, "bench")
    session.run("dtq-load", "bench", *session.posargs)


@nox.session
def redis(session: nox.Session) -> None:
    """What is quick, on the redis-server from the PATH; `-- redis://…` visits one that runs."""
    install(session, "all", "tests")
    install_toxiproxy(session)
    broker = session.posargs[0] if session.posargs else "path"
    run_all(session, [
        ("pytest", "tests/reference", "--engine-broker", broker),
        ("dtq-conformance", "run", "--broker", broker),
        ("dtq-chaos", "run", "--all", "--broker", broker),
        ("dtq-load", "run", "burst_under_fire", "--headless", "--broker", broker)])


@nox.session
def docker(session: nox.Session) -> None:
    """Run on a broker in a container, on a container engine of its own; default: what it can."""
    install(session, "all")
    if shutil.which("apt-get") and not Path("/usr/sbin/dockerd").exists():
        session.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "docker.io",
                    env={"DEBIAN_FRONTEND": "noninteractive"}, external=True,
                    success_codes=[0, 1, 100])  # without it, the next line says what is missing
    session.run("python", "-P", "-m", "dtq_conformance.docker_engine", *session.posargs)


@nox.session
def report(session: nox.Session) -> None:
    """Draw a run as one page and its pictures; default: latest, the newest run."""
    install(session, "reports")
    session.run("dtq-report", *(session.posargs or ["latest"]))


@nox.session
def selftest(session: nox.Session) -> None:
    """Judge engines that are broken on purpose, and print which checker caught which."""
    install(session, "all")
    install_toxiproxy(session)
    session.run("dtq-conformance", "selftest", *session.posargs)


@nox.session
def verify(session: nox.Session) -> None:
    """The main job: conformance, chaos and the first workload, then a page about all of them;
    `-- --broker path` has all three run on another server."""
    install(session, "all")
    install_toxiproxy(session)
    folder = str(RESULTS / time.strftime("verify-%Y%m%d-%H%M%S"))
    target = ("--target", "reference", "--out", folder, *session.posargs)
    run_all(session, [
        ("dtq-conformance", "run", *target),
        ("dtq-chaos", "run", "--all", *target),
        ("dtq-load", "run", "burst_under_fire", "--headless", *target),
        ("dtq-report", "--summary", folder)])


def run_all(session: nox.Session, commands: Iterable[Iterable[str]]) -> None:
    """Run every command to its end, whatever became of those before it; then fail if one did."""
    failed = [" ".join(command) for command in commands if not succeeds(session, command)]
    if failed:
        session.error("not exited with 0:\n  " + "\n  ".join(failed))


def succeeds(session: nox.Session, command: Iterable[str]) -> bool:
    """Run a command to its end and tell whether it exited with 0."""
    try:
        session.run(*command)
    except CommandFailed:
        return False
    return True


@nox.session
def build(session: nox.Session) -> None:
    """Build wheel and sdist, look into them, and judge with the wheel outside the checkout."""
    install(session, "conformance", "build")
    session.run("python", "-c", COUNT_CLAUSES)
    with tempfile.TemporaryDirectory(prefix="dtq-build-") as name:
        folder = Path(name)
        session.run("python", "-m", "build", "--installer",
                    "uv" if session.venv_backend == "uv" else "pip", "--outdir", name)
        (sdist,) = folder.glob("*.tar.gz")
        (wheel,) = folder.glob("*.whl")
        check_sdist(session, sdist)
        check_wheel(session, wheel)
        judge_with(session, wheel, folder / "elsewhere")


COUNT_CLAUSES = """
from dtq_conformance.clauses import load_clauses
print("CONTRACT.md was found, with", len(load_clauses()), "clauses.")
"""


def check_sdist(session: nox.Session, path: Path) -> None:
    """The sdist holds the sources of the five rooms, the contract and the tests, no results."""
    with tarfile.open(path) as archive:
        names = ["/".join(Path(name).parts[1:]) for name in archive.getnames()]
    require(session, path, names, [
        *sources(), "CONTRACT.md", "LICENSE", "README.md", "pyproject.toml", "noxfile.py",
        "tests/test_tidy.py"])
    forbid(session, path, names, ["reports/results/", ".nox/", ".venv/", ".git/"])


def check_wheel(session: nox.Session, path: Path) -> None:
    """The wheel holds the five packages with scripts and templates, the contract, nothing else."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    require(session, path, names, [
        *(source.partition("/")[2] for source in sources()), "dtq_conformance/CONTRACT.md"])
    strangers = {name.partition("/")[0] for name in names} - set(PACKAGES)
    forbid(session, path, names, [
        *(name for name in strangers if not name.endswith(".dist-info")), "dtq_reports/results/"])


def sources() -> list[str]:
    """Every file of the five packages in the checkout: modules, Lua scripts, templates."""
    return [str(file.relative_to(ROOT)) for package in PACKAGES
            for file in sorted(ROOT.glob(f"*/{package}/**/*"))
            if file.is_file() and "__pycache__" not in file.parts]


def require(session: nox.Session, path: Path, names: list[str], wanted: list[str]) -> None:
    missing = sorted(set(wanted) - set(names))
    if missing:
        session.error(f"{path.name} lacks {', '.join(missing)}")


def forbid(session: nox.Session, path: Path, names: list[str], prefixes: list[str]) -> None:
    found = [name for name in names if name.startswith(tuple(prefixes))]
    if found:
        session.error(f"{path.name} must not hold {', '.join(found)}")


def judge_with(session: nox.Session, wheel: Path, folder: Path) -> None:
    """Install the wheel as a stranger would, with venv and pip alone, and run one case with it."""
    session.run(sys.executable, "-m", "venv", str(folder), external=True)
    python = str(folder / "bin" / "python")
    session.run(python, "-m", "pip", "install", "-q", "--only-binary", ":all:",
                "--constraint", str(LOCK), f"{wheel}[conformance]", external=True)
    with session.chdir(folder):
        session.run(python, "-c", COUNT_CLAUSES, external=True)
        session.run(str(folder / "bin" / "dtq-conformance"), "run", "everything_runs_once",
                    "--target", "reference", "--out", str(folder / "results"), external=True)


@nox.session
def lock(session: nox.Session) -> None:
    """Write requirements.lock anew from pyproject.toml, for every platform and Python."""
    session.install("uv")
    session.run("uv", "pip", "compile", "--universal", "--quiet", "--only-binary", ":all:",
                "--python-version", "3.11",
                "--all-extras", "--group", "lint", "--group", "tests", "--group", "build",
                "--custom-compile-command", "nox -s lock", "pyproject.toml",
                "--output-file", LOCK.name, *session.posargs)
