"""Discovery: how a cluster is wired, from files and tools, into topology.json.

one reader per source (ibnetdiscover, slurm, slurm_env, hwloc, synthetic)  ->  Found
fabric.clean -> tiers -> leaf_groups -> tree: from an InfiniBand fabric to the tree of the machine
merge: several Found into one Topology;  report: the one-screen summary
"""
