"""Chooses or installs conda packages, or says where channels are. It runs in the sandbox, and finds all that it reads in the folder INPUTS."""

import asyncio
import json
import os
import sys
from pathlib import Path

from rattler import Channel, ChannelConfig, MatchSpec, RepoDataRecord, SparseRepoData, VirtualPackage, install, solve_with_sparse_repodata

inputs = Path(os.environ["INPUTS"])


async def choose(order):
    lists = []
    for channel in order["channels"]:
        for folder in (order["platform"], "noarch"):
            path = inputs / f"{channel}.{folder}.json"
            lists.append(SparseRepoData(Channel(channel, ChannelConfig("file:///channels")), folder, path))
    records = await solve_with_sparse_repodata([MatchSpec(spec) for spec in order["specs"]], lists, virtual_packages=VirtualPackage.detect())
    with open("lock.txt", "w") as lock:
        for record in records:
            channel, folder, name = record.url.split("/")[-3:]
            print(f"{channel}/{folder}/{name} --hash=sha256:{record.sha256.hex()}", file=lock)
    print(f"{len(records)} packages were chosen")


async def build(order):
    records = [await RepoDataRecord.from_package_archive(inputs / name) for name in order["files"]]
    # What packages want to have run when they are installed is not run.
    await install(records, "environment", cache_dir=Path(".packages"), execute_link_scripts=False, show_progress=False, alternative_target_prefix=order["prefix"])
    print(f"{len(records)} packages were installed")


async def place(order):
    with open("channels.json", "w") as found:
        json.dump({name: Channel(name, ChannelConfig()).base_url for name in order["names"]}, found)


order = json.loads((inputs / "order.json").read_text())
status = 0
try:
    work = choose if "specs" in order else place if "names" in order else build
    asyncio.run(work(order))
except Exception as problem:
    status = 1
    print(f"error: {problem}", file=sys.stderr)
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)  # threads of the solver may still run, and crash an interpreter that ends in order
