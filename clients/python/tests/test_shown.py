"""What people see while the client waits, and what a table becomes before it is sent."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import ModuleType

import httpx
import numpy
import pandas
import polars
import pytest
from test_parts import ME, answers, failure

from millrace import Client, MillraceError, NotFound, RunNotCompleted, errors, models
from millrace._fields import RunFields, RunOptions, start_body
from millrace._inputs import each_set, is_frame, plain, write_frame
from millrace._sync.run import Run
from millrace._views import State, TerminalView, View, runs_state, say, view_for
from millrace._waiting import each

LIMITED = {"Retry-After": "42"}


class Terminal(io.StringIO):
    """Standard error as a terminal: its lines as they are in the end."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        return [line.rpartition("\r")[2].rstrip() for line in self.getvalue().split("\n")]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millrace._sync.transport.sleep", lambda seconds: None)


def ask(client: Client) -> str:
    return client.me().name


def limited(progress: bool = True) -> Client:
    """A client that is told to wait once."""
    http = answers(failure(429, "rate_limited", **LIMITED), httpx.Response(200, json={"success": True, "data": ME}))[0]
    return Client("http://localhost:1", "token", progress=progress, http=http._transport.http)


def test_a_wait_for_a_rate_limit_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(limited()) == "Ada"
    assert capsys.readouterr().err == "The client waits for 42 seconds and then goes on: A sentence.\n"
    assert ask(limited(progress=False)) == "Ada"
    with view_for("runs", False):
        assert ask(limited()) == "Ada"
        each(2, lambda number: say(f"in thread {number}", True), range(2))
    assert capsys.readouterr().err == ""


def test_a_limit_that_is_not_waited_for_says_when_to_try_again() -> None:
    error = errors.RateLimited("No.", status=429, code="rate_limited", retry_after=3600)
    assert str(error) == "No. (rate_limited)\n  Try again in 60 minutes."
    assert str(errors.RateLimited("No.", status=429)) == "No."
    assert [errors.duration(seconds) for seconds in (0.2, 119, 7200)] == ["1 second", "119 seconds", "2 hours"]


def test_a_line_is_rewritten_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "62")
    with view_for("reads #3", True) as view:
        view.show(State("running  1 of 4 steps  align\x1b[2J all of the many reads", 25))
        assert isinstance(view, TerminalView)
        view.log("a line\n")
        assert terminal.lines() == ["reads #3:  25 %  running  1 of 4 steps  align[2J all of the …"]
        view.log("half")
        assert terminal.lines() == [""]
        view.log(" a line\n")
        ask(limited())
        assert terminal.lines() == ["The client waits for 42 seconds and then goes on: A sentence."]
        view.show(State("completed", 100))
    assert terminal.lines() == ["reads #3: 100 %  completed", ""]
    assert capsys.readouterr().out == "a line\nhalf a line\n"
    assert type(view_for("reads", False)) is View


def test_elsewhere_a_phase_and_a_tenth_have_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with view_for("reads", True) as view:
        for percent, phase in ((0, "queued"), (0, "running"), (5, "running"), (11, "running"), (12, "running")):
            view.show(State(phase, percent, phase))
    assert capsys.readouterr().err.splitlines() == [
        "reads:   0 %  queued",
        "reads:   0 %  running",
        "reads:  11 %  running",
    ]
    state = runs_state(["running", "failed", "completed", "completed"])
    assert (state.text, state.percent) == ("3 of 4 runs ended: 2 completed, 1 failed, 1 running", 75)


def test_a_run_has_all_fields_of_a_row() -> None:
    assert set(RunFields.__annotations__) <= set(models.RunRow.model_fields)
    source = Path(sys.modules[RunFields.__module__].__file__ or "").read_text()
    assert [name for name in models.RunRow.model_fields if f"\n        {name}: " not in source] == []


def test_options_have_the_names_of_the_api() -> None:
    options: RunOptions = {"vcpu": 4, "profile": "gpu", "max_credits": 2, "note": "n", "output_to": {"url": "s3://b/"}}
    body = {"compute": {"vcpu": 4, "ramGb": 16}, "resourceProfile": "gpu", "maxCredits": 2, "note": "n"}
    assert start_body("wf_1", options) == {**body, "outputTo": {"url": "s3://b/"}, "workflowId": "wf_1"}


def test_several_runs_that_did_not_complete_are_named() -> None:
    class Failed:
        id, number, workflow_name, status, error_message = "run_1", 1, "reads", "failed", "it broke"

    assert str(RunNotCompleted([Failed()])) == "run 1 of reads (run_1) is failed: it broke"
    lines = str(RunNotCompleted([Failed()] * 7, of=9)).splitlines()
    assert lines[0] == "7 of 9 runs did not complete:" and lines[-1] == "  and 2 more" and len(lines) == 7


def test_what_varies_is_a_list() -> None:
    assert each_set([{"n": 1}, {"n": 2}], {"reads": "a"}) == [({"n": 1}, {"reads": "a"}), ({"n": 2}, {"reads": "a"})]
    assert each_set(({"n": n} for n in range(2)), None) == [({"n": 0}, None), ({"n": 1}, None)]
    assert each_set(None, [{"reads": "a"}]) == [(None, {"reads": "a"})]
    with pytest.raises(ValueError, match="nothing varies"):
        each_set({"n": 1}, None)
    with pytest.raises(ValueError, match="2 sets of parameters and 1 sets of inputs"):
        each_set([{}, {}], [{}])


def test_numbers_of_numpy_are_parameters() -> None:
    given = {"n": numpy.int64(1), "cuts": numpy.array([1, 2]), "sizes": (numpy.float32(0.5), "x", range(2))}
    assert json.dumps(plain(given)) == '{"n": 1, "cuts": [1, 2], "sizes": [0.5, "x", [0, 1]]}'


def test_numbers_of_numpy_are_parameters_of_a_retry() -> None:
    no_run = failure(404, "not_found")
    client, seen = answers(httpx.Response(201, json={"success": True, "data": {"runId": "run_2"}}), no_run)
    with pytest.raises(NotFound):
        Run(client._transport, models.RunRow.model_construct(id="run_1")).retry(
            {"n": numpy.int64(3)}, definition="current"
        )
    assert json.loads(seen[0].content) == {"definition": "current", "parameters": {"n": 3}}


@pytest.mark.parametrize("library", [None, ModuleType("pandas")])
def test_a_library_that_is_not_there_or_half_imported_made_no_table(
    monkeypatch: pytest.MonkeyPatch, library: ModuleType | None
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", library)
    assert not is_frame("counts.csv") and is_frame(polars.DataFrame())


def test_a_table_is_written_with_the_names_of_its_rows(tmp_path: Path) -> None:
    table = pandas.DataFrame({"n": [1, 2, 3]})
    for frame, text in {
        "numbered": (table, "n\n1\n2\n3\n"),
        "filtered": (table[table.n > 1], "n\n2\n3\n"),
        "named": (table.set_index(pandas.Index(["x", "y", "z"])), ",n\nx,1\ny,2\nz,3\n"),
        "an index with a name": (table.rename_axis("row"), "row,n\n0,1\n1,2\n2,3\n"),
    }.values():
        write_frame(frame, tmp_path / "table.csv")
        assert (tmp_path / "table.csv").read_text() == text
    with pytest.raises(MillraceError, match="pip install pyarrow"):
        write_frame(table, tmp_path / "table.parquet")
    with pytest.raises(ValueError, match=r"must end in \.csv or \.parquet"):
        write_frame(table, tmp_path / "table.xlsx")
