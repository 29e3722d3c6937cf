"""The lab as one ASGI application, and its server. Carries requests and answers; decides nothing about the service."""

from prefect_assay.lab.web.server import create_app, run

__all__ = ["create_app", "run"]
