"""Handlers of tokens, partners, organizations, identity and the OAuth sign-in."""
