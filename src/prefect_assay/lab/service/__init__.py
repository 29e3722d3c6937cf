"""One running lab: its parts wired together, and the API over ASGI."""
