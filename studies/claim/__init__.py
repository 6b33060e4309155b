"""The claims of studies/claims.py, one module for each group of them."""
