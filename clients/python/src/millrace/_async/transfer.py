"""Moves files to and from signed addresses: whole, and checked by their hashes. The address is the permission: no token
is ever sent along, whoever it points to."""

from __future__ import annotations

import mimetypes
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from .. import _calls as calls
from .. import _retry as retry
from .. import models
from .._folders import FetchingFiles, make_rest, missing_files, read_manifest
from .._inputs import DataFrame, write_frame
from .._local import Content, Fetching, entries_of, is_there, safe_name, target_of
from .._waiting import async_blocking, async_each, async_finally, async_sleep
from ..errors import APIError, ConnectionLost, ServerError, TransferFailed
from .transport import AsyncTransport, refusal

LARGE_FROM = 64 << 20
AT_ONCE = 4  # parts, or files, on their way
PIECE = 1 << 20


class AsyncTransfer:
    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport
        self.http = transport.http

    async def upload(self, path: Path, name: str, content_type: str | None, large_from: int) -> models.File:
        kind = content_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
        content = await async_blocking(Content, path)
        if content.size >= large_from:
            return await self._upload_parts(content, {"filename": name, "contentType": kind}, {})
        attempt = 0
        while True:
            attempt += 1
            to = await self.transport.call(
                calls.presign(models.Presign(filename=name, content_type=kind, size=content.size))
            )
            try:
                await self._put(to.url, content, 0, content.size, {"Content-Type": kind})
                break
            except (httpx.HTTPError, APIError) as error:
                await self._pause(error, path, attempt)
        return await self._check(path, to.key, await async_blocking(content.sha256))

    async def upload_folder(self, folder: Path) -> models.File:
        """Uploads a folder as one piece, with all that is in it."""
        entries, files = await async_blocking(entries_of, folder)
        whole = await async_blocking(folder.resolve)
        what = {"filename": whole.name, "contentType": "inode/directory"}
        return await self._upload_parts(await async_blocking(Content, folder, files), what, {"entries": entries})

    async def upload_frame(self, frame: DataFrame, name: str, large_from: int) -> models.File:
        """Uploads a table as its name says: as CSV or Parquet."""
        with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
            path = Path(folder) / safe_name(name)
            await async_blocking(write_frame, frame, path)
            return await self.upload(path, name, None, large_from)

    async def _check(self, path: Path, key: str, sha256: str) -> models.File:
        attempt, waited = 0, 0.0
        while (file := await self._listed(key)) is None:
            if waited >= retry.SETTLING:
                raise TransferFailed(f"{path} did not arrive: upload it again")
            attempt += 1
            pause = retry.backoff(attempt)
            waited += pause
            await async_sleep(pause)
        if file.sha256 is not None and file.sha256 != sha256:
            raise TransferFailed(f"{path} arrived damaged, or was changed while it was sent: upload it again")
        return file

    async def _listed(self, key: str) -> models.File | None:
        async for file in self.transport.pages(calls.files(key)):
            return file
        return None

    async def _upload_parts(self, content: Content, what: dict[str, Any], more: dict[str, Any]) -> models.File:
        size = content.size
        upload = await self.transport.call(calls.begin_upload({**what, "size": size, **more}))

        async def send(number: int) -> None:
            offset = (number - 1) * upload.part_size
            await self._send_part(upload.upload_id, number, content, offset, min(upload.part_size, size - offset))

        try:
            await async_each(AT_ONCE, send, range(1, upload.part_count + 1))
            return await self._complete(upload.upload_id, {"sha256": await async_blocking(content.sha256), **more})
        except BaseException:  # nobody goes on with it, and a team may have few open uploads
            await async_finally(self.transport.attempt, calls.abort_upload(upload.upload_id))
            raise

    async def _send_part(self, id: str, number: int, content: Content, offset: int, size: int) -> None:
        # With its MD5 a store refuses a part that breaks off.
        md5 = await async_blocking(content.md5, offset, size)
        attempt = 0
        while True:
            attempt += 1
            try:
                signed = await self.transport.call(calls.sign_parts(id, [number]))
            except (ConnectionLost, ServerError):
                if attempt >= retry.ATTEMPTS:
                    raise
                await async_sleep(retry.backoff(attempt))
                continue
            try:
                await self._put(signed[0].url, content, offset, size, {"Content-MD5": md5})
                return
            except (httpx.HTTPError, APIError) as error:
                await self._pause(error, content.path, attempt)

    async def _complete(self, id: str, body: dict[str, Any]) -> models.File:
        """Asks until there is an answer: hashing takes its time, and who asks again gets the same one."""
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self.transport.call(calls.complete_upload(id, body))
            except (APIError, ConnectionLost) as error:
                refused = isinstance(error, APIError) and error.status < 500 and error.code != "upload_busy"
                if refused or attempt >= 2 * retry.ATTEMPTS:
                    raise
            await async_sleep(retry.backoff(attempt))

    async def _put(self, url: str, content: Content, offset: int, size: int, headers: dict[str, str]) -> None:
        body = self._pieces(content, offset, size) if size else b""
        response = await self.http.put(url, content=body, headers={**headers, "Content-Length": str(size)})
        if not response.is_success:
            raise refusal(response)

    async def _pieces(self, content: Content, offset: int, size: int) -> AsyncIterator[bytes]:
        pieces = content.pieces(offset, size)
        while piece := await async_blocking(lambda: next(pieces, b"")):
            size -= len(piece)
            yield piece
        if size > 0:
            raise TransferFailed(f"{content.path} became shorter while it was sent: upload it again")

    async def _pause(self, error: Exception, path: Path, attempt: int) -> None:
        """Waits before the next attempt, or says why there is none. The address is a secret, and not said."""
        passing = not isinstance(error, APIError) or error.status >= 500 or error.status in (403, 409, 429)
        if not passing or attempt >= retry.ATTEMPTS:
            why = str(error) if isinstance(error, APIError) else type(error).__name__
            raise TransferFailed(f"{path} could not be sent: {why}") from None
        await async_sleep(retry.backoff(attempt))

    async def download(self, file: models.File | models.Output, to: str | os.PathLike[str], overwrite: bool) -> Path:
        target = await async_blocking(target_of, to, file.name)
        if file.directory is not None:
            await self._download_folder(file, target, overwrite)
        elif not await async_blocking(is_there, target, file.sha256, overwrite):
            await self._download_file(file, target)
        return target

    async def _download_file(self, file: models.File | models.Output, target: Path) -> None:
        with Fetching(target, file.size, file.sha256) as part:
            await self._receive(part, file)
            await async_blocking(part.sync)
            await async_blocking(part.keep)

    async def _download_folder(self, file: models.File | models.Output, target: Path, overwrite: bool) -> None:
        with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
            manifest = Path(folder) / "manifest.json"
            await self._download_file(file, manifest)
            entries = await async_blocking(read_manifest, manifest)
        for part in await async_blocking(missing_files, target, entries, overwrite):
            with part:
                file = await self._receive(part, file)
        await async_blocking(make_rest, target, entries)

    async def _receive(
        self, part: Fetching | FetchingFiles, file: models.File | models.Output
    ) -> models.File | models.Output:
        """Fetches what is missing, and gives the file with its last address: one works for a quarter of an hour."""
        attempt = 0
        while not part.whole:
            attempt, have = attempt + 1, part.have
            try:
                await self._fetch(part.address(file), part)
            except (httpx.HTTPError, APIError) as error:
                attempt = 1 if part.have > have else attempt
                fresh: models.File | models.Output | None = file
                if isinstance(error, APIError) and error.status < 500:
                    listed = await self._listed(file.key)
                    fresh = listed if listed and part.address(listed) != part.address(file) else None
                if fresh is None or attempt >= retry.ATTEMPTS:
                    why = str(error) if isinstance(error, APIError) else type(error).__name__
                    raise TransferFailed(f"{file.name} could not be fetched: {why}") from None
                file = fresh
                await async_sleep(retry.backoff(attempt))
        return file

    async def _fetch(self, url: str, part: Fetching | FetchingFiles) -> None:
        """Asks for what is missing."""
        headers = {"Accept-Encoding": "identity"}
        if part.range:
            headers["Range"] = part.range
        async with self.http.stream("GET", url, headers=headers) as response:
            if not response.is_success:
                await response.aread()
                raise refusal(response)
            if response.status_code != 206:
                await async_blocking(part.restart)
            async for piece in response.aiter_bytes(PIECE):
                await async_blocking(part.add, piece)
        if not part.whole:
            raise httpx.RemoteProtocolError("the answer ended early")
