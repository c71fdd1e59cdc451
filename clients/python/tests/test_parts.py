"""What needs no server."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from millrace import Client, Workflow, errors, models, task
from millrace._graph import svg
from millrace._sse import Frames
from millrace._views import State, clean, progress_html, run_state

LIMIT = 3


def test_a_newer_server_is_understood() -> None:
    message = models.RunMessage.model_validate({"type": "paused", "status": "paused", "seq": 3, "mood": "good"})
    assert str(message.type) == "paused" and message.seq == 3
    less = models.TeamRow.model_validate({"id": "team_1", "name": "Lab"})  # of an older one
    assert less.name == "Lab" and not less.plan
    with pytest.raises(ValueError):
        models.TeamRow.model_validate({"error": "something else"})
    node = {"id": "a" * 100, "type": "subworkflow", "environment": {"python": "3.12"}}
    definition = models.Definition.model_validate({"nodes": [node], "source": {"git": "https://example.org/x.git"}})
    assert definition.model_dump(mode="json", by_alias=True, exclude_unset=True)["nodes"] == [node]


def answers(*queue: httpx.Response | Exception) -> tuple[Client, list[httpx.Request]]:
    """A client whose server gives these answers, one after another."""
    seen: list[httpx.Request] = []
    waiting = list(queue)

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        next = waiting.pop(0)
        if isinstance(next, Exception):
            raise next
        return next

    return Client("http://localhost:1", "token", http=httpx.Client(transport=httpx.MockTransport(answer))), seen


ME = {
    "id": "user_1",
    "name": "Ada",
    "email": "a@example.org",
    "emailVerified": True,
    "team": {"id": "team_1", "name": "t", "role": "owner", "plan": "free"},
}


def failure(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"success": False, "error": "A sentence.", "code": code, "requestId": "r"}
    return httpx.Response(status, json=body, headers=headers)


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr("millrace._sync.transport.sleep", pauses.append)
    return pauses


def test_what_passes_is_tried_again_and_what_does_not_is_said(no_pauses: list[float]) -> None:
    done = httpx.Response(200, json={"success": True, "data": ME})
    client, seen = answers(
        httpx.ConnectError("away"), failure(429, "rate_limited", **{"Retry-After": "7"}), httpx.Response(502), done
    )
    assert client.me().name == "Ada" and len(seen) == 4 and no_pauses[1] >= 7

    client, seen = answers(failure(503, "model_unavailable"))
    with pytest.raises(errors.ServerError) as caught:
        client.me()
    assert (caught.value.code, caught.value.status, len(seen)) == ("model_unavailable", 503, 1)
    client, seen = answers(failure(429, "quota", **{"Retry-After": "3600"}))
    with pytest.raises(errors.RateLimited) as limited:
        client.me()
    assert limited.value.retry_after == 3600
    client, seen = answers(httpx.ReadError("cut off"))
    with pytest.raises(errors.ConnectionLost):  # may have been carried out, and has no key
        client.request("POST", "/api/collab/token", dict[str, Any], body={})
    assert len(seen) == 1
    client, _ = answers(*[httpx.ConnectError("away")] * 6)
    with pytest.raises(errors.ConnectionLost, match="localhost"):
        client.me()


def test_the_token_goes_to_the_server_alone(tmp_path: Any) -> None:
    row = {"key": "k", "name": "f.txt", "source": "upload", "size": 0, "contentType": "text/plain", "sha256": None}
    row |= {
        "runId": None,
        "createdAt": "2026-01-01T00:00:00Z",
        "url": "https://bucket.example.org/k?signed",
        "expiresAt": "2026-01-01T00:00:00Z",
    }
    file = models.File.model_validate({**row, "size": 2})
    client, seen = answers(httpx.Response(200, content=b"ok"))
    assert client.download(file, tmp_path).read_bytes() == b"ok"
    assert "Authorization" not in seen[0].headers


def test_a_folder_is_sent_as_one_piece(tmp_path: Path) -> None:
    folder = tmp_path / "run7"
    for name, text in {"b/x.txt": "four", "b-1.txt": "one", ".hidden": "", "b/deep/y.txt": "sixsix"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("b/x.txt")
    bodies: dict[str, Any] = {}
    parts: dict[str, bytes] = {}
    row = {"key": "k", "name": "run7", "source": "upload", "size": 9, "contentType": "inode/directory", "sha256": "s"}
    row |= {
        "runId": None,
        "createdAt": "2026-01-01T00:00:00Z",
        "url": "https://b/k",
        "expiresAt": "2026-01-01T00:00:00Z",
    }

    def answer(request: httpx.Request) -> httpx.Response:
        last = request.url.path.rpartition("/")[2]
        if request.method == "PUT":
            parts[last] = request.read()
            return httpx.Response(200)
        body = bodies[last] = json.loads(request.read())
        data: Any = row
        if last == "uploads":
            data = {"uploadId": "u", "key": "k", "partSize": 5, "partCount": 3, "expiresAt": "2026-01-01T00:00:00Z"}
        elif last == "parts":
            [number] = body["numbers"]
            data = [{"number": number, "url": f"https://b/{number}", "size": 5, "expiresAt": "2026-01-01T00:00:00Z"}]
        return httpx.Response(200, json={"success": True, "data": data})

    client = Client("http://localhost:1", "token", http=httpx.Client(transport=httpx.MockTransport(answer)))
    assert client.upload(folder).key == "k"
    entries = [{"path": ".hidden", "size": 0}, {"path": "b-1.txt", "size": 3}, {"path": "b/deep/y.txt", "size": 6}]
    entries += [{"path": "b/x.txt", "size": 4}, {"path": "empty", "folder": True}, {"path": "link", "link": "b/x.txt"}]
    whole = {"filename": "run7", "contentType": "inode/directory", "size": 13, "entries": entries}
    assert bodies["uploads"] == whole
    assert parts == {"1": b"onesi", "2": b"xsixf", "3": b"our"}
    assert bodies["complete"] == {"sha256": hashlib.sha256(b"onesixsixfour").hexdigest(), "entries": entries}


def test_frames_are_put_together() -> None:
    frames = Frames()
    text = ": heartbeat\nid: 4:10\r\nretry: 1500\ndata: {\x85\u2028\ndata: }\n\ndata: cut off\ndata"
    found = [frame for character in text for frame in frames.feed(character)]
    assert [(f.id, f.data) for f in found] == [("4:10", "{\x85\u2028\n}")] and frames.retry == 1.5
    frames.reconnect()
    assert list(frames.feed("\n")) == [] and frames.last_id == "4:10"


def test_pictures_escape_what_strangers_wrote() -> None:
    nodes = [{"id": "a", "name": "<script>alert(1)</script>"}, {"id": "b"}, {"id": "c"}]
    edges = [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}, {"source": "c", "target": "b"}]
    picture = svg({"nodes": nodes, "edges": edges}, {"a": "<b>", "b": "failed"})
    assert "<script>" not in picture and "<b>" not in picture and "&lt;script&gt;" in picture
    assert svg({}) and "too many" in svg({"nodes": [{"id": f"n{i}"} for i in range(300)]})
    message = models.RunMessage.model_validate(
        {"type": "progress", "status": "running", "progressPercent": 40, "currentStep": "<img>", "totalNodes": 2}
    )
    state = run_state(message, State("queued", 0))
    assert "<img>" not in progress_html("<t>", state) and "40 %" in progress_html("<t>", state)
    assert clean("a\x1b[2Jb\x9b\n") == "a[2Jb\n"
    assert run_state(models.RunMessage(type="done", status="failed"), state).percent == 40
    assert run_state(models.RunMessage(type="done", status="completed"), state).percent == 100


def test_what_a_function_cannot_take_along_is_said() -> None:
    with pytest.raises(ValueError, match="LIMIT"):

        @task(outputs={})
        def uses_more():  # type: ignore[no-untyped-def]
            return LIMIT

    @task(outputs={"o": "o.txt"}, image="python:3.12", vcpu=2)
    def plain(value, n=1):  # type: ignore[no-untyped-def]
        return value

    with pytest.raises(RuntimeError, match="with Workflow"):
        plain(1)
    with Workflow("w") as wf:
        assert wf.folder("run").expression == "inputs.run"
        first = plain({"a": [1, None]})
        plain(first["o"], 2, task_id="second")
        with pytest.raises(TypeError, match="value"):
            plain(object(), task_id="third")
        with pytest.raises(ValueError, match="already"):
            plain(1)
        with pytest.raises(KeyError, match="only o"):
            first["x"]
    made = wf.definition()
    assert made["inputs"] == {"run": {"type": "directory", "required": True}}
    assert made["nodes"][0]["resources"] == {"vcpu": 2} and made["nodes"][0]["interpreter"] == "python3"
    assert made["edges"] == [
        {"id": "e1", "source": "plain", "sourceHandle": "o", "target": "second", "targetHandle": "value"}
    ]
    assert "_repr_html_" in dir(wf) and "<svg" in wf._repr_mimebundle_()["text/html"]


def test_a_problem_of_a_definition_is_told_without_its_path() -> None:
    details = [
        models.Detail(path="nodes[2].when", message='"Align" has no items', code="no_items", field="when"),
        models.Detail(path="edges[0]", message="the steps form a cycle", code="cycle", edge="e1", field="edges[0]"),
        models.Detail(path="name", message="is missing"),
    ]
    lines = str(errors.InvalidRequest("No.", status=400, details=details)).splitlines()
    assert lines == ["No.", '  "Align" has no items (when)', "  the steps form a cycle", "  name: is missing"]
