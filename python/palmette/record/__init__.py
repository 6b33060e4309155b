"""What `palmette run --profile` and `--trace` record: reading it, and who waits for whom."""
