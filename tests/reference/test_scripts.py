"""Every script: sent twice with the same arguments, sent while the server is out of memory, and
sent by a client that dies."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import hiredis
import pytest
from dtq_conformance.waiting import wait_for
from dtq_reference import scripts
from dtq_reference.calls import Call
from redis.exceptions import ResponseError

from tests.reference.engine import Engine
from tests.reference.scenes import QUIET, SCENES, Scene, settle_every_way

ALL_SCENES = [pytest.param(name, scene, id=f"{name}-{scene.__name__}")
              for name, scenes in SCENES.items() for scene in scenes]

SAYS_WHAT_IT_DID = ("submit", "promote", "sweep", "cancel", "requeue", "discard", "pause")
"""Scripts that tell what this call has done; sent again they find it done."""

SAYS_WHAT_IT_ENDED = ("take", "promote", "release")
"""Scripts that besides tell, once, which tasks ended without another attempt."""

REFUSED_WITHOUT_MEMORY = ("submit", "requeue")
"""Scripts that bring new work; all others move or end what was accepted."""


def test_every_script_has_a_scene_here() -> None:
    assert set(SCENES) == set(scripts.NAMES) == set(scripts.SCRIPTS)


@pytest.mark.parametrize(("name", "scene"), ALL_SCENES)
def test_a_script_sent_twice_changes_and_publishes_nothing_more_and_gives_the_same_answer(
        engine: Engine, name: str, scene: Scene) -> None:
    call = scene(engine)
    assert call.script == name
    before = engine.dump()
    first_answer = engine.run(call)
    after_first = engine.dump()
    assert (before == after_first) == (scene in QUIET)
    ear = engine.listen()
    second_answer = engine.run(call)
    assert engine.dump() == after_first
    assert ear.types() == []
    if name in SAYS_WHAT_IT_ENDED:
        first_answer.pop()
        assert second_answer.pop() == []
    if name not in SAYS_WHAT_IT_DID:
        assert second_answer == first_answer
    elif name == "submit":
        assert second_answer == [[b"again" if verdict == b"accepted" else verdict, *others]
                                 for verdict, *others in first_answer]
    elif name == "promote":
        assert (second_answer[0], *second_answer[2:]) == (first_answer[0], *first_answer[2:])


@pytest.fixture
def out_of_memory(engine: Engine) -> Iterator[Callable[[], None]]:
    yield lambda: engine.redis.config_set("maxmemory", 1)
    engine.redis.config_set("maxmemory", 0)


# WORK-21
@pytest.mark.parametrize(("name", "scene"), ALL_SCENES)
def test_without_memory_new_work_is_refused_and_everything_else_is_done_as_ever(
        engine: Engine, out_of_memory: Callable[[], None], name: str, scene: Scene) -> None:
    call = scene(engine)
    before = engine.dump()
    out_of_memory()
    if name in REFUSED_WITHOUT_MEMORY and scene not in QUIET:
        with pytest.raises(ResponseError, match="maxmemory"):
            engine.run(call)
        engine.redis.config_set("maxmemory", 0)
        assert engine.dump() == before
        return
    engine.run(call)
    engine.redis.config_set("maxmemory", 0)
    after = engine.dump()
    assert (after == before) == (scene in QUIET)
    engine.run(call)
    assert engine.dump() == after


def hang_up_after_sending(engine: Engine, call: Call, *, lacking_bytes: int) -> None:
    """Send a call, all of it or too little, as a client that dies then and reads no answer."""
    sent = hiredis.pack_command(("EVAL", scripts.SCRIPTS[call.script].source, len(call.keys),
                                 *call.keys, call.argument))
    where = urlsplit(engine.settings.redis_url)
    def clients() -> set[str]:
        return {each["addr"] for each in engine.redis.client_list()}

    with socket.create_connection((where.hostname or "", where.port or 6379)) as client:
        name = "{}:{}".format(*client.getsockname())
        wait_for(lambda: name in clients(), reason="the client to be accepted", limit_s=5)
        client.sendall(sent[:len(sent) - lacking_bytes])
    wait_for(lambda: name not in clients(), reason="the client to be known as gone", limit_s=5)


# DLV-14, DLV-15, DLV-16, DLV-17, DLV-18, DLV-19, DLV-20
@pytest.mark.parametrize(("name", "scene"), ALL_SCENES)
def test_a_client_that_dies_after_sending_a_call_has_done_all_of_it(
        engine: Engine, name: str, scene: Scene) -> None:
    call = scene(engine)
    before = engine.dump()
    hang_up_after_sending(engine, call, lacking_bytes=0)
    after = engine.dump()
    assert (after == before) == (scene in QUIET)
    engine.run(call)
    assert engine.dump() == after


def test_a_client_that_dies_before_the_last_byte_of_a_call_has_done_nothing(
        engine: Engine) -> None:
    call = settle_every_way(engine)
    before = engine.dump()
    hang_up_after_sending(engine, call, lacking_bytes=1)
    assert engine.dump() == before
