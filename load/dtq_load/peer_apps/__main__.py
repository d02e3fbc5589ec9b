"""A Python peer's client: `python -m dtq_load.peer_apps huey_app submit 100 --bulk`.

The app is imported under its own name, since most task queues name a task after its module.
"""

from __future__ import annotations

import importlib
import sys

from dtq_load.peer_apps import client


def main(argv: list[str]) -> None:
    """Do what the arguments after the app's name ask for."""
    app, *words = argv
    client.run(importlib.import_module(f"dtq_load.peer_apps.{app}").make_client(), words)


if __name__ == "__main__":
    main(sys.argv[1:])
