"""Tuning: which algorithm is fastest here, found by predicting many and measuring a few in one job.

`candidates` lists what there is to try, `forecast` predicts it, `job` measures, `decide` judges, `rows` writes the
decision table, `store` keeps the samples, and `session` does one after the other within a budget.
"""
