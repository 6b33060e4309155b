"""Explaining choices: which row of the table decides and why not another, what the runners-up would cost, and what
was measured.

`decision` asks the table, `costs` the model, `measured` the stores of `palmette tune`, `text` says it, and `report`
explains the rows of a run's report.
"""
