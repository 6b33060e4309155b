"""Which rank should take which place: orders for a pattern of messages, and what they make the links carry."""
