"""Toxiproxy: where its server comes from, how it is started, and all that is wrong with it.

Comes in: a lab, and addresses to put links in front of. Goes out: `Link`s, whose url a client or a
worker is given instead of the broker's, and which a scenario slows, starves, cuts and heals.

The server is found or built by `toxiproxy_server`, whose `find` and `install` can be had from here
too (`python -m dtq_chaos.toxiproxy install`). It is driven by toxiproxy-python, and this is the
only module that knows that library. What is answered for here, so that nobody else needs to know:

- the library keeps the server's address in a class: one server per process, said so if violated;
- it waits for ever, follows HTTP_PROXY, and calls most errors by wrong names: its HTTP calls go
  through `_Requests`, which has a time limit and raises `ToxiproxyError` with a sentence;
- a proxy locks up for good when a toxic comes or goes while a client does not read: a call that
  hangs is answered by deleting the proxy and making it again on the same port (`Link.rebuilds`);
- the server dies of some attributes and ignores unknown ones: they are checked before the call;
- the server draws lots for toxicity and its seed has no effect: toxicity is always 1.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import psutil
from dtq_conformance.waiting import WaitedTooLong, wait_for
from toxiproxy import Toxiproxy as Client
from toxiproxy import api
from toxiproxy.proxy import Proxy

from dtq_chaos.toxiproxy_server import Found, ToxiproxyMissing, find, install, stamped_version

if TYPE_CHECKING:
    from dtq_conformance.lab import Lab, LabProcess

__all__ = ["LEAST", "Found", "Link", "Stream", "ToxicType", "Toxiproxy", "ToxiproxyError",
           "ToxiproxyMissing", "find", "install"]

START_LIMIT_S = 10

ToxicType = Literal["latency", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer",
                    "limit_data"]
Stream = Literal["upstream", "downstream"]

LEAST: dict[str, dict[str, int]] = {
    "latency": {"latency": 0, "jitter": 0},
    "bandwidth": {"rate": 1},
    "slow_close": {"delay": 0},
    "timeout": {"timeout": 0},
    "reset_peer": {"timeout": 0},
    "slicer": {"average_size": 1, "size_variation": 0, "delay": 0},
    "limit_data": {"bytes": 0},
}
"""The least value of each attribute of each toxic. Times are ms (slicer's delay: µs), rate is kB/s.
The first attribute of a toxic must be given; the others are 0 if they are not."""


class ToxiproxyError(Exception):
    """Toxiproxy was asked for something that it cannot do, refused it, or does not answer."""


class _Hung(ToxiproxyError):
    """A call was not answered in time; the proxy that it was about is to be made again."""


# ---------------------------------------------------------------- driving the server


class _Requests:
    """Stands where toxiproxy-python expects the `requests` module, with what it forgets."""

    library = api.requests

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s

    def get(self, **call: Any) -> Any:
        return self._send("GET", **call)

    def post(self, **call: Any) -> Any:
        return self._send("POST", **call)

    def delete(self, **call: Any) -> Any:
        return self._send("DELETE", **call)

    def _send(self, method: str, *, url: str, **call: Any) -> Any:
        what = f"{method} {url}"
        with self.library.Session() as session:
            session.trust_env = False  # HTTP_PROXY is not for a server on this machine
            try:
                response = session.request(method, url, timeout=self._limit_s, **call)
            except self.library.Timeout as error:
                raise _Hung(f"Toxiproxy did not answer {what} within {self._limit_s:g} s.") \
                    from error
            except self.library.RequestException as error:
                raise ToxiproxyError(f"Toxiproxy does not answer {what}: {error}. It has ended, "
                                     f"or DTQ_TOXIPROXY_URL is not its address.") from error
        if response.status_code == 503:
            raise _Hung(f"Toxiproxy gave up on {what} by its own time limit.")
        if response.status_code >= 400:
            raise ToxiproxyError(f"Toxiproxy refused {what} with {response.status_code}: "
                                 f"{response.text.strip()}")
        return response


_driven: list[Toxiproxy] = []


class Toxiproxy:
    """One Toxiproxy server: one of the lab's processes, or the one at DTQ_TOXIPROXY_URL.

    `description` says which server it is and how it was got. Raises `ToxiproxyMissing`, and
    `ToxiproxyError` if this process already drives another server.
    """

    description: str
    address: str

    def __init__(self, lab: Lab, *, api_limit_s: float = 10) -> None:
        """A call that is not answered within `api_limit_s` (below the server's own 25) hangs."""
        found = find()
        self._process: LabProcess | None = None
        self._links: list[Link] = []
        self._run = uuid.uuid4().hex[:8]
        self._local = found.kind != "url"
        _refuse_second(found)
        host, port = self._start(lab, found) if self._local else _host_and_port(found.where)
        self.address = f"{host}:{port}"
        api.requests = _Requests(api_limit_s)
        Client().update_api_consumer(host, port)
        _driven.append(self)
        try:
            self.description = f"toxiproxy {_version(found)} ({found})"
        except ToxiproxyError:
            self.close()
            raise

    def _start(self, lab: Lab, found: Found) -> tuple[str, int]:
        """Start the server on a port of its own choice, and read from the system which."""
        earlier = sum(process.role == "toxiproxy" for process in lab.processes())
        self._process = process = lab.start(
            f"toxiproxy-{earlier + 1}", [found.where, "-host", "127.0.0.1", "-port", "0"],
            role="toxiproxy")
        try:
            port = wait_for(lambda: _listening_port(process),
                            reason=f"{found.where} to listen", limit_s=START_LIMIT_S)
        except (WaitedTooLong, psutil.Error) as error:
            raise ToxiproxyError(f"The Toxiproxy server {found.where} did not start: {error}. "
                                 f"Its log is {process.log}.") from error
        return "127.0.0.1", port

    @property
    def alive(self) -> bool:
        """False once this object is closed or its server has ended."""
        return self in _driven and (self._process is None or self._process.alive)

    def link(self, name: str, upstream: str) -> Link:
        """Make a link to `upstream` ("host:port") on a free port of 127.0.0.1."""
        self.require_alive()
        link = Link(self, f"{name}-{self._run}", upstream)
        self._links.append(link)
        return link

    def require_alive(self) -> None:
        """Raise `ToxiproxyError` if this server can no longer be asked for anything."""
        if not self.alive:
            log = f" Its log is {self._process.log}." if self._process else ""
            raise ToxiproxyError(f"The Toxiproxy server at {self.address} was closed or has "
                                 f"ended.{log}")

    def close(self) -> None:
        """Remove the links and end the server, unless it was running before. May be repeated."""
        if self not in _driven:
            return
        try:
            for link in () if self._local else self._links:
                link.remove()
        finally:
            _driven.remove(self)
            if self._process is not None:
                self._process.kill()

    def __enter__(self) -> Toxiproxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _version(found: Found) -> str:
    if found.kind != "url" and (stamped := stamped_version(Path(found.where))):
        return stamped
    said = str(api.APIConsumer.get("/version").json().get("version", "git"))
    return "of unknown version" if said == "git" else said.removeprefix("v")


def _refuse_second(found: Found) -> None:
    _driven[:] = [one for one in _driven if one.alive]
    for first in _driven:
        if found.kind != "url" or _host_and_port(found.where) != _host_and_port(first.address):
            raise ToxiproxyError(
                f"This process already drives the Toxiproxy server at {first.address}, and "
                f"toxiproxy-python knows one address per process. Close that one first, or run "
                f"each trial in a process of its own.")


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url if "//" in url else f"//{url}")
    try:
        host, port = parts.hostname or "", parts.port or 8474
    except ValueError:
        host, port = "", 0
    if parts.scheme not in ("", "http") or not re.fullmatch(r"localhost|127(\.\d+){3}", host):
        raise ToxiproxyError(f"DTQ_TOXIPROXY_URL is {url!r}; expected http://127.0.0.1:PORT. The "
                             f"links listen on the server's loopback, so it must run here.")
    return host, port


def _listening_port(process: LabProcess) -> int | None:
    if not process.alive:
        raise psutil.NoSuchProcess(process.pid, msg="it has ended")
    for connection in psutil.Process(process.pid).net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN:
            return int(connection.laddr.port)
    return None


# ---------------------------------------------------------------- links


@dataclass(frozen=True)
class _Toxic:
    type: str
    stream: str
    attributes: dict[str, int]

    @property
    def name(self) -> str:
        return f"{self.type}_{self.stream}"


@dataclass(frozen=True)
class _State:
    """What a link is meant to be, whatever the server has come to."""

    enabled: bool = True
    toxics: tuple[_Toxic, ...] = ()


class Link:
    """A way to the broker that can be spoiled. Made by `Toxiproxy.link`.

    `listen` is its "host:port". `rebuilds` counts how often the server locked up and the link was
    made again: that also drops the link's connections, which a scenario may have to record.
    """

    def __init__(self, server: Toxiproxy, name: str, upstream: str) -> None:
        self.name = name
        self.upstream = upstream
        self.listen = "127.0.0.1:0"
        self.rebuilds = 0
        self._server = server
        self._state = _State()
        self._proxy = self._create(enabled=True)
        self.listen = str(self._proxy.listen)

    def url(self, redis_url: str) -> str:
        """The same redis URL (user, password, database, options) through this link."""
        parts = urlsplit(redis_url)
        if parts.scheme != "redis":
            raise ToxiproxyError(f"A link carries redis://… only, not {parts.scheme}://….")
        user = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{user}@{self.listen}" if user else self.listen))

    def add(self, toxic: ToxicType, *, stream: Stream, **attributes: int) -> None:
        """Add a toxic to old and new connections: `stream` is upstream (to the broker) or
        downstream (from it). Units and bounds of the attributes are in `LEAST`."""
        new = _Toxic(toxic, stream, attributes)
        faults = _faults_in(new)
        if any(old.name == new.name for old in self._state.toxics):
            faults.append("the link has one already, clear it first")
        if faults:
            raise ToxiproxyError(f"Toxic {toxic} on link {self.name}: {'; '.join(faults)}.")
        self._change(replace(self._state, toxics=(*self._state.toxics, new)),
                     lambda: self._add(new))

    def clear(self) -> None:
        """Remove all toxics. `timeout` lost bytes: the connections that it lay on are closed."""
        def remove() -> None:
            for toxic in self._state.toxics:
                self._proxy.destroy_toxic(toxic.name)
        self._change(replace(self._state, toxics=()), remove)

    def cut(self) -> None:
        """Close all connections and refuse new ones, until `heal`."""
        self._change(replace(self._state, enabled=False), lambda: self._proxy.disable())

    def heal(self) -> None:
        """Let connections in again, on the same port."""
        self._change(replace(self._state, enabled=True), lambda: self._proxy.enable())

    def remove(self) -> None:
        """Take this link from the server, if it is there."""
        try:
            self._proxy.destroy()
        except ToxiproxyError as error:
            if "404" not in str(error):
                raise

    def _change(self, wanted: _State, action: Callable[[], object]) -> None:
        self._server.require_alive()
        try:
            action()
        except _Hung:
            self._rebuild(wanted)
        self._state = wanted

    def _rebuild(self, wanted: _State) -> None:
        """Delete the proxy and make it again; closed, until its toxics are on."""
        self.rebuilds += 1
        self.remove()
        self._proxy = self._create(enabled=False)
        for toxic in wanted.toxics:
            self._add(toxic)
        if wanted.enabled:
            self._proxy.enable()

    def _create(self, *, enabled: bool) -> Any:
        # Not the client's create(): it asks for all proxies first, and one that hangs blocks that.
        return Proxy(**api.APIConsumer.post("/proxies", json={
            "name": self.name, "listen": self.listen, "upstream": self.upstream,
            "enabled": enabled}).json())

    def _add(self, toxic: _Toxic) -> None:
        self._proxy.add_toxic(type=toxic.type, stream=toxic.stream, name=toxic.name, toxicity=1.0,
                              attributes=toxic.attributes)


def _faults_in(toxic: _Toxic) -> list[str]:
    """All that is wrong with a toxic, before the server hears of it."""
    least = LEAST.get(toxic.type)
    if least is None:
        return [f"there is no such toxic; known are {', '.join(LEAST)}"]
    faults = []
    if toxic.stream not in ("upstream", "downstream"):
        faults.append(f"stream is {toxic.stream!r}, not upstream or downstream")
    first = next(iter(least))
    if first not in toxic.attributes:
        faults.append(f"{first} is not given")
    for name, value in toxic.attributes.items():
        if name not in least:
            faults.append(f"it has no attribute {name}, only {', '.join(least)}")
        elif type(value) is not int or value < least[name]:
            faults.append(f"{name} is {value!r}, not a whole number from {least[name]}")
    if not faults and toxic.type == "slicer" and (
            toxic.attributes.get("size_variation", 0) > toxic.attributes["average_size"]):
        faults.append("size_variation is more than average_size, of which the server can die")
    return faults


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m dtq_chaos.toxiproxy install`: get a server, and say which one is used."""
    parser = argparse.ArgumentParser(prog="python -m dtq_chaos.toxiproxy")
    parser.add_argument("command", choices=["install"], help="find a server, or build one with Go")
    try:
        parser.parse_args(arguments)
    except SystemExit as usage:  # argparse exits with 2, which means unknown in this house
        return 4 if usage.code else 0
    try:
        print(f"Toxiproxy is used {install()}")
    except ToxiproxyMissing as missing:
        print(f"not run: what needs Toxiproxy, since {missing}")
        return 4 if os.environ.get("CI") == "true" else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
