"""Output of flow-level simulations of plans: time, link utilisation, a heat map of bytes over time."""
