"""The command `dtq-report`: draws the page of a run, or of a folder of runs.

It exits 0 when the page was written, whatever the verdict was; the other codes are those of
`dtq_conformance.exits`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from dtq_conformance.exits import CONFORMS, Parser, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Write the report and return an exit code."""
    return run_command(_report, argv)


def _report(argv: Sequence[str]) -> int:
    from dtq_reports import benchmark, page, read, summary

    parser = Parser(prog="dtq-report", description="Draw what happened in a run, as a page that "
                    "opens in any browser, and as PNG files beside it.")
    parser.add_argument("run", metavar="RUN", help="a run's folder, a folder that contains runs, "
                        "the word latest for the newest under reports/results, or a file that "
                        "`dtq-load bench` has written, of which a picture is drawn beside it")
    parser.add_argument("--out", type=Path, metavar="FOLDER",
                        help="where to write the page (default: RUN/report)")
    parser.add_argument("--summary", action="store_true",
                        help="print a table of the runs and the answer above the page's path")
    parser.add_argument("--markdown", action="store_true",
                        help="print the answer and the table as Markdown instead of the path, "
                             "for the page of a CI job")
    parser.add_argument("--json", action="store_true",
                        help="print the page's path, the status and the runs as JSON")
    arguments = parser.parse_args(argv)
    if Path(arguments.run).is_file():
        print(benchmark.write(Path(arguments.run), arguments.out))
        return CONFORMS
    folder = read.latest(read.results_folder()) if arguments.run == "latest" \
        else Path(arguments.run)
    runs = read.read_runs(folder)
    written = page.write_report(runs, arguments.out or folder / "report",
                                unrecorded=read.without_history(folder))
    if arguments.json:
        print(json.dumps({
            "page": str(written.page), "pngs": [str(path) for path in written.pngs],
            "status": written.status, "runs": [summary.as_data(run) for run in runs]}, indent=2))
        return CONFORMS
    if arguments.markdown:
        print(summary.markdown(folder))
        return CONFORMS
    if arguments.summary:
        summary.print_summary(folder)
    print(written.page)
    return CONFORMS


if __name__ == "__main__":
    sys.exit(main())
