"""The subcommand `fuzz`: lives of tasks that Hypothesis draws, played against a live target.

One broker serves all lives. Each life has a lab of its own on it (key prefix, witness file,
pacemaker, workers), got ready while the life before is played. The history of a life is saved,
then judged; a bad life is shrunk to its fewest steps. A life that was judged is never played
again: its history is the proof, whatever the target would do the next time.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NoReturn

import hypothesis
import msgspec
from hypothesis.stateful import run_state_machine_as_test
from rich.text import Text

from dtq_conformance import exits, lives, nursery, terminal, trial
from dtq_conformance.bench import Bench
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.history import History, Timing
from dtq_conformance.lab import Lab, interruptible
from dtq_conformance.player import CONCURRENCY, WORKERS, Player
from dtq_conformance.run import add_trial_arguments, input_faults, number_from_1
from dtq_conformance.state_machine import TaskLife
from dtq_conformance.steps import Life, recovery_more_ms
from dtq_conformance.target import CLAIMS, TargetKind, load_target, preloaded_for
from dtq_conformance.trial import Begun, Options, Run, Trial, begin, carry_out

NAME = "fuzz"
EXAMPLES, STEPS = 30, 8
TIMES_SHORTER = 2.5
"""All intervals of a trial are divided by this, the target's recovery time with them."""
EVERY_LIFE = ("STATE-01", "TASK-01", "DLV-01")
"""What every life is judged by. A violation of any other clause is reported as well."""
WHERE_IT_CAME_ABOUT = (
    "STATE-02", "STATE-03", "DLV-03", "DLV-05", "DLV-07", "DLV-08", "DLV-09", "DLV-12", "DLV-13",
    "RETRY-01", "RETRY-02", "RETRY-03", "RETRY-04", "STOP-01", "STOP-02", "STOP-03", "CANCEL-01",
    "CANCEL-05", "CANCEL-06", "CANCEL-08", "CANCEL-09", "PAUSE-01", "PAUSE-02", "PAUSE-05",
    "TTL-01", "TTL-02", "TTL-03", "IDEM-03", "IDEM-04", "IDEM-05", "IDEM-10", "IDEM-15",
    "DLQ-01", "DLQ-03", "DLQ-04", "DLQ-06", "DLQ-08", "KEY-06", "KEY-07")
"""What a life is judged by that brought about what the clause is about: a life in which nothing was
executed, say, proves nothing of executions, and is not unknown because of it."""
TRIES = 2
"""So often is a life played of which nothing can be told: a stall of the machine passes."""


@dataclass(frozen=True)
class Bed:
    """A lab with workers in it, ready for one life."""

    begun: Begun
    bench: Bench
    cleanup: contextlib.ExitStack


@dataclass
class Found:
    """What came out: how many lives were drawn and played, which are unknown, the bad ones."""

    drawn: int = 0
    played: dict[Life, Run] = field(default_factory=dict)
    convicted: list[Life] = field(default_factory=list)
    broken: BaseException | None = None

    @property
    def unknown(self) -> list[Life]:
        return [life for life, run in self.played.items() if run.verdict.status == "unknown"]

    @property
    def smallest(self) -> Life | None:
        """The bad life of the fewest steps, the last such one."""
        return min(reversed(self.convicted), key=len, default=None)

    def is_settled(self, life: Life) -> bool:
        """Whether there is no need to play it: it was, or a bad one with fewer steps is known."""
        return life in self.played or (
            self.smallest is not None and len(life) > len(self.smallest))


