"""Webhook configuration, the outbox, and signed delivery."""
