"""`palmette export`: palmette's choices as tuning files of other MPI libraries, for runs without palmette.

`decisions` evaluates the decision table for each function and size on one job. A `match` per library maps an algorithm
to the library's nearest one, or gives the reason why there is none; a writer per file format writes the rules. A
library's own default is kept wherever nothing is near.
"""
