"""The page: it says what there is to say, in words, and needs nothing but a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from dtq_reports import page
from dtq_reports.page import Written, write_report
from dtq_reports.read import Run, read_run
from dtq_reports.summary import SYMBOL, WORD

from tests.reports import browser, example_runs

pytestmark = pytest.mark.slow

Need = Callable[[object, str], None]


class Outside(HTMLParser):
    """Collects what a page refers to outside of itself, and its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "base"):
            self.found.append(f"<{tag}>")
        self.found += [f"{tag} {name}={value}" for name, value in attrs
                       if name in ("src", "href", "srcset", "action", "data", "poster")
                       and not (value or "").startswith(("data:", "#"))]


def outside(html: str) -> list[str]:
    parser = Outside()
    parser.feed(html)
    return parser.found + re.findall(r"@import|url\(|https?://[^\s<]+", html)


def text_of(written: Written) -> str:
    """What can be read on the page: no tags, no pictures, white space as one blank."""
    html = re.sub(r"<style>.*?</style>", "", written.page.read_text(), flags=re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", html).replace("\u202f", " ").split())


def test_the_page_refers_to_nothing_outside_of_itself(written: Written, accusing: Written) -> None:
    assert outside(written.page.read_text()) == []
    assert outside(accusing.page.read_text()) == []


@pytest.mark.parametrize("html", ["<img src='x.png'>", "<script>1</script>", "<a href='b.html'>",
                                  "<style>a{background:url(x)}</style>", "see http://a.example/"])
def test_a_reference_to_the_outside_is_found(html: str) -> None:
    assert outside(html)


def test_chromium_opens_the_page_without_a_complaint_or_a_request(
        written: Written, tmp_path: Path, need: Need) -> None:
    need(browser.CHROMIUM, browser.ABSENT)
    seen = browser.see(written.page, tmp_path)
    assert "Was anything lost?" in seen.dom
    assert (seen.console, seen.requests) == ((), ())


def test_chromium_would_have_shown_a_complaint_and_a_request(tmp_path: Path, need: Need) -> None:
    need(browser.CHROMIUM, browser.ABSENT)
    bad = tmp_path / "bad.html"
    bad.write_text("<img src='http://127.0.0.1:9/x.png'><script>missing()</script>")
    seen = browser.see(bad, tmp_path)
    assert any("missing is not defined" in line for line in seen.console)
    assert seen.requests == ("http://127.0.0.1:9/x.png",)


def test_a_violated_page_holds_the_task_the_kills_and_the_command_as_text(
        accusing: Written) -> None:
    text = text_of(accusing)
    assert "Was anything lost? ✗ Yes. 21 tasks accepted, 20 finished, 1 lost" in text
    assert example_runs.task_id(0) in text
    assert "260 ms its worker was killed (SIGKILL)" in text
    assert "3 700 ms its worker was killed (SIGKILL)" in text
    assert "dtq-chaos replay reports/results/violated-0007" in text
    assert accusing.status == "violated"


def test_every_clause_has_a_row_with_its_words_its_status_and_a_sentence(
        accusing: Written, violated: Run) -> None:
    text = text_of(accusing)
    for row in violated.verdict.rows:
        shown = f"{SYMBOL[row.status]} {WORD[row.status]} {row.clause}"
        assert re.search(rf"{re.escape(shown)} \w+", text), shown
    statuses = [row.status for row in violated.verdict.rows]
    assert f"{statuses.count('holds')} of {len(statuses)} clauses held" in text
    assert "DLV-01 An accepted task becomes terminal, within the target's" in \
        text.replace("&#39;", "'")


def test_a_sentence_that_several_clauses_share_is_said_once(accusing: Written) -> None:
    assert text_of(accusing).count("The same as under DLV-01.") == 2


def test_each_further_execution_has_a_row_with_its_justification(accusing: Written) -> None:
    text = text_of(accusing)
    assert "1 of 1 further execution was justified" in text
    assert re.search(r"worker-2 3 583 ms ✓ yes Task \w{32} was started again at 3 583 ms", text)


def test_a_batch_has_a_table_of_runs_and_a_section_for_each(written: Written) -> None:
    html, text = written.page.read_text(), text_of(written)
    assert "4 runs with 674 executions of 663 tasks" in text
    for run_id in ("held-0007", "violated-0007", "canary-0007", "burst-0007"):
        assert f'href="#{run_id}"' in html
        assert f'<details class="run" id="{run_id}"' in html
    assert text.index("violated-0007") < text.index("600")
    assert "as it must be: the harness itself deleted a task" in text
    assert "1 × deleted" in text and "2 × killed" in text


def test_only_what_went_wrong_is_unfolded(written: Written) -> None:
    opened = re.findall(r'id="([\w-]+)" open', written.page.read_text())
    assert opened == ["violated-0007"]


def test_the_legend_names_all_four_statuses_with_their_symbols(written: Written) -> None:
    text = text_of(written)
    for words in ("✓ held looked for and found true", "✗ violated proven false, with evidence",
                  "? unknown the evidence does not decide it", "– not claimed the target does not"):
        assert words in text


def test_the_pictures_lie_beside_the_page_and_are_pngs_of_the_run(written: Written) -> None:
    assert {path.name for path in written.pngs} == {
        *(f"{run}-{plot}.png" for run in ("held-0007", "violated-0007", "canary-0007", "burst-0007")
          for plot in ("timeline_by_worker", "executions_per_task")),
        *(f"burst-0007-{plot}.png" for plot in ("latency_over_time", "recovery_after_kills",
                                                "start_order", "starts_by_priority"))}
    for path in written.pngs:
        assert path.parent == written.page.parent
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 400_000


def test_pictures_drawn_in_several_processes_are_the_same(
        held: Run, violated: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [page.draw(run) for run in (held, violated)]
    monkeypatch.setattr(page, "RUNS_TO_SHARE_OUT", 2)
    monkeypatch.setattr(page, "cores", lambda: 2)
    assert page.draw_all([held, violated]) == alone


def test_each_picture_has_its_title_as_words(accusing: Written) -> None:
    titles = re.findall(r'alt="([^"]+)"', accusing.page.read_text())
    assert len(titles) == 2
    assert all(re.search(r"\d", title) for title in titles)


def test_what_a_run_says_of_itself_cannot_break_the_page(violated: Run, tmp_path: Path) -> None:
    folder = tmp_path / "odd-0007"
    story = example_runs.Story("<script>alert(1)</script>", tasks=2)
    example_runs.save(folder, story, example_runs.play(story), target="<img src=x>")
    written = write_report([read_run(folder)], tmp_path)
    assert outside(written.page.read_text()) == []


@pytest.mark.parametrize("name", ["held", "violated"])
def test_the_readme_shows_a_small_picture_of_each_kind_of_page(name: str) -> None:
    room = Path(__file__).parents[2] / "reports"
    assert f"(examples/{name}.png)" in (room / "README.md").read_text()
    picture = (room / "examples" / f"{name}.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) < 400_000
