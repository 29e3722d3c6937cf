"""A quick S3 stand-in in this process, and the same one made to overwrite or to look first, as some real servers do."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from threading import Lock

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from support.archive.swift_server import s3_client
from support.services.serving import serving


@contextmanager
def moto_server(*, overwrites: bool = False, looks_first: bool = False) -> Iterator[str]:
    """Serve S3 on loopback; yields the address.

    With `overwrites` conditional headers are ignored. With `looks_first` they are honoured by a look before the write, as
    some servers do: two writers at once may both be told that they were first. Moto itself looks first as well, so without
    either conditional writes are served one after the other.
    """
    app = DomainDispatcherApplication(create_backend_app)
    present = set()
    one_writer = Lock()

    def serve(environ, start_response):
        condition = environ.get("HTTP_IF_NONE_MATCH")
        if overwrites or looks_first:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        path = environ["PATH_INFO"]
        if looks_first and condition and path in present:
            start_response("412 Precondition Failed", [("Content-Type", "application/xml")])
            return [b"<Error><Code>PreconditionFailed</Code></Error>"]
        with one_writer if "HTTP_IF_NONE_MATCH" in environ else nullcontext():
            answer = app(environ, start_response)
        if environ["REQUEST_METHOD"] == "PUT":
            present.add(path)
        return answer

    server = make_server("127.0.0.1", 0, serve, threaded=True)
    with serving(server) as address:
        yield address


@contextmanager
def bucket_address(bucket: str) -> Iterator[tuple[str, str]]:
    """A server with one empty bucket; yields its address and the bucket."""
    with moto_server() as endpoint:
        s3_client(endpoint).create_bucket(Bucket=bucket)
        yield endpoint, bucket
