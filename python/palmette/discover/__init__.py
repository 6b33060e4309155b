"""`palmette discover`: topology discovery from files, tools and measurements into topology.json.

one reader per source (ibnetdiscover, slurm, slurm_env, hwloc, synthetic)  ->  Found
clean -> tiers -> leaf_groups -> tree: from an InfiniBand fabric to the machine tree
merge: several Found into one Topology;  report: the one-screen summary
"""
