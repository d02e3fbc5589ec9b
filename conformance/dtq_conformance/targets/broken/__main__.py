"""`python -m dtq_conformance.targets.broken NAME …`: the command `dtq` with a defect in it."""

from __future__ import annotations

import sys

from dtq_reference import cli

from dtq_conformance.targets.broken import DEFECTS

DEFECTS[sys.argv[1]].put_in()
sys.exit(cli.main(sys.argv[2:]))
