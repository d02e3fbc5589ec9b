"""How a process of the engine writes its log: to stderr, one record a line, as text or as JSON.

What stands in a record may come from anywhere, so control characters are written as escapes and
no secret of the settings is shown. Payloads are never logged; that is up to those who log.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from urllib.parse import unquote, urlsplit

from dtq_reference.settings import Settings

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What could end a line, move the cursor or colour a terminal, or cannot be encoded."""

HIDDEN = "***"


def configure(settings: Settings) -> None:
    """Let all loggers of this process write to stderr as the settings ask. Only the engine's own
    say more than INFO: what libraries say then may hold what was sent."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter(settings))
    level = logging.getLevelNamesMapping()[settings.log_level]
    logging.basicConfig(level=max(level, logging.INFO), handlers=[handler], force=True)
    logging.getLogger("dtq").setLevel(level)


def clean(text: str) -> str:
    """The text with control characters as escapes: it stays on its line."""
    return UNSAFE.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


class Formatter(logging.Formatter):
    """Writes a record as text, or as a JSON object with ts, level, logger, message and, after an
    exception, its traceback. In text the lines of a traceback are indented, so that no exception's
    words can look like a record."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._as_json = settings.log_json
        password = urlsplit(settings.redis_url).password or ""
        secrets = {settings.api_key, settings.signing_key, password, unquote(password)} - {""}
        longest_first = sorted(map(re.escape, secrets), key=len, reverse=True)
        self._secret = re.compile("|".join(longest_first) or "(?!)")  # which matches nothing

    def format(self, record: logging.LogRecord) -> str:
        ts = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = self._secret.sub(HIDDEN, record.getMessage())
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        trace = self._secret.sub(HIDDEN, trace)
        if self._as_json:
            told = {"ts": ts, "level": record.levelname, "logger": record.name, "message": message}
            return json.dumps(told | {"traceback": trace} if trace else told)
        line = f"{ts} {record.levelname} {clean(record.name)}: {clean(message)}"
        return "\n    ".join([line, *map(clean, trace.splitlines())])
