"""A small S3 server for benchmarks: `python bench/s3_sink.py FOLDER [--latency SECONDS]` prints its port and serves.

Threads on loopback, objects and parts as files. It knows what an upload needs (put, head, parts, conditions) and checks
neither signatures nor checksums: a server that costs little shows the cost of the client. `--latency` delays each answer.
"""

import argparse
import itertools
import re
import shutil
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

BUFFER_BYTES = 1 << 20


class Sink(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, folder, latency):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.latency = folder, latency
        self.lock, self.uploads = threading.Lock(), itertools.count(1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    rbufsize = 0
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.rfile = self.connection.makefile("rb", 1 << 16)

    def handle_expect_100(self):
        accepted = super().handle_expect_100()
        self.wfile.flush()  # the client waits a second for it
        return accepted

    def do_HEAD(self):
        path, _ = self._asked()
        if path.is_file():
            self._answer(200, length=path.stat().st_size)
        else:
            self._answer(404)

    def do_PUT(self):
        path, query = self._asked()
        if path.parent == self.server.folder:  # a bucket
            path.mkdir(exist_ok=True)
            self._answer(200)
            return
        number = query.get("partNumber")
        target = (
            self._part(query["uploadId"], number)
            if number
            else path.with_name(f"{path.name}.{time.time_ns()}")
        )
        self._receive(target)
        if number is None and not self._keep(target, path):
            return
        self._answer(200, headers={"ETag": f'"{number or 1}"'})

    def do_POST(self):
        path, query = self._asked()
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if "uploads" in query:
            upload = str(next(self.server.uploads))
            (self.server.folder / ".uploads" / upload).mkdir(parents=True)
            root, inner = "InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>"
        else:
            # The parts stay where they are, under one name: a server that stores parts does not copy them.
            parts = self.server.folder / ".uploads" / query["uploadId"]
            named = len(re.findall(rb"<PartNumber>", body))
            if named != len(list(parts.iterdir())):
                self._answer(400)
                return
            if not self._keep(parts, path):
                return
            root, inner = "CompleteMultipartUploadResult", '<ETag>"whole"</ETag>'
        self._answer(200, f"<{root}>{inner}</{root}>".encode())

    def do_DELETE(self):
        path, query = self._asked()
        if "uploadId" in query:
            shutil.rmtree(self.server.folder / ".uploads" / query["uploadId"], ignore_errors=True)
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        self._answer(204)

    def _asked(self):
        address = urlsplit(self.path)
        path = self.server.folder / address.path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        query = parse_qs(address.query, keep_blank_values=True)
        return path, {name: values[0] for name, values in query.items()}

    def _part(self, upload, number):
        return self.server.folder / ".uploads" / upload / number

    def _keep(self, made, path):
        """Give the object its name, unless it is taken and the request has the condition."""
        with self.server.lock:
            if self.headers["If-None-Match"] == "*" and path.exists():
                self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return False
            made.replace(path)
        return True

    def _receive(self, target):
        left = int(self.headers["Content-Length"])
        buffer = memoryview(bytearray(min(BUFFER_BYTES, max(left, 1))))
        with target.open("wb", buffering=0) as file:
            while left:
                count = self.rfile.readinto1(buffer[:left])
                if not count:
                    raise ConnectionError("the client went away")
                file.write(buffer[:count])
                left -= count

    def _answer(self, status, body=b"", *, length=None, headers=None):
        time.sleep(self.server.latency)
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_):
        pass


def main():
    options = argparse.ArgumentParser()
    options.add_argument("folder", type=Path)
    options.add_argument("--latency", type=float, default=0.0)
    chosen = options.parse_args()
    server = Sink(chosen.folder, chosen.latency)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
