"""What every `run` has in common: its arguments, its trials, its table, its exit code.

The subcommands `run` of this room and of the others share what is here; `scheduler.py` sets the
trials side by side.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from rich.table import Table
from rich.text import Text

from dtq_conformance import exits, recovery, terminal
from dtq_conformance.bench import TargetFault
from dtq_conformance.broker import BrokerError, require_usable
from dtq_conformance.claims import Claimable
from dtq_conformance.claims import not_claimed as not_claimed_by
from dtq_conformance.exits import InputError
from dtq_conformance.judging import broken_promises
from dtq_conformance.lab import LabError, interruptible
from dtq_conformance.scheduler import (
    Ended,
    Job,
    default_jobs,
    end_with_parent,
    side_by_side,
    told,
)
from dtq_conformance.target import UnknownTarget, load_target, preloaded_for
from dtq_conformance.trial import Options, Run, Trial, conduct
from dtq_conformance.waiting import WaitedTooLong


@contextlib.contextmanager
def input_faults() -> Iterator[None]:
    """Turn the known faults of target, broker and bench into `InputError`."""
    try:
        yield
    except (UnknownTarget, BrokerError, TargetFault) as error:
        raise InputError(str(error)) from error
    except (WaitedTooLong, LabError) as error:
        raise RuntimeError(f"the trial could not be carried out: {error}") from error


def add_trial_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of whatever runs one trial or several."""
    parser.add_argument("--target", default="reference", metavar="TARGET",
                        help="reference, broken:NAME, or module:attribute (default reference)")
    parser.add_argument("--broker", default="embedded", metavar="BROKER",
                        help="embedded, path, docker:IMAGE, or redis://… (default embedded)")
    _add_out(parser)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31),
                        help="the seed of all that is random (default: drawn)")


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that every `run` has."""
    add_trial_arguments(parser)
    parser.add_argument("--jobs", type=number_from_1, default=default_jobs(), metavar="N",
                        help="trials at once (default %(default)s)")
    parser.add_argument("--anew", action="store_true",
                        help="start each of the target's processes by its command line, as is "
                             "done where one trial is named; else a target may have its modules "
                             "imported once, and its processes forked")
    _add_json(parser)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of what runs again exactly what was run before."""
    _add_out(parser)
    _add_json(parser)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=default_out(), metavar="FOLDER",
                        help="where run folders are written (default %(default)s)")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")


