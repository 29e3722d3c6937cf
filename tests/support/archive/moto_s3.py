"""A quick S3 stand-in in this process, and the same one made to overwrite, as some real servers do."""

from collections.abc import Iterator
from contextlib import contextmanager

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from support.archive.swift_server import s3_client
from support.services.serving import serving


@contextmanager
def moto_server(*, overwrites: bool = False) -> Iterator[str]:
    """Serve S3 on loopback; yields the address. With `overwrites` conditional headers are ignored."""
    app = DomainDispatcherApplication(create_backend_app)

    def serve(environ, start_response):
        if overwrites:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        return app(environ, start_response)

    server = make_server("127.0.0.1", 0, serve, threaded=True)
    with serving(server) as address:
        yield address


@contextmanager
def bucket_address(bucket: str) -> Iterator[tuple[str, str]]:
    """A server with one empty bucket; yields its address and the bucket."""
    with moto_server() as endpoint:
        s3_client(endpoint).create_bucket(Bucket=bucket)
        yield endpoint, bucket
