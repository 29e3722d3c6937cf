"""The whole lab as one ASGI application, and its server: API, control surface, portal, sign-in and tools.

The only room that knows Starlette and FastAPI routing; it decides nothing about the service.
"""