class Convicted(Exception):
    """A life whose history violates the contract: what Hypothesis shrinks."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dtq-conformance fuzz`."""
    add_trial_arguments(parser)
    parser.add_argument("--examples", type=number_from_1, default=EXAMPLES, metavar="N",
                        help="lives to draw (default %(default)s)")
    parser.add_argument("--steps", type=number_from_1, default=STEPS, metavar="N",
                        help="steps of a life, at most (default %(default)s)")
    parser.add_argument("--claims", type=claims, default=frozenset(CLAIMS), metavar="A,B",
                        help="draw only what these claims of the target bring into lives, beside "
                        "submissions, kills and stops (default: all its claims)")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def claims(text: str) -> frozenset[str]:
    """Claims from an argument. Raises what argparse tells the user."""
    named = frozenset(filter(None, text.split(",")))
    if unknown := sorted(named - set(CLAIMS)):
        raise argparse.ArgumentTypeError(
            f"{', '.join(unknown)}: no such claim; known are {', '.join(CLAIMS)}")
    return named


def execute(arguments: argparse.Namespace) -> int:
    """Draw and play lives, and print the shrunk one if one was bad."""
    options = Options(
        out=begin(NAME, arguments.out).folder, broker=arguments.broker, seed=arguments.seed,
        with_faults=True, repeat=f"dtq-conformance fuzz --target {arguments.target} --broker "
        f"{arguments.broker} --seed {arguments.seed} --examples {arguments.examples} "
        f"--steps {arguments.steps} --claims {','.join(sorted(arguments.claims))}")
    with interruptible(), input_faults():
        found = fuzz(load_target(arguments.target), options, examples=arguments.examples,
                     steps=arguments.steps, claims=arguments.claims)
    (_print_json if arguments.json else _print)(found, options)
    if found.convicted:
        return exits.VIOLATED
    return exits.UNKNOWN if found.unknown or not found.played else exits.CONFORMS


def fuzz(kind: TargetKind, options: Options, *, examples: int, steps: int,
         claims: frozenset[str]) -> Found:
    """Draw `examples` lives of up to `steps` steps, play each new one, shrink the first bad one.
    In them is what belongs to one of `claims`, if the target makes it.

    Raises whatever failed in the harness; that is never taken for a bad life.
    """
    settings = hypothesis.settings(
        max_examples=examples, stateful_step_count=steps, database=None, deadline=None,
        report_multiple_bugs=False, print_blob=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet)
    found = Found()
    with nursery.forking(preloaded_for(kind)), \
            Lab(options.out / "logs", broker=options.broker) as lab, \
            _beds(kind, replace(options, broker=lab.broker.url), lab.broker.description) as beds:

        def play(life: Life) -> None:
            _play(life, kind, options, beds, found)

        class Machine(TaskLife):
            def __init__(self) -> None:
                super().__init__(play, kind.claims & claims)

        with contextlib.suppress(Convicted):
            run_state_machine_as_test(hypothesis.seed(options.seed)(Machine), settings=settings)
    if found.broken is not None:
        raise found.broken
    return found


def _play(life: Life, kind: TargetKind, options: Options, beds: Iterator[Bed],
          found: Found) -> None:
    """Play a life, if there is need to. Raises `Convicted` if it is bad."""
    found.drawn += 1
    if not found.is_settled(life) and found.broken is None:
        try:
            for _ in range(TRIES):
                found.played[life] = _run(life, kind, options, next(beds))
                if found.played[life].verdict.status != "unknown":
                    break
        except Exception as error:  # the harness's own failure, which is not to be shrunk
            found.broken = error
    run = found.played.get(life)
    if run is not None and run.verdict.status == "violated":
        found.convicted.append(life)
        _convict(run)


def _convict(run: Run) -> NoReturn:
    raise Convicted(run.verdict.sentence)


def _run(life: Life, kind: TargetKind, options: Options, bed: Bed) -> Run:
    """Play one life on a bed that is ready, save its history, judge it."""
    each = Trial("conformance", NAME, "; ".join(str(step) for step in life), EVERY_LIFE,
                 lambda bench: Player(bench).play(life), snapshots=True)
    timing = bed.bench.timing
    bed.bench.timing = msgspec.structs.replace(
        timing, recovery_ms=timing.recovery_ms + recovery_more_ms(life))
    with bed.cleanup:
        history = carry_out(each, kind, options, bed.begun, bed.bench)
    return trial.save(each, _set_out(history), bed.begun.folder)


