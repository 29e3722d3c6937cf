"""The tool endpoint `/mcp`."""
