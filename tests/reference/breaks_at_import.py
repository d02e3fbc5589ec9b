"""A module with handlers that cannot be imported."""

HANDLERS = 1 / 0
