"""Identity, tokens, health, feedback, organisations, and the OAuth sign-in. Knows neither experiments nor money."""
