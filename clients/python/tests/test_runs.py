"""Several runs at once, and the tables, folders and pictures that go in and come out, against a real server."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import subprocess
from pathlib import Path

import numpy
import pandas
import polars
import pytest
from real_server import Server

from millrace import AsyncClient, AsyncRunNotCompleted, Client, MillraceError, NotFound, RunNotCompleted, Workflow

# One red point.
POINT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def scored() -> Workflow:
    """Fails where n is 3."""
    wf = Workflow("scored")
    wf.param("n", 1)
    wf.param("mode", "plain")
    command = 'echo "n is $PARAM_n"; echo $((10 * PARAM_n)) > score.txt; test $PARAM_n != 3'
    wf.output("score", wf.task("score", command, outputs={"score": "score.txt"})["score"])
    return wf


def copied(*names: str) -> Workflow:
    """Gives back the files that it is given, by their names, and counts those of a folder."""
    wf = Workflow("copied")
    for name in names:
        given = wf.file(name.partition(".")[0])
        made = wf.task(given.name, f'cp "$INPUT_in" {name}', inputs={"in": given}, outputs={"out": name})
        wf.output(given.name, made["out"])
    return wf


def test_a_sweep_is_one_call(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = scored().sweep({"n": numpy.arange(1, 3), "mode": ["x", "y"]}, client=client, tags=["s"]).wait(timeout=120)
    assert capsys.readouterr().err.splitlines()[-1] == "scored: 100 %  4 of 4 runs ended: 4 completed"
    assert [run.name for run in sweep] == ["mode=x, n=1", "mode=x, n=2", "mode=y, n=1", "mode=y, n=2"]
    assert {run.sweep_id for run in sweep} == {sweep.id} and sweep[0].tags == ["s"]
    table = sweep.to_pandas(["score"])
    assert table[["mode", "n", "status", "score"]].to_dict("list") == {
        "mode": ["x", "x", "y", "y"],
        "n": [1, 2, 1, 2],
        "status": ["completed"] * 4,
        "score": [10, 20, 10, 20],
    }
    assert [run.id for run in client.get_sweep(sweep.id)] == [run.id for run in sweep]
    assert list(client.get_sweep(sweep.id).to_pandas().run) == [run.id for run in sweep]
    with pytest.raises(NotFound, match=r"no output 'socre'; its outputs are score, score\.score"):
        sweep.to_pandas(["socre"])


def test_a_run_for_each_set_of_parameters(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    client.apply(scored())
    capsys.readouterr()
    runs = client.workflow("scored").map([{"n": n} for n in (1, 3, 2)], progress=False, note="three")
    with pytest.raises(RunNotCompleted, match="1 of 3 runs did not complete") as caught:
        runs.wait(timeout=120, progress=False)
    assert capsys.readouterr().err == ""
    assert [run.status for run in runs] == ["completed", "failed", "completed"]
    failed = caught.value.run
    assert caught.value.runs == [failed] == [runs[1]] and failed.note == "three"
    assert failed.logs() == "n is 3\n" and failed.error_code == "node_failed"
    with pytest.raises(NotFound, match="which is failed, has no output 'score': it has none") as missing:
        failed.outputs["score"]
    assert isinstance(missing.value, KeyError)
    assert runs[2].outputs["score"].read_text() == "20\n" and runs[2].info.parameters.model_dump()["n"] == 2

    listed = client.runs(workflow="scored", status="completed")
    assert [run.id for run in listed] == [runs[2].id, runs[0].id] and listed.wait(timeout=120) is listed
    assert listed[0].logs() == "n is 2\n" and listed[0].wait(timeout=120).status == "completed"
    assert listed[0].info.nodes[0].id == "score" and "score" in listed[1].outputs
    assert "<td>failed</td>" in client.runs()._repr_html_()


def test_runs_are_cancelled_together(one_client: Client) -> None:
    client = one_client
    wf = Workflow("slow")
    wf.param("n", 1)
    wf.task("sleep", "sleep 600")
    runs = wf.map([{"n": 1}, {"n": 2}], client=client)
    with pytest.raises(TimeoutError):
        runs.wait(timeout=0.5)
    runs.cancel().wait(timeout=120, check=False)
    assert {run.status for run in runs} == {"cancelled"}


def test_a_start_that_is_refused_names_the_runs_before_it(one_client: Client) -> None:
    client = one_client
    with pytest.raises(MillraceError, match="unknown") as caught:
        client.map(scored(), [{"n": 1}, {"unknown": 2}])
    [note] = caught.value.__notes__
    assert note == f"1 of 2 runs was started and goes on: {client.runs()[0].id}"


def test_a_folder_is_its_files_and_each_is_uploaded_once(one_client: Client) -> None:
    client = one_client
    wf = Workflow("count")
    wf.param("n", 1)
    count = wf.task(
        "count", "wc -l < $INPUT_texts_LIST > n.txt", inputs={"texts": wf.files("texts")}, outputs={"n": "n.txt"}
    )
    wf.output("n", count["n"])
    for name in ("b.txt", "a.txt", "below/c.txt", ".hidden/d.txt", ".e.txt"):
        Path("texts", name).parent.mkdir(parents=True, exist_ok=True)
        Path("texts", name).write_text(name)
    runs = client.map(wf, [{"n": 1}, {"n": 2}], inputs={"texts": [Path("texts"), "texts/a.txt"]}).wait(timeout=120)
    assert [run.outputs["n"].read_text().strip() for run in runs] == ["4", "4"]
    assert sorted(file.name for file in client.files() if file.source == "upload") == ["a.txt", "b.txt", "c.txt"]
    with pytest.raises(MillraceError, match=r"'reads' takes one file, and texts is a folder"):
        client.run(copied("reads.txt"), inputs={"reads": Path("texts")})
    with pytest.raises(NotFound, match="no input 'text'; its inputs are texts"):
        client.run(wf, inputs={"text": "texts"})
    Path("empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty has no files"):
        client.run(wf, inputs={"texts": Path("empty")})


def test_folders_go_in_and_come_out(one_server: Server) -> None:
    folder = Path("run7")
    for name in ("b/deep/x.txt", "c.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("b/deep/x.txt")
    wf = Workflow("copy")
    command = 'cp -R "$INPUT_reads" made && chmod +x made/c.txt'
    outputs = {"made": {"path": "made", "directory": True}}
    wf.output("made", wf.task("copy", command, inputs={"reads": wf.folder("reads")}, outputs=outputs)["made"])
    token = one_server.sign_up()["token"]
    run = wf.run(inputs={"reads": folder}, client=Client(one_server.url, token)).wait(timeout=120)
    [made] = run.outputs["made"].download("out")
    assert made == Path("out/made") and os.access(made / "c.txt", os.X_OK)

    async def download() -> Path:
        async with AsyncClient(one_server.url, token) as client:
            [uploaded] = [file for file in await client.files() if file.source == "upload"]
            return await client.download(uploaded, "again")

    for path in (made, asyncio.run(download())):
        compared = subprocess.run(["diff", "-r", "--no-dereference", folder, path], capture_output=True, text=True)
        assert compared.stdout == "" and (path / "empty").is_dir()


def test_outputs_are_inputs_of_the_next_run(one_client: Client) -> None:
    client = one_client
    split = Workflow("split")
    parts = split.task(
        "split", "echo a > 1.txt; echo b > 2.txt; cp 1.txt one", outputs={"parts": "*.txt", "one": "one"}
    )
    for name in ("parts", "one"):
        split.output(name, parts[name])
    outputs = client.run(split).wait(timeout=120).outputs
    joined = Workflow("joined")
    texts, one = joined.files("texts"), joined.file("one")
    both = joined.task(
        "both", "cat $INPUT_texts $INPUT_one > all", inputs={"texts": texts, "one": one}, outputs={"all": "all"}
    )
    joined.output("all", both["all"])
    run = client.run(joined, inputs={"texts": outputs["parts"], "one": outputs["one"]}).wait(timeout=120)
    assert run.outputs["all"].read_text() == "a\nb\na\n"


def test_tables_and_pictures_go_in_and_come_out(one_client: Client) -> None:
    client = one_client
    samples = pandas.DataFrame({"sample": ["a", "b"], "count": [1, 2]})
    counts = polars.DataFrame({"gene": ["x"], "count": [0.5]})
    Path("point.png").write_bytes(POINT)
    Path("packed.csv.gz").write_bytes(gzip.compress(b"n\n1\n"))
    parquet = client.upload(counts, name="counts.parquet")
    wf = copied("samples.csv", "counts.csv", "columns.parquet", "picture.png", "packed.csv.gz")
    outputs = (
        client.run(
            wf,
            inputs={
                "samples": samples,
                "counts": counts,
                "columns": parquet,
                "picture": "point.png",
                "packed": "packed.csv.gz",
            },
        )
        .wait(timeout=120)
        .outputs
    )
    assert outputs["samples"].to_pandas().equals(samples)
    assert outputs["samples"].to_polars(columns=["count"])["count"].to_list() == [1, 2]
    assert outputs["counts"].to_polars().equals(counts)
    assert outputs["columns"].to_polars().equals(counts)
    assert outputs["packed"].to_polars()["n"].to_list() == [1]
    assert outputs["picture"].image().shape[:2] == (1, 1)
    with pytest.raises(MillraceError, match=r"samples\.csv is no picture"):
        outputs["samples"].image()
    with pytest.raises(MillraceError, match=r"picture\.png is no table"):
        outputs["picture"].to_polars()
    with pytest.raises(ValueError, match="a table needs a name"):
        client.upload(samples)
    assert [file.name for file in client.files() if file.source == "upload"][-1] == "counts.parquet"


def test_what_is_not_there_is_not_found(one_client: Client, one_server: Server) -> None:
    with pytest.raises(NotFound, match="the team has no workflow 'unknown'"):
        one_client.run("unknown")
    for look in (one_client.get_run, one_client.get_sweep):
        with pytest.raises(NotFound):
            look("unknown")
    with pytest.raises(NotFound, match="none of your teams"):
        Client(one_server.url, one_server.sign_up()["token"], team="unknown").me()


def test_the_async_client_starts_several(one_server: Server) -> None:
    async def main() -> None:
        async with AsyncClient(one_server.url, one_server.sign_up()["token"], progress=False) as client:
            sweep = await client.sweep(scored(), {"n": [1, 2]})
            assert list((await (await sweep.wait(timeout=120)).to_pandas(["score"])).score) == [10, 20]
            runs = await (await client.workflow("scored")).map([{"n": 3}, {"n": 1}])
            with pytest.raises(MillraceError, match=r"await run\.refresh"):
                runs[0].info  # noqa: B018
            with pytest.raises(AsyncRunNotCompleted) as caught:
                await runs.wait(timeout=120)
            assert await caught.value.run.logs() == "n is 3\n" and caught.value.run.info.parameters is not None
            assert await (await runs[1].outputs)["score"].read_text() == "10\n"

    asyncio.run(main())
