"""Identity, tokens, health, feedback, organizations, and the OAuth sign-in. Knows neither experiments nor money."""
