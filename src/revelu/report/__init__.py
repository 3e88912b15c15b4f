"""Accounts as pages: one JSON-able model, and what draws it."""
