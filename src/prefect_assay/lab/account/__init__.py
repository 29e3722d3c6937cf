"""Handlers of identity, tokens, health and feedback; organisations and their users; the OAuth sign-in of tool clients.

Knows neither experiments nor money.
"""