def number_from_1(word: str) -> int:
    """The number that an argument says. For argparse, which makes a usage error of ValueError."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a number from 1")
    return int(word)


def known_names(what: str, names: Sequence[str], known: Mapping[str, object]) -> list[str]:
    """The names, each once, if all are known. Raises `InputError` that names what is known."""
    for name in names:
        if name not in known:
            raise InputError(f"There is no {what} {name!r}. Known are {', '.join(known)}.")
    return list(dict.fromkeys(names))


def partition(trials: Mapping[str, Claimable],
              target: str) -> tuple[list[str], dict[str, str]]:
    """The names of the trials to run, and of those that the target does not claim, with reasons."""
    with input_faults():
        skipped = not_claimed_by(trials, frozenset(load_target(target).claims))
    return [name for name in trials if name not in skipped], skipped


def run_all(module_and_command: Sequence[str], names: Sequence[str],
            arguments: argparse.Namespace, *flags: str) -> list[Ended]:
    """Run trials side by side by `python -m MODULE COMMAND NAME …`, once each with its own seed.

    A single trial gets the seed that was asked for, so that the printed command repeats it.
    """
    module, command = module_and_command
    drawn = [arguments.seed] if len(names) == 1 else seeds(arguments.seed, len(names))
    return run_jobs([job_of(name, [module, command, name], arguments, seed, *flags)
                     for name, seed in zip(names, drawn, strict=True)], arguments)


def job_of(name: str, words: Sequence[str], arguments: argparse.Namespace, seed: int,
           *flags: str, limit_s: float | None = None) -> Job:
    """The job of one trial, which `python -m WORDS …` runs."""
    # -P: what lies in the current folder, where targets are looked for, replaces no module of ours
    return Job(name, [sys.executable, "-P", "-m", *words, "--target", arguments.target,
                      "--broker", arguments.broker, "--out", str(arguments.out),
                      "--seed", str(seed), *flags], limit_s)


def run_jobs(jobs: Sequence[Job], arguments: argparse.Namespace) -> list[Ended]:
    """Run trials side by side, once it is sure that target and broker can be used."""
    with input_faults():
        kind = load_target(arguments.target)
        require_usable(arguments.broker)
    try:
        arguments.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Runs cannot be written to {arguments.out}: {error.strerror}. Name a "
                         "folder with --out.") from error
    anew = len(jobs) == 1 or arguments.anew
    return side_by_side(jobs, at_once=arguments.jobs, progress=not arguments.json,
                        preload=() if anew else preloaded_for(kind))


def run_one(trial: Trial, arguments: argparse.Namespace, *, with_faults: bool,
            repeat: str) -> Run:
    """Run one trial in this process, which ends in good order when interrupted or orphaned."""
    end_with_parent()
    with interruptible(), input_faults():
        return conduct(trial, load_target(arguments.target), Options(
            out=arguments.out, broker=arguments.broker, seed=arguments.seed,
            with_faults=with_faults, repeat=repeat))


def default_out() -> Path:
    """reports/results in a checkout, dtq-results elsewhere."""
    checkout = Path(__file__).parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "reports").is_dir():
        return checkout / "reports" / "results"
    return Path("dtq-results")


def seeds(first: int, count: int) -> list[int]:
    """A seed for each of several trials, drawn from one."""
    drawn = random.Random(first)
    return [drawn.randrange(2**31) for _ in range(count)]


def conclude(ended: Sequence[Ended], *, as_json: bool, out: Path,
             not_run: Mapping[str, str] | None = None,
             not_claimed: Mapping[str, str] | None = None,
             untested: Mapping[str, str] | None = None, alone: bool = False) -> int:
    """Print what became of all trials and return the exit code of the whole.

    `not_run` maps what could not be run to the reason, `not_claimed` what the target does not
    want to be judged by, `untested` the claimed clauses that no trial tests yet: they are counted
    beside the verdicts. `alone` says that these trials were asked
    for by name: then a canary's conviction is what it is, a violation.
    """
    not_run, not_claimed, untested = not_run or {}, not_claimed or {}, untested or {}
    code = exit_code(ended, alone=alone, not_run=len(not_run))
    if as_json:
        sys.stdout.write(msgspec.json.encode({
            "out": str(out), "exit_code": code, "not_run": not_run,
            "not_claimed": not_claimed, "untested": untested,
            "runs": [{"name": each.name, "folder": each.folder and str(each.folder),
                      "status": each.status, "as_expected": each.is_as_expected,
                      "problem": each.problem, "verdict": each.verdict,
                      "recovery": recovery.read(each.folder)} for each in ended],
        }).decode() + "\n")
        return code
    console = terminal.console()
    table = Table(title_justify="left")
    for column in ("trial", "verdict", "explanation"):
        table.add_column(column, overflow="fold")
    for each in ended:
        style = "green" if each.is_as_expected else terminal.STYLE[
            "violated" if each.status == "holds" else each.status]
        sentence = each.problem if each.verdict is None else each.verdict.sentence
        word = "no verdict" if each.verdict is None else told(each)
        table.add_row(each.name, Text(word, style=style), Text(sentence))
    for name, reason in not_run.items():
        table.add_row(name, Text("not run", style="yellow"), Text(reason))
    for name, reason in not_claimed.items():
        table.add_row(name, Text("not claimed", style="dim"), Text(reason))
    console.print(table)
    for each in ended:
        if each.verdict is not None and not each.is_as_expected:
            console.print(Text(f"{each.name}: {each.folder}\n  repeat with: "
                               f"{each.verdict.repeat}"), soft_wrap=True)
    for line in broken_promises(each.verdict for each in ended
                                if each.verdict and not each.is_as_expected):
        console.print(Text(line), soft_wrap=True)
    _print_warnings(ended)
    good = sum(each.is_as_expected for each in ended)
    brokers = sorted({each.verdict.broker for each in ended if each.verdict})
    console.print(f"{good} of {len(ended)} trials ended as they should, {len(not_run)} not run, "
                  f"{len(not_claimed)} not claimed. "
                  f"Broker: {', '.join(brokers) or 'none'}. Runs: {out}",
                  highlight=False, soft_wrap=True)
    if untested:
        console.print(f"Untested: no trial tests {len(untested)} of the clauses that the target "
                      "claims yet; dtq-conformance clauses tells which, and why.",
                      highlight=False, soft_wrap=True)
    return code


def _print_warnings(ended: Sequence[Ended]) -> None:
    """Each SHOULD that was violated, in a line of its own: it changes no verdict."""
    warned = {row.clause: f"warning: {row.clause}, in {each.name}: {row.sentence}"
              for each in ended if each.verdict
              for row in each.verdict.rows if row.status == "warning"}
    for line in warned.values():
        terminal.console().print(Text(line, style=terminal.STYLE["warning"]), soft_wrap=True)


def exit_code(ended: Sequence[Ended], *, alone: bool = False, not_run: int = 0) -> int:
    """The worst of all: harness failed, input at fault, violated, unknown, conforms.

    What could not be run is an input at fault where nothing may be missing, else no matter.
    """
    codes = {code_of(each, alone=alone) for each in ended}
    if not_run and exits.in_ci():
        codes.add(exits.INPUT)
    for code in (exits.HARNESS, exits.INPUT, exits.VIOLATED, exits.UNKNOWN):
        if code in codes:
            return code
    return exits.CONFORMS if codes else exits.UNKNOWN


def code_of(ended: Ended, *, alone: bool = False) -> int:
    """One trial's code. A canary that is not convicted means that the judge cannot be trusted."""
    if ended.is_as_expected:
        return ended.exit_code if alone else exits.CONFORMS
    if ended.verdict is not None and (ended.verdict.expects, ended.status) == ("violated", "holds"):
        return exits.HARNESS
    return ended.exit_code
