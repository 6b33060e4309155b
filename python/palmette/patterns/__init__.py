"""`palmette bench pattern`: bandwidth of patterns of messages between groups of ranks.

The groups, widths and directions are those of Hidayetoglu, Garcia de Gonzalo, Slaughter, Surana, Hwu, Gropp, Aiken,
"CommBench: Micro-benchmarking hierarchical networks with multi-GPU, multi-NIC nodes", ICS 2024.
"""
