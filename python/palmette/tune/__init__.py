"""Autotuning: finds the fastest algorithms here by predicting many candidates and measuring a few in one job.

`candidates` enumerates the search space, `forecast` predicts it, `job` measures, `decide` judges, `rows` writes the
decision table, `store` keeps the samples, and `session` runs these steps within a budget.
"""
