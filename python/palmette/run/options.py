"""The options of each launcher that take values, so that the program can be found on the command line.

From `mpiexec -help` of MPICH 5.0.2 and Intel MPI 2021.18, prterun's table of options (PRRTE 3) with what Open MPI 4 and
5 add, and the manual of srun (Slurm 25.05). What isn't listed, or differs in the help of the launcher at hand, that
launcher is asked (`LauncherOptions`). `--dvm`, `--display-topo` and `--output-proctable`, which take a value in some
versions of Open MPI only, are left out on purpose.
"""

from __future__ import annotations

from palmette.mpi.launch.identify import LauncherKind

_HYDRA = """
    env envlist genvlist f hosts rankmap wdir configfile n np launcher launcher-exec rmk topolib bind-to map-by
    membind demux errfile-pattern gpus-per-proc iface localhost nameserver order-nodes outfile-pattern ppn
    prepend-pattern usize memory-alloc-kinds hostfile machinefile machine host path umask bootstrap bootstrap-exec
    bootstrap-exec-args ranks-per-proc perhost grr rr-nodes pmi-aggregate-size genvexcl
"""

_INTEL = """
    gtool gtoolfile hosts-group s tune cpu-bind tmpdir branch-count hostos nodelist
    rdma-provider rank-map
"""

_PRRTE = """
    n np N c H host hostfile machinefile default-hostfile npernode npersocket N map-by rank-by bind-to rankfile
    display output output-filename output-directory x app wdir wd path prefix timeout stream-buffering stdin tune am
    amca personality max-restarts launch-agent dvm-uri runtime-options pset cpu-set cpu-list cpus-per-proc
    cpus-per-rank ppr gpu-support memory-alloc-kinds xterm forward-signals keepalive report-pid
    report-uri rtos preload-files spawn-timeout singleton parent-uri namespace with-ft initial-errhandler
    num-connect-retries wait-to-connect max-vm-size add-host add-hostfile set-env unset-env arch file tmpdir
    ompi-server slot-list server-wait-time pid mapby rankby bindto app-pmix-prefix pmix-prefix
    cf cartofile debugger hnp report-events rf xml-file
"""

_SRUN_LETTERS = "ABCDGJLMNPRSTUWabcdegimnopqrtwx"
_SRUN = """
    accel-bind account acctg-freq array bb bbf bcast-exclude begin chdir cluster-constraint clusters comment
    compress-level constraint container container-id context cores-per-socket core-spec cpu-bind cpu-freq
    cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution epilog error exclude export
    extra extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags
    het-group hint immediate-time input jobid job-name licenses mail-type mail-user mcs-label mem mem-bind
    mem-per-cpu mem-per-gpu mincpus mpi network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu
    ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output partition power prefer priority profile
    prolog qos relative reservation segment signal sockets-per-node slurmd-debug stepmgr-wait
    switches task-epilog task-prolog thread-spec threads threads-per-core time time-min tmp tree-width tres-bind
    tres-per-job tres-per-task uid gid wait wckey
"""

VALUES: dict[LauncherKind, dict[str, int]] = {
    "hydra": {**dict.fromkeys(_HYDRA.split(), 1), "env": 2, "genv": 2},
    "intel_hydra": {**dict.fromkeys((_HYDRA + _INTEL).split(), 1), "env": 2, "genv": 2},
    "prrte": {
        **dict.fromkeys(_PRRTE.split(), 1),
        **dict.fromkeys(("mca", "omca", "prtemca", "pmixmca", "gmca", "gomca", "gpmixmca", "gprtemca"), 2),
        **dict.fromkeys(("append-env", "prepend-env"), 2),
    },
    "srun": {**dict.fromkeys(_SRUN.split(), 1), **dict.fromkeys(_SRUN_LETTERS, 1)},
}
"""Per launcher: option without its dashes -> the number of words that follow it as values."""

_HYDRA_FLAGS = """
    genvnone genvall envnone envall enable-x disable-x disable-auto-cleanup disable-hostname-propagation hybrid-hosts
    info pmi-port prepend-rank print-all-exitcodes profile skip-launch-node verbose v version help
"""

_INTEL_FLAGS = """
    aps mps gdb silent-abort nolocal print-rank-map prepend-timestamp prot rr l
"""

_PRRTE_FLAGS = """
    allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous debug debug-daemons debug-daemons-file
    debug-devel disable-recovery display-allocation display-comm display-comm-finalize display-devel-allocation
    display-devel-map display-diffable-map display-map do-not-launch do-not-resolve enable-instant-on-support
    enable-recovery fwd-environment fwd-mpirun-port get-stack-traces h help hetero-nodes index-argv-by-rank
    leave-session-attached merge-stderr-to-stdout no-aggregate-help no-app-prefix no-ready-msg nolocal nooversubscribe
    noprefix novm oversubscribe parsable parseable pernode preload-binary q quiet report-bindings
    report-child-jobs-separately report-state-on-timeout s set-cwd-to-session-dir show-progress soft stop-in-app
    stop-in-init stop-on-exec tag-output timestamp-output tv use-hwthread-cpus use-regexp V v verbose version xml
"""

_SRUN_FLAGS = """
    E H I K O Q V X Z h k l s u v
    bcast compress contiguous disable-status exact exclusive help hold immediate kill-on-bad-exit label multi-prog nice
    no-allocate no-kill overcommit overlap oversubscribe preserve-env propagate pty quiet quit-on-interrupt reboot
    resv-ports send-libs spread-job unbuffered usage use-min-nodes verbose version
"""

FLAGS: dict[LauncherKind, frozenset[str]] = {
    "hydra": frozenset(_HYDRA_FLAGS.split()),
    "intel_hydra": frozenset((_HYDRA_FLAGS + _INTEL_FLAGS).split()),
    "prrte": frozenset(_PRRTE_FLAGS.split()),
    "srun": frozenset(_SRUN_FLAGS.split()),
}
"""Per launcher: options without a value, or with one only behind `=`."""

FILES: dict[LauncherKind, tuple[str, ...]] = {
    "hydra": ("configfile",),
    "intel_hydra": ("configfile",),
    "prrte": ("app",),
    "srun": (),
}
"""Options that name a file with the programs in it."""

DIRECTORIES = ("wdir", "wd", "chdir", "D")
"""Options that name the directory of the ranks."""
