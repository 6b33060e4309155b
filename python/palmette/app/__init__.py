"""Whole programs with and without palmette: `palmette bench app`."""
