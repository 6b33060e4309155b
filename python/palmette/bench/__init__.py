"""`palmette bench`: paired measurements of collectives under the MPI alone and with palmette, interleaved in one job.

`settings` holds what to measure, `jobs` the order of jobs, `runner` executes them, `evaluate` reduces samples to rows,
`store` keeps them in SQLite. docs/method/measuring.md explains the method and the rules.
"""

from __future__ import annotations
