"""The configuration: environment variables DTQ_*, checked once at the start.

Times are seconds and accept fractions, so that tests can run with short leases.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated

import msgspec

from dtq_reference.cluster import address_of
from dtq_reference.errors import SettingsError

Seconds = Annotated[float, msgspec.Meta(ge=0.001, le=31_536_000)]
Delay = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2_000_000_000)]
Few = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Url = Annotated[str, msgspec.Meta(pattern=r"^(unix|rediss?(\+cluster)?)://")]
Path = Annotated[str, msgspec.Meta(pattern=r"^/[A-Za-z0-9/_.-]*\Z", max_length=200)]

SECRETS = frozenset({"redis_url", "api_key", "signing_key"})
"""Fields whose values are never shown; a URL may hold a password."""

NO_TEXT = re.compile("[\ud800-\udfff]")
"""What Python makes of bytes in the environment that are not UTF-8."""

HEARTBEAT_JITTER = 0.1
"""A heartbeat comes after its interval, give or take this share of it."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One field for each variable: `visibility_timeout_s` is DTQ_VISIBILITY_TIMEOUT_S."""

    redis_url: Url = "redis://localhost:6379/0"
    key_prefix: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = "dtq:"
    api_host: Annotated[str, msgspec.Meta(min_length=1, max_length=255)] = "127.0.0.1"
    api_port: Port = 8000
    ws_path: Path = "/ws/events"
    worker_concurrency: Few = 4
    worker_id: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{0,64}\Z")] = ""
    visibility_timeout_s: Seconds = 30.0
    heartbeat_interval_s: Seconds = 5.0
    reap_interval_s: Seconds = 5.0
    scheduler_interval_s: Seconds = 0.5
    max_queue_depth: Count = 10_000
    max_payload_bytes: Count = 262_144
    task_timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=3_600_000)] = 30_000
    max_attempts: Few = 10
    retry_base_delay: Delay = 1.0
    retry_max_delay: Delay = 60.0
    retry_jitter: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2
    task_retention_s: Count = 604_800
    result_retention_s: Count = 3_600
    result_max_bytes: Annotated[int, msgspec.Meta(ge=64, le=2_000_000_000)] = 8_192
    idem_ttl_s: Count = 86_400
    drain_timeout_s: Delay = 30.0
    dlq_enabled: bool = True
    dlq_maxlen: Count = 10_000
    log_level: Annotated[str, msgspec.Meta(pattern=r"^(DEBUG|INFO|WARNING|ERROR)\Z")] = "INFO"
    api_key: str = ""
    log_json: bool = False
    worker_metrics_port: Port = 0
    signing_key: str = ""
    process_pool: bool = False
    witness: str = ""

    @property
    def lease_ms(self) -> int:
        """The visibility timeout in milliseconds: how long a lease lasts without a renewal."""
        return round(self.visibility_timeout_s * 1000)


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings. Raises `SettingsError` that names the variable and what it accepts."""
    given = {field: environment[name] for field in Settings.__struct_fields__
             if (name := f"DTQ_{field.upper()}") in environment}
    for field, value in given.items():  # what goes to Redis is UTF-8; a path may hold any bytes
        if field != "witness" and NO_TEXT.search(value):
            raise SettingsError(f"DTQ_{field.upper()} is not UTF-8 text.")
    try:
        settings = msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$.")
        field = place.rstrip("`")
        shown = "malformed" if field in SECRETS else repr(given[field])
        raise SettingsError(f"DTQ_{field.upper()} is {shown}: {reason}.") from error
    _check_url(settings.redis_url, settings.key_prefix)
    _check_heartbeat(settings)
    return settings


def _check_url(url: str, prefix: str) -> None:
    try:
        address = address_of(url, prefix)
    except ValueError as error:
        # the reason may quote a part of the password
        raise SettingsError("DTQ_REDIS_URL is malformed. Expected redis://USER:PASSWORD@HOST:PORT/"
                            "DB or redis+cluster://HOST:PORT,HOST:PORT, with %XX for each of "
                            "/ ? # @ in a password.") from error
    if address.nodes and address.slot is None:
        raise SettingsError(f"DTQ_KEY_PREFIX is {prefix!r}: on a cluster it needs a hash tag, such "
                            "as {orders}:, which puts all keys into one slot.")


def _check_heartbeat(settings: Settings) -> None:
    """A lease must survive two heartbeats that come late."""
    longest = settings.heartbeat_interval_s * (1 + HEARTBEAT_JITTER)
    if longest > settings.visibility_timeout_s / 3:
        raise SettingsError(
            f"DTQ_HEARTBEAT_INTERVAL_S is {settings.heartbeat_interval_s:g}: with its jitter a "
            f"heartbeat takes up to {longest:g} s, more than a third of "
            f"DTQ_VISIBILITY_TIMEOUT_S ({settings.visibility_timeout_s:g} s).")


def with_concurrency(settings: Settings, concurrency: int) -> Settings:
    """The same settings with another concurrency. Raises `SettingsError`."""
    if not 1 <= concurrency <= 1000:
        raise SettingsError(f"--concurrency is {concurrency}; it must be 1 to 1000.")
    return msgspec.structs.replace(settings, worker_concurrency=concurrency)
