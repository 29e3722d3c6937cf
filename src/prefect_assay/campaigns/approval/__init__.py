"""Where a person is asked: prices, purchases, questions, terms, and the answers to them."""
