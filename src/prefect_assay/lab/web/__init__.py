"""The whole lab as one ASGI application, and its server."""
