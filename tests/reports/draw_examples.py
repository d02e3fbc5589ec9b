"""Draw the two pages that reports/README.md shows: `python -m tests.reports.draw_examples`.

Comes in: the runs on paper of `example_runs`. Goes out: a screenshot of each page, made by
Chromium, in reports/examples.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dtq_reports.page import write_report
from dtq_reports.read import read_run
from PIL import Image

from tests.reports import browser, example_runs

EXAMPLES = Path(__file__).parents[2] / "reports" / "examples"

COLOURS = 96
"""So many are enough for these pages, and keep the repository small."""


def main() -> None:
    """Write both pages in a folder of their own, and photograph them."""
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        results = Path("reports", "results")
        for write, name, height_px in ((example_runs.held_run, "held", 2620),
                                       (example_runs.violated_run, "violated", 2900)):
            folder = write(results)
            page = write_report([read_run(folder)], folder / "report").page
            picture = EXAMPLES / f"{name}.png"
            browser.screenshot(page.absolute(), picture, Path(place).absolute(),
                               height_px=height_px)
            Image.open(picture).convert("RGB").quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    main()