def _set_out(history: History) -> History:
    """The history with the clauses that it is to be judged by, now that it is known what came
    about. A checker that fails has its say when it is judged."""
    found = set(EVERY_LIFE)
    for check in CHECKERS.values():
        with contextlib.suppress(Exception):
            found |= {verdict.clause for verdict in check(lives.apart(history))
                      if verdict.judged or verdict.findings}
    clauses = [clause for clause in (*EVERY_LIFE, *WHERE_IT_CAME_ABOUT) if clause in found]
    return History(msgspec.structs.replace(history.header, clauses=clauses), history.records)


@contextlib.contextmanager
def _beds(kind: TargetKind, options: Options, description: str) -> Iterator[Iterator[Bed]]:
    """One bed after the other; the next is made while one is in use."""
    ready: list[Future[Bed]] = []

    def beds(pool: ThreadPoolExecutor) -> Iterator[Bed]:
        while True:
            ready.append(pool.submit(_bed, kind, options, description))
            yield ready.pop(0).result()

    with ThreadPoolExecutor(1) as pool:
        ready.append(pool.submit(_bed, kind, options, description))
        try:
            yield beds(pool)
        finally:
            for bed in ready:
                if not bed.cancel():
                    bed.result().cleanup.close()


def _bed(kind: TargetKind, options: Options, description: str) -> Bed:
    begun = begin(NAME, options.out)
    with contextlib.ExitStack() as cleanup:
        lab = cleanup.enter_context(Lab(begun.folder / "logs", broker=options.broker))
        lab.broker.description = description
        bench = Bench(lab, kind, _timing(kind), options.seed)
        cleanup.callback(bench.close)
        for worker in bench.start_workers(WORKERS, CONCURRENCY):
            bench.await_ready(worker)
        return Bed(begun, bench, cleanup.pop_all())


def _timing(kind: TargetKind) -> Timing:
    def shorter(interval_ms: int) -> int:
        return round(interval_ms / TIMES_SHORTER)

    return Timing(
        lease_ms=shorter(trial.LEASE_MS), heartbeat_ms=shorter(trial.HEARTBEAT_MS),
        reap_ms=shorter(trial.REAP_MS), schedule_ms=shorter(trial.SCHEDULE_MS),
        drain_ms=trial.DRAIN_MS, recovery_ms=shorter(kind.recovery_ms),
        base_delay_ms=shorter(trial.BASE_DELAY_MS), max_delay_ms=shorter(trial.MAX_DELAY_MS),
        jitter=trial.JITTER)


def _print(found: Found, options: Options) -> None:
    out = terminal.console()
    life = found.smallest
    told = (f"{found.drawn} lives drawn, {len(found.played)} different ones played, "
            f"{len(found.unknown)} unknown. Runs: {options.out}")
    if life is None:
        for each in found.unknown:
            out.print(Text(found.played[each].verdict.sentence, style=terminal.STYLE["unknown"]))
        out.print(told, highlight=False, soft_wrap=True)
        return
    run = found.played[life]
    bad = terminal.STYLE["violated"]
    out.print(Text(f"A life of {len(life)} steps violates the contract:", style=bad))
    for number, step in enumerate(life, start=1):
        out.print(Text(f"  {number}. {step}"), soft_wrap=True)
    out.print(Text(run.verdict.sentence, style=bad), soft_wrap=True)
    out.print(Text(f"{told}\nhistory: {run.folder / 'history.jsonl'}\n"
                   f"repeat with: {options.repeat}"), soft_wrap=True)


def _print_json(found: Found, options: Options) -> None:
    life = found.smallest
    run = None if life is None else found.played[life]
    print(msgspec.json.encode({
        "out": str(options.out), "drawn": found.drawn, "played": len(found.played),
        "unknown": [str(found.played[each].folder) for each in found.unknown],
        "steps": [str(step) for step in life or ()],
        "history": run and str(run.folder / "history.jsonl"),
        "verdict": run and run.verdict, "repeat": options.repeat}).decode())
