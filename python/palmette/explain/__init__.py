"""`palmette explain`: the provenance of an algorithm choice: deciding table row, predicted costs, measured times.

`decision` evaluates the decision table, `costs` the model, `measured` reads the stores of `palmette tune`, `text`
formats the output, and `report` explains the rows of a run's report.
"""
