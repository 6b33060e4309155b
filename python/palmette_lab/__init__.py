"""The laboratory of palmette: clusters that are emulated or simulated, and measurements of MPIs on them.

It is built on the package palmette, which never imports it. `from palmette_lab.lab import Lab` is its interface.
"""
