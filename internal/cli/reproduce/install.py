"""Installs the conda packages of environment.lock, which run.sh has fetched, into the folder environment."""

import asyncio
import os
import sys
from pathlib import Path

from rattler import RepoDataRecord, install

here = Path(__file__).resolve().parent


async def main():
    lines = (here / "environment.lock").read_text().splitlines()
    names = [line.split()[0] for line in lines if line and not line.startswith("#")]
    records = [await RepoDataRecord.from_package_archive(here / "packages" / name) for name in names]
    # As on the server, what packages want to have run when they are installed is not run.
    await install(records, str(here / "environment"), cache_dir=here / "packages" / "unpacked", execute_link_scripts=False, show_progress=False)


status = 0
try:
    asyncio.run(main())
except Exception as problem:
    status = 1
    print(f"error: {problem}", file=sys.stderr)
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)  # threads of the installer may still run, and crash an interpreter that ends in order
