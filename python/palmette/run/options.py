"""The options of each launcher that take a value of their own, so that the program's place can be told.

From `mpiexec -help` of MPICH 5.0.2 and Intel MPI 2021.18, prterun's table of options (PRRTE 3) with what Open MPI 4 and
5 add, and the manual of srun (Slurm 25.05). Options that aren't listed take no value, or one behind `=`.
"""

from __future__ import annotations

from palmette.launch.identify import LauncherKind

_HYDRA = """
    env envlist genvlist f hosts rankmap wdir configfile n np launcher launcher-exec rmk topolib bind-to map-by
    membind demux errfile-pattern gpus-per-proc iface localhost nameserver order-nodes outfile-pattern ppn
    prepend-pattern usize memory-alloc-kinds hostfile machinefile machine host h path umask bootstrap bootstrap-exec
    bootstrap-exec-args ranks-per-proc perhost grr rr-nodes pmi-aggregate-size genvexcl
"""

_INTEL = """
    gtool gtoolfile hosts-group s tune cpu-bind tmpdir branch-count trace-pt2pt hostos nodelist
    rdma-provider rank-map
"""

_PRRTE = """
    n np N c H host hostfile machinefile default-hostfile npernode npersocket N map-by rank-by bind-to rankfile
    display output output-filename output-directory x app wdir wd path prefix timeout stream-buffering stdin tune am
    personality max-restarts launch-agent dvm dvm-uri runtime-options pset cpu-set cpu-list cpus-per-proc
    cpus-per-rank ppr gpu-support memory-alloc-kinds xterm forward-signals fwd-environment keepalive report-pid
    report-uri rtos preload-files spawn-timeout report-state-on-timeout-file singleton parent-uri namespace
    num-connect-retries wait-to-connect max-vm-size add-host add-hostfile append-env prepend-env unset-env
    output-proctable ompi-server add-hostfile slot-list nodes server-wait-time pid
"""

_SRUN_LETTERS = "ABCDGJLMNPRSTUWacdegimnopqrtwx"
_SRUN = """
    accel-bind account acctg-freq array bb bbf bcast-exclude begin chdir cluster-constraint clusters comment
    compress-level constraint container container-id context cores-per-socket core-spec cpu-bind cpu-freq
    cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution epilog error exclude export
    extra extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags
    het-group hint immediate-time input jobid job-name licenses mail-type mail-user mcs-label mem mem-bind
    mem-per-cpu mem-per-gpu mincpus mpi network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu
    ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output partition power prefer priority profile
    prolog qos relative reservation resv-ports segment signal sockets-per-node slurmd-debug stepmgr-wait
    switches task-epilog task-prolog thread-spec threads threads-per-core time time-min tmp tree-width tres-bind
    tres-per-job tres-per-task uid gid wait wckey
"""

VALUES: dict[LauncherKind, dict[str, int]] = {
    "hydra": {**dict.fromkeys(_HYDRA.split(), 1), "env": 2, "genv": 2},
    "intel_hydra": {**dict.fromkeys((_HYDRA + _INTEL).split(), 1), "env": 2, "genv": 2},
    "prrte": {
        **dict.fromkeys(_PRRTE.split(), 1),
        **dict.fromkeys(("mca", "omca", "prtemca", "pmixmca", "gmca", "gomca", "gpmixmca", "gprtemca"), 2),
    },
    "srun": {**dict.fromkeys(_SRUN.split(), 1), **dict.fromkeys(_SRUN_LETTERS, 1)},
}
"""Per launcher: option without its dashes -> the number of words that follow it as values."""

FILES: dict[LauncherKind, tuple[str, ...]] = {
    "hydra": ("configfile",),
    "intel_hydra": ("configfile",),
    "prrte": ("app",),
    "srun": (),
}
"""Options that name a file with the programs in it."""

DIRECTORIES = ("wdir", "wd", "chdir", "D")
"""Options that name the directory of the ranks."""
