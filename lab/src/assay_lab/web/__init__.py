"""The lab as one ASGI application, and its server. Carries requests and answers; decides nothing about the service."""

from assay_lab.web.server import create_app, run_server

__all__ = ["create_app", "run_server"]
