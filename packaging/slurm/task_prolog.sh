#!/bin/sh
# Slurm's TaskProlog of palmette: puts the preload libraries under every task, so that MPI programs are served without
# `palmette run`. Copy it to /etc/palmette/slurm_task_prolog.sh on the nodes, and name it in slurm.conf:
#   TaskProlog=/etc/palmette/slurm_task_prolog.sh
# Slurm runs it as the user, before each task, and takes `export NAME=VALUE` from what it prints. A user opts out with
# PALMETTE_ENABLE=0 in the environment: docs/guide/site.md.

# Where palmette is installed: the folder of `make install PREFIX=...`.
prefix=/opt/palmette/0.1.0
# 1: batch scripts, too, and what they start: mpiexec. 0: only what srun starts.
batch=1

[ "$PALMETTE_ENABLE" = 0 ] && exit 0
# `palmette run srun ...`, or a module, has done it.
case "$LD_PRELOAD" in *libpalmette_*) exit 0 ;; esac
[ "$batch" = 1 ] || [ -n "$SLURM_STEP_ID" ] || exit 0

# One for each MPI ABI: those that don't fit the program's MPI do nothing.
preload=$LD_PRELOAD
for abi in mpich ompi abi; do
    library=$prefix/lib/libpalmette_$abi.so
    [ -r "$library" ] && preload=${preload:+$preload:}$library
done
[ "$preload" = "$LD_PRELOAD" ] || echo "export LD_PRELOAD=$preload"
exit 0
