"""The clients against a real server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
from real_server import PROGRAM, Server

from millrace import AsyncClient, Client, MillraceError, RunNotCompleted, Workflow, each, errors, models, task
from millrace._local import safe_name, sha256_of


@task(outputs={"table": "table.csv"})
def tabulate(counts, least: int):  # type: ignore[no-untyped-def]
    import csv

    with open("table.csv", "w") as out:
        writer = csv.writer(out)
        writer.writerow(["index", "words"])
        for index, path in enumerate(counts):
            words = int(path.read_text())
            if words >= least:
                writer.writerow([index, words])


@task(outputs={"n": "n.txt"})
def count(text):  # type: ignore[no-untyped-def]
    import pathlib

    words = len(text.read_text().split())
    print("counted", words)
    pathlib.Path("n.txt").write_text(str(words))


def word_count() -> Workflow:
    with Workflow("word count", "Counts words.") as wf:
        texts = wf.files("texts", description="Plain text")
        least = wf.param("least", 0, minimum=0)
        counts = count(each(texts))
        wf.output("table", tabulate(counts["n"], least)["table"])
    return wf


def write_texts() -> list[str]:
    Path("a.txt").write_text("one two three")
    Path("b.txt").write_text("four")
    return ["a.txt", "b.txt"]


def test_a_workflow_of_functions_runs_and_gives_a_table(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert client.validate(word_count()) == []
    run = client.run(word_count(), {"least": 2}, inputs={"texts": write_texts()}, tags=["py"], note="a test")
    run.wait(logs=True, timeout=120)
    assert run.status == "completed" and run.info.tags == ["py"]
    assert run.outputs["table"].to_pandas().to_dict("list") == {"index": [0], "words": [3]}
    assert sorted(capsys.readouterr().out.splitlines()) == ["counted 1", "counted 3"]
    assert sorted("".join(run.follow_logs()).splitlines()) == sorted(run.logs().splitlines())
    assert run.events()[-1].type == "run.completed"
    assert "word count #1" in run._repr_html_() and "<svg" in run._repr_html_()

    again = client.run(
        "word count", {"least": 0}, inputs={"texts": [f for f in client.files() if f.source == "upload"]}
    )
    assert len(again.wait(timeout=120).outputs["table"].to_pandas()) == 2
    assert [row.id for row in client.runs(workflow="word count")] == [again.id, run.id]
    assert again.outputs["table"].download("out")[0].read_text().startswith("index,words")


def test_the_async_client_does_the_same(server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(server.url, server.sign_up()["token"]) as client:
            run = await client.run(word_count(), inputs={"texts": write_texts()})
            await run.wait(timeout=120)
            text = "".join([piece async for piece in run.follow_logs()])
            assert sorted(text.splitlines()) == ["counted 1", "counted 3"]
            outputs = await run.outputs
            assert len(await outputs["table"].to_pandas()) == 2
            with pytest.raises(errors.NotFound):
                await client.get_run("run_unknown")

    asyncio.run(main())


def test_a_run_that_fails_says_why(client: Client) -> None:
    wf = Workflow("broken")
    wf.task("boom", "echo before the end; exit 3")
    run = client.run(wf)
    with pytest.raises(RunNotCompleted, match="boom exited with status 3") as caught:
        run.wait(timeout=120)
    assert caught.value.run.error_code == "node_failed"
    assert run.wait(check=False).logs("boom") == "before the end\n"


def test_waiting_ends_with_its_time_and_the_run_goes_on_until_it_is_cancelled(client: Client) -> None:
    wf = Workflow("slow")
    wf.task("sleep", "sleep 600")
    run = client.run(wf)
    with pytest.raises(TimeoutError):
        run.wait(timeout=0.5)
    assert not run.refresh().ended
    run.cancel()
    assert run.wait(check=False, timeout=120).status == "cancelled"


def test_refusals_carry_the_servers_sentence_and_code(one_client: Client, one_server: Server) -> None:
    client = one_client
    with pytest.raises(errors.InvalidRequest) as caught:
        client.run(client.apply({"nodes": []}, "empty"), {"unknown": 1})
    assert caught.value.code and caught.value.request_id and caught.value.details
    assert caught.value.details[0].message in str(caught.value)
    with pytest.raises(errors.NotSignedIn):
        Client(one_server.url, "mrt_wrong").me()
    Path("tool.exe").write_bytes(b"MZ")
    with pytest.raises(errors.UnsupportedType):
        client.upload("tool.exe")
    with pytest.raises(MillraceError, match="no workflow 'unknown'"):
        client.run("unknown")
    with pytest.raises(FileNotFoundError, match=r"missing\.txt"):
        client.run(client.apply(word_count()), inputs={"texts": ["missing.txt"]})
    assert client.request("GET", "/api/secrets", list[models.Secret]) == []


def test_large_files_go_in_parts_and_come_back_whole(one_client: Client) -> None:
    client = one_client
    Path("large.bin").write_bytes(os.urandom(1 << 20) * 17)
    file = client.upload("large.bin", large_from=1 << 20)
    assert file.sha256 == sha256_of(Path("large.bin"))
    assert client.download(file, "back.bin").read_bytes() == Path("large.bin").read_bytes()
    Path("back.bin").write_text("changed")
    with pytest.raises(FileExistsError):
        client.download(file, "back.bin")
    assert client.download(file, "back.bin", overwrite=True).stat().st_size == file.size
    damaged = file.model_copy(update={"sha256": hashlib.sha256(b"other").hexdigest()})
    with pytest.raises(errors.TransferFailed, match="damaged"):
        client.download(damaged, "other.bin")
    assert sorted(os.listdir()) == ["back.bin", "large.bin"]
    Path("nothing.txt").touch()
    assert client.download(client.upload("nothing.txt"), "empty.txt").read_bytes() == b""


def test_a_start_whose_answer_was_lost_happens_once(one_server: Server) -> None:
    lost: list[str] = []

    def lose(response: httpx.Response) -> None:
        if response.request.url.path == "/api/runs" and response.request.method == "POST" and not lost:
            lost.append(response.request.headers["Idempotency-Key"])
            raise httpx.ReadError("cut off", request=response.request)

    http = httpx.Client(event_hooks={"response": [lose]})
    with Client(one_server.url, one_server.sign_up()["token"], http=http) as client:
        client.run(word_count(), inputs={"texts": write_texts()})
        assert len(lost) == 1 and len(client.runs()) == 1


def test_a_server_that_was_restarted_is_waited_for(tmp_path: Path) -> None:
    server = Server(tmp_path, "")
    try:
        client = Client(server.url, server.sign_up()["token"])
        wf = Workflow("long")
        wf.task("wait", "echo begun; sleep 5; echo ended")
        run = client.run(wf)
        heard = threading.Event()
        result: list[str] = []

        def follow() -> None:
            for text in run.follow_logs(timeout=120):
                result.append(text)
                heard.set()

        thread = threading.Thread(target=follow)
        thread.start()
        assert heard.wait(120)
        server.stop()
        server.start()
        assert client.me().name == "Ada"
        thread.join(120)
        assert "".join(result).splitlines()[-1] == "ended"
        assert run.refresh().wait(timeout=60).status == "completed"
    finally:
        server.stop()


def test_the_credentials_of_the_command_line_are_used_and_renewed(one_server: Server, tmp_path: Path) -> None:
    person = one_server.sign_up()
    environment = {**os.environ, "HOME": str(tmp_path)}
    login = [str(PROGRAM), "login", "--server", one_server.url, "--email", person["email"]]
    subprocess.run(login, input=person["password"], text=True, env=environment, check=True, capture_output=True)
    assert Client().me().email == person["email"]

    path = tmp_path / "config" / "millrace" / "credentials.json"
    ring = json.loads(path.read_text())
    past = ring["servers"][one_server.url]["expires"] = "2020-01-01T00:00:00.123456789Z"
    path.write_text(json.dumps(ring))
    assert Client(team=Client().me().team.name).me().email == person["email"]
    assert json.loads(path.read_text())["servers"][one_server.url]["expires"] > past
    who = subprocess.run([str(PROGRAM), "teams"], env=environment, capture_output=True, text=True)
    assert who.returncode == 0, who.stderr
    with pytest.raises(MillraceError, match="none of your teams"):
        Client(team="unknown").me()


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\\b", "a\nb", "\x00"])
def test_names_of_strangers_stay_names(name: str) -> None:
    with pytest.raises(ValueError):
        safe_name(name)
