"""Bearer tokens: form, roles, restrictions and registry, and the portal's sessions. Knows no route."""
