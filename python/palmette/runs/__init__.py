"""An archive of runs: what recordings say, in one file of tables, and what many of them say together."""
