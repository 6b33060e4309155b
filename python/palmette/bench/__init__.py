"""The benchmark: collectives under the MPI alone and with palmette, in turns in one job.

`settings` says what to measure, `places` where, `runner` does it, `statistics` and `evaluate` say what came out, `store` keeps
it. docs/guide/bench.md explains the method and the rules.
"""

from __future__ import annotations
