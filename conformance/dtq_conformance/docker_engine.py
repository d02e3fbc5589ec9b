"""A container engine of our own, to see that `--broker docker:IMAGE` does what it says.

`python -m dtq_conformance.docker_engine [--out FOLDER]` starts Debian's `dockerd` on a folder and a
socket of its own and builds an image FROM scratch out of the embedded server's binary and the
libraries that it needs; nothing is pulled. On that image it runs a few cases and a scenario, kills
and restarts a server, kills a harness and looks what it left behind; then it stops it all. Where no
engine can be started it says so, counted; that is an error where nothing may be missing.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dtq_conformance import container, exits
from dtq_conformance.broker import embedded_binary, last_line
from dtq_conformance.lab import Lab
from dtq_conformance.run import default_out
from dtq_conformance.waiting import WaitedTooLong, wait_for

IMAGE = "dtq-embedded-broker"
START_LIMIT_S = 60.0
PROGRAMS = Path("/usr/sbin"), Path("/usr/local/sbin")
"""Where Debian puts `dockerd`; not on every user's PATH."""

RUNS = (
    ("dtq_conformance", "run", "everything_runs_once", "a_killed_holder_is_replaced"),
    ("dtq_chaos", "run", "worker_killed_mid_handler"),
)
"""What is run on the image, by module and arguments."""


def main(argv: Sequence[str]) -> int:
    """Start the engine, build, run, stop; the exit code is the worst of the runs'."""
    parser = exits.Parser(prog="dtq_conformance.docker_engine", description=__doc__)
    parser.add_argument("--out", type=Path, default=default_out(), metavar="FOLDER")
    arguments = parser.parse_args(argv)
    try:
        with _engine() as socket:
            os.environ["DOCKER_HOST"] = f"unix://{socket}"
            _build()
            codes = [_run(words, arguments.out) for words in RUNS]
            return max([*codes, *map(_check, (keeps_its_data, leaves_nothing))])
    except container.EngineMissing as missing:
        print(f"{len(RUNS)} runs and 2 checks not run: {missing}", file=sys.stderr)
        return exits.INPUT if exits.in_ci() else exits.CONFORMS


@contextlib.contextmanager
def _engine() -> Iterator[Path]:
    """Debian's engine on a folder of its own; its socket. Raises `EngineMissing`.

    Without a bridge and without firewall rules: then it needs few rights and changes nothing on
    this machine. The containers use the host's network.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, PROGRAMS)])
    dockerd = shutil.which("dockerd", path=path)
    if dockerd is None:
        raise container.EngineMissing("There is no dockerd here: apt-get install docker.io.")
    with tempfile.TemporaryDirectory(prefix="dtq-engine-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        log, socket = folder / "dockerd.log", folder / "socket"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [dockerd, "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"),
                 "--pidfile", str(folder / "pid"), "--host", f"unix://{socket}", "--bridge=none",
                 "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"],
                stdout=output, stderr=output, start_new_session=True)
        try:
            _await_engine(process, socket, log)
            yield socket
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(START_LIMIT_S)
            for namespace in (folder / "exec" / "netns").glob("*"):  # it leaves them mounted
                subprocess.run(["umount", str(namespace)], check=False)


def _await_engine(process: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    os.environ["DOCKER_HOST"] = f"unix://{socket}"

    def answers() -> bool:
        if process.poll() is not None:
            raise container.EngineMissing(f"dockerd ended with code {process.returncode}; its last "
                                          f"line is: {last_line(log)}")
        if not socket.exists():
            return False
        with contextlib.suppress(container.EngineMissing):
            container.engine().close()
            return True
        return False

    try:
        wait_for(answers, reason="dockerd to answer", limit_s=START_LIMIT_S)
    except WaitedTooLong as error:
        raise container.EngineMissing(f"{error}; the last line of its log is: "
                                      f"{last_line(log)}") from error


def _build() -> None:
    """The image: the server, the libraries that ldd names, and an empty folder to write into."""
    binary = embedded_binary()
    told = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=True).stdout
    libraries = [Path(found) for found in re.findall(r"(?:=> |^\s+)(/\S+)", told, re.MULTILINE)]
    with tempfile.TemporaryDirectory(prefix="dtq-image-") as name:
        root = Path(name)
        for library in libraries:
            copy = root / "root" / library.relative_to("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, copy)
        shutil.copy(binary, root / "root" / "valkey-server")
        (root / "Dockerfile").write_text('FROM scratch\nCOPY root /\nWORKDIR /data\n'
                                         'ENTRYPOINT ["/valkey-server"]\n')
        client = container.engine()
        with contextlib.closing(client):
            client.images.build(path=str(root), tag=IMAGE, rm=True)
    print(f"built {IMAGE} FROM scratch: {binary.name} and {len(libraries)} libraries")


def _run(words: Sequence[str], out: Path) -> int:
    module, *rest = words
    return subprocess.run([sys.executable, "-P", "-m", module, *rest, "--jobs", "2", "--broker",
                           f"docker:{IMAGE}", "--out", str(out)], check=False).returncode


def keeps_its_data() -> str:
    """A killed server comes back on its port with what its append-only file promises."""
    with (tempfile.TemporaryDirectory(prefix="dtq-logs-") as logs,
          Lab(Path(logs), broker=f"docker:{IMAGE}", persistence="always") as lab):
        url, before = lab.broker.url, lab.broker.process
        with lab.broker.connect() as client:
            client.set("dtq:key", "value")
        lab.broker.kill()
        signalled = before.signal if before is not None else None
        lab.broker.restart()
        with lab.broker.connect() as client:
            kept = client.get("dtq:key")
        if (signalled, lab.broker.url, kept) == (signal.SIGKILL, url, b"value"):
            return ""
        return f"it ended of signal {signalled}, came back at {lab.broker.url} with {kept!r}"


def leaves_nothing() -> str:
    """A harness that is killed leaves no container behind."""
    with tempfile.TemporaryDirectory(prefix="dtq-logs-") as logs:
        harness = subprocess.Popen([sys.executable, "-P", "-c", HARNESS, logs, f"docker:{IMAGE}"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert harness.stdout is not None
        harness.stdout.readline()
        ours = _containers()
        harness.kill()
        harness.wait()
        try:
            wait_for(lambda: not _containers(), reason="the container to go",
                     limit_s=START_LIMIT_S)
        except WaitedTooLong:
            return f"of {ours} there remain {_containers()}"
        return "" if len(ours) == 1 else f"there were {ours}, not one"


HARNESS = """
import sys
from pathlib import Path
from dtq_conformance.lab import Lab
with Lab(Path(sys.argv[1]), broker=sys.argv[2]):
    print("up", flush=True)
    sys.stdin.read()
"""
"""A harness with one broker that waits to be killed."""


def _containers() -> list[str]:
    client = container.engine()
    with contextlib.closing(client):
        return [each.name for each in client.containers.list(all=True)]


def _check(check: Callable[[], str]) -> int:
    """Print whether a check found a fault; the exit code says so too."""
    fault = check()
    print(f"{check.__doc__} {'Not so: ' + fault if fault else 'Yes.'}", flush=True)
    return exits.HARNESS if fault else exits.CONFORMS


if __name__ == "__main__":
    sys.exit(exits.run_command(main))
