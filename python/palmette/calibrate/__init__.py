"""`palmette calibrate`: LogP-like cost parameters of each level of the machine tree, from few experiments on a job."""
