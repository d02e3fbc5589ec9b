"""What can go wrong for a caller: a code for machines, a sentence for people."""

from __future__ import annotations


class DtqError(Exception):
    """A request that was refused and changed nothing. `code` is one of the contract's codes."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class SettingsError(Exception):
    """A DTQ_ variable has a value that cannot be used; the message names the variable."""


class BrokerUnreachable(Exception):
    """Redis gave no answer in time. What was asked may or may not have happened."""


class RetryableError(Exception):
    """Raised by a handler: this attempt failed, another one may succeed."""


class PermanentError(Exception):
    """Raised by a handler: no further attempt can succeed."""
