"""A server of ranges on loopback, which counts bytes and misbehaves when asked to."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Content:
    """A file: its size, its bytes of a range, its ETag."""

    def __init__(
        self, data: bytes | None = None, size: int = 0, read: Callable[[int, int], bytes] = bytes
    ) -> None:
        self.size = size if data is None else len(data)
        self.read = read if data is None else (lambda begin, end: data[begin:end])
        self.etag = '"first"'


class Server(ThreadingHTTPServer):
    """Files by path; ``faults`` are used up one an answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, Content] = {}
        self.sent: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        #: drop, short, long, other (another range), refuse, change, whole (no ranges).
        self.faults: list[str] = []
        self.ranges = True

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may go away."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET(head=True)

    def do_GET(self, head: bool = False) -> None:
        path = self.path.partition("?")[0]
        self.server.asked[path] += 1
        content = self.server.files.get(path)
        if content is None:
            self.answer(404, b"", {})
            return
        # The documents are small: faults are for the weights.
        faulty = self.server.faults and path.endswith(".bin")
        fault = self.server.faults.pop(0) if faulty else ""
        if fault == "refuse":
            self.answer(503, b"", {})
            return
        if fault == "change":
            content.etag = '"second"'
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        headers = {"ETag": content.etag}
        if found is None or not self.server.ranges or fault == "whole":
            data = b"" if head or content.size > 1 << 28 else content.read(0, content.size)
            self.answer(200, data, headers, size=content.size)
            return
        begin = int(found[1])
        end = min(int(found[2]) + 1 if found[2] else content.size, content.size)
        if begin >= content.size:
            self.answer(416, b"", headers | {"Content-Range": f"bytes */{content.size}"})
            return
        if fault == "other":
            begin, end = max(begin - 8, 0), max(end - 8, 0)
        data = b"" if head else content.read(begin, end)
        size = len(data)
        if fault == "drop":
            data = data[: len(data) // 2]
        elif fault == "short":
            data = data[: len(data) - 1]
            size, end = len(data), end - 1
        elif fault == "long":
            data += b"x"
            size = len(data)
        self.server.sent[path] += len(data)
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{content.size}"
        self.answer(206, data, headers, size=size)

    def answer(
        self, status: int, data: bytes, headers: dict[str, str], size: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        length = len(data) if size is None else size
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(data)
        if length != len(data):
            self.close_connection = True


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
