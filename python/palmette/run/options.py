"""The options of each launcher that take values, so that the program can be found on the command line.

From `mpiexec -help` of MPICH 5.0.2 and Intel MPI 2021.18, prterun's table of options (PRRTE 3) with what Open MPI 4 and
5 add, and the manuals of srun (Slurm 25.05), flux-run (flux-core), aprun (ALPS) and PALS's mpiexec. What isn't listed,
or differs in the help of the launcher at hand, that launcher is asked (`LauncherOptions`). `--dvm`, `--display-topo`
and `--output-proctable`, which take a value in some versions of Open MPI only, are left out on purpose.
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

_FLUX = """
    n ntasks N nodes c cores-per-task g gpus-per-task cores tasks-per-node gpus-per-node tasks-per-core cores-per-node
    t time-limit o setopt S setattr env env-remove env-file rlimit input output error urgency job-name q queue B bank
    begin-time taskmap signal cwd dependency requires conf flags add-file cc bcc log wait-event
"""

_APRUN = """
    a cc cp d D e E F j L m n N p P r R S sl sn t z md mpmd-env access-mode architecture cpu-binding cpu-binding-file
    cpus-per-cu cpus-per-pe-list debug depth environment-override memory-per-pe node-list pes pes-per-node
    pes-per-numa-node pipes protection-domain specialized-cores numa-nodes-per-node numa-node-list pe-dec
    exclude-node-list
"""

_PALS = """
    n np ppn d depth cpu-bind mem-bind gpu-bind env envlist genv hosts host hostlist hostfile exclude-hosts wdir umask
    pmi rankfile stdin stdout stderr rlimits network include-tasks timeout N nodes cpus-per-rank
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
    "flux": dict.fromkeys(_FLUX.split(), 1),
    "aprun": dict.fromkeys(_APRUN.split(), 1),
    "pals": dict.fromkeys(_PALS.split(), 1),
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

_FLUX_FLAGS = """
    l label-io u unbuffered x exclusive v verbose dry-run debug debug-emulate quiet watch progress jps wait help h
    log-stderr
"""

_APRUN_FLAGS = """
    b B C h q ss T V bypass-app-transfer batch-args reconnect help quiet silent strict-memory-containment sync-output
    version
"""

_PALS_FLAGS = """
    envall envnone genvall genvnone l label line-buffer no-transfer transfer no-vni single-node-vni no-abort-on-failure
    abort-on-failure v verbose V version h help
"""

FLAGS: dict[LauncherKind, frozenset[str]] = {
    "hydra": frozenset(_HYDRA_FLAGS.split()),
    "intel_hydra": frozenset((_HYDRA_FLAGS + _INTEL_FLAGS).split()),
    "prrte": frozenset(_PRRTE_FLAGS.split()),
    "srun": frozenset(_SRUN_FLAGS.split()),
    "flux": frozenset(_FLUX_FLAGS.split()),
    "aprun": frozenset(_APRUN_FLAGS.split()),
    "pals": frozenset(_PALS_FLAGS.split()),
}
"""Per launcher: options without a value, or with one only behind `=`."""

FILES: dict[LauncherKind, tuple[str, ...]] = {
    "hydra": ("configfile",),
    "intel_hydra": ("configfile",),
    "prrte": ("app",),
    "srun": (),
    "flux": (),
    "aprun": (),
    "pals": (),
}
"""Options that name a file with the programs in it."""

DIRECTORIES = ("wdir", "wd", "chdir", "D", "cwd")
"""Options that name the directory of the ranks; aprun's -D is another one."""

BY_PART: tuple[LauncherKind, ...] = ("prrte", "flux", "aprun", "pals")
"""Launchers whose options on variables belong to one part of the command line."""
