"""Process mapping: rank orders for a communication pattern, and the link loads that result."""
