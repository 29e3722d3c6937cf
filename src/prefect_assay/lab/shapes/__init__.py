"""Shapes of the answers, for `openapi.json` and for the tests that hold the answers to it. Nothing is read with them."""
