/* Compositions from C and C++: communication made of multicasts, reductions and fences, factored over the machine; and
 * communicators that follow the machine (palmette_comm_split, palmette_reorder); and regions of the program, which the
 * recorder counts (palmette_region_begin).
 *
 *     int64_t count = 1000;
 *     palmette_composition *sum;
 *     palmette_composition_named("allreduce", 24, 0, &count, 1, MPI_DOUBLE, MPI_SUM, &sum);
 *     palmette_plan *plan;
 *     palmette_plan_make(sum, MPI_COMM_WORLD, "hierarchy=3:8 method=ring,direct pipeline=16", &plan);
 *     void *buffers[] = {input, output};
 *     palmette_run *run;
 *     palmette_bind(plan, buffers, 2, &run);
 *     palmette_start(run); ...; palmette_wait(run);
 *     palmette_run_free(run); palmette_plan_free(plan); palmette_composition_free(sum);
 *
 * A whole program is examples/compose/allreduce.c. `palmette compose --cflags` and `--libs` print what to compile and
 * link with; instead of linking, a program may run under palmette. palmette.hpp is the same in C++. Every function
 * returns MPI_SUCCESS or an error of MPI's classes, and never ends the program; palmette_error() says in words what
 * went wrong. One thread at a time uses a composition, plan or run. */
#ifndef PALMETTE_H
#define PALMETTE_H

#include <mpi.h>
#include <stdint.h>

/* Of this header and the library beside it; what changes with which is in docs/reference/compatibility.md. */
#define PALMETTE_VERSION_MAJOR 0
#define PALMETTE_VERSION_MINOR 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct palmette_composition palmette_composition;
typedef struct palmette_plan palmette_plan;
typedef struct palmette_run palmette_run;
typedef struct palmette_sparse palmette_sparse;
typedef struct palmette_arrivals palmette_arrivals;

/* A sentence about this thread's last error; valid until its next call. */
const char* palmette_error(void);

/* Blocks of `counts` elements of a predefined type: `length` of them, or with length 1 `blocks` alike. Local, as all of
 * palmette_composition_. */
int palmette_composition_create(int ranks, int64_t blocks, const int64_t* counts, int64_t length, MPI_Datatype type,
                                palmette_composition** out);
/* One of MPI's collectives: gather, scatter, broadcast, broadcast_scatter_allgather, reduce, reduce_scatter_gather,
 * alltoall, allgather, reduce_scatter, allreduce, allreduce_reduce_broadcast. `length` is 1, the number of ranks, or
 * for alltoall its square. `op` matters to reductions. */
int palmette_composition_named(const char* name, int ranks, int root, const int64_t* counts, int64_t length,
                               MPI_Datatype type, MPI_Op op, palmette_composition** out);
/* The number of the buffer of that name, which is made at the first call; buffers are bound in the order of their
 * numbers. */
int palmette_composition_buffer(palmette_composition* composition, const char* name, int* number);
/* Blocks first to first + count - 1 of `source` of rank `root` go to `target` of `to`; to NULL: of all ranks. */
int palmette_composition_multicast(palmette_composition* composition, int root, const int* to, int to_count, int source,
                                   int64_t first, int64_t count, int target);
/* The blocks of all `from` are combined, in the order of ranks, into `target` of rank `root`; from NULL: of all ranks.
 */
int palmette_composition_reduce(palmette_composition* composition, const int* from, int from_count, int root,
                                int source, int64_t first, int64_t count, int target, MPI_Op op);
/* Rank `rank` has these blocks in its buffer even where no primitive touches them. */
int palmette_composition_hold(palmette_composition* composition, int rank, int buffer, int64_t first, int64_t count);
/* Later primitives see the results of earlier ones, block by block. */
int palmette_composition_fence(palmette_composition* composition);
void palmette_composition_free(palmette_composition* composition);

/* Collective: all ranks pass the same composition and factoring, such as "hierarchy=3:8 method=ring,tree.2@copy
 * stripes=4 pipeline=16 landings=4"; without a hierarchy the discovered machine's levels; @copy: single copies within a
 * host; @ipc: copies between devices of a host; @nccl: by NCCL, for the device that is current in the calling thread;
 * NULL: all defaults. The composition may be freed afterwards. */
int palmette_plan_make(const palmette_composition* composition, MPI_Comm comm, const char* factoring,
                       palmette_plan** out);
/* Sums of irregular, overlapping footprints, and the way back. Collective: each rank contributes to the `count` indices
 * `touched`, in any order, and owns the indices `first` to `end` - 1; all ranges together are 0 to the number of
 * indices, in order of ranks. An index has `width` elements of `type`. Contributors are told apart for `coarsen`
 * consecutive indices at a time: with more than 1 blocks are fewer, and zeros travel for indices that a rank doesn't
 * touch; 0: the power of two that is fastest by the model of the job's machine. `factoring` as above. */
int palmette_sparse_make(const int64_t* touched, int64_t count, int64_t first, int64_t end, int width,
                         MPI_Datatype type, MPI_Op op, int64_t coarsen, MPI_Comm comm, const char* factoring,
                         palmette_sparse** out);
/* How many rows (of `width` elements) this rank has in the buffers `partial` and `mine`; how many blocks there are,
 * and how many this rank knows of; `coarsen` as given or chosen. */
int palmette_sparse_size(const palmette_sparse* sparse, int64_t* partial, int64_t* mine, int64_t* blocks,
                         int64_t* known, int64_t* coarsen);
/* The index of each row. Those of `partial` that this rank doesn't touch, which `coarsen` adds, must be zero; indices
 * that no rank touches are in no `mine`. */
int palmette_sparse_rows(const palmette_sparse* sparse, int64_t* partial, int64_t* mine);
/* The plan of the sum from `partial` to `mine`, or back, on the buffers 0 and 1: `partial` and `mine`. */
int palmette_sparse_plan(const palmette_sparse* sparse, int back, palmette_plan** out);
void palmette_sparse_free(palmette_sparse* sparse);
/* Messages to ranks that don't know who sends to them. Collective. Each rank names the `count` ranks that it has
 * something for, each once, and sends counts[i] elements of the predefined `type`, 0 to 2^31 - 1, to rank to[i]: its
 * blocks lie one after the other in `data`, in host memory. All ranks pass the same type. When it returns, everything
 * that comes to this rank is in `out`, and `data` may be reused. Wrong arguments of one rank are an error on all. */
int palmette_exchange(const int* to, const int64_t* counts, int count, const void* data, MPI_Datatype type,
                      MPI_Comm comm, palmette_arrivals** out);
/* How many ranks have sent to this one, and how many elements in all. */
int palmette_arrivals_size(const palmette_arrivals* arrivals, int* senders, int64_t* elements);
/* The senders in ascending order, how many elements each has sent, and the elements in that order. */
int palmette_arrivals_take(const palmette_arrivals* arrivals, int* from, int64_t* counts, void* data);
void palmette_arrivals_free(palmette_arrivals* arrivals);
/* Communicators that follow the machine. Collective over `comm`, an intra-communicator, of which all ranks pass the
 * same arguments, but for `key` and what only rank 0 needs; what is made belongs to the caller, who frees it by
 * MPI_Comm_free. From Fortran: palmette.f90. Where one rank's arguments are wrong all ranks get MPI_ERR_ARG, and
 * palmette_error() says what to do. The machine is that of the topology file (PALMETTE_TOPOLOGY); without one, hosts
 * and what is inside of them are known. */

/* The ranks' positions in topology order: ranks with near positions are near. `positions` has one for each rank. */
int palmette_positions(MPI_Comm comm, int* positions);
/* Splits `comm` by a level of the machine, as topology.json names it: "spine", "chassis", "leaf", "node", "socket",
 * "core". "switch" and "leaf" also mean the innermost level outside of hosts, "host" means "node", where no level has
 * that name. A level whose only group holds all ranks gives a copy of `comm`; where ranks aren't bound to cores, the
 * levels inside of a host hold all of its ranks.
 *
 *     MPI_Comm rack, leaders;
 *     palmette_comm_split(MPI_COMM_WORLD, "leaf", 0, &rack, &leaders);
 *     MPI_Reduce(&mine, &of_rack, 1, MPI_DOUBLE, MPI_SUM, 0, rack);
 *     if (leaders != MPI_COMM_NULL) MPI_Allreduce(MPI_IN_PLACE, &of_rack, 1, MPI_DOUBLE, MPI_SUM, leaders);
 *
 * `group`: this rank's group, in the order of `key`, then of ranks. `leaders`: rank 0 of each group, whose rank r leads
 * group r in topology order; MPI_COMM_NULL on other ranks; NULL where they aren't wanted, on all ranks or on none.
 * MPI_ERR_ARG: the machine has no such level (the error lists those that it has), or the level differs between ranks.
 * Cost: one or two MPI_Comm_split.
 * Under `palmette run`, MPI_Comm_split_type with MPI_COMM_TYPE_HW_GUIDED and mpi_hw_resource_type=leaf does the same
 * for levels outside of hosts and for "node". */
int palmette_comm_split(MPI_Comm comm, const char* level, int key, MPI_Comm* group, MPI_Comm* leaders);
/* The processes of `comm` in an order that suits a pattern of messages; rank 0 stays rank 0. `order`:
 *
 *     greedy              each rank the nearest to the one before that is left
 *     ring                the slowest of the edges from rank r to r + 1, the closing one too, as fast as can be found
 *     recursive_doubling  pairs at long distances in rank, whose messages are longest, first
 *     binomial_gather     a binomial tree to rank 0, its heaviest edges first
 *     binomial_bcast      a binomial tree from rank 0, its edges in the order of their use
 *
 * `distances`: at rank 0 the size of `comm` squared, row by row, from rank i to rank j, in any unit; finite, not
 * negative, the larger of both directions counts; NULL there: by the topology. Not looked at on other ranks. By
 * distances rank 0 takes time that grows with the square of ranks, for "ring" up to some seconds. MPI_ERR_ARG: an
 * unknown order, or a bad matrix.
 *
 *     double* seconds = rank == 0 ? malloc(size * size * sizeof *seconds) : NULL;
 *     palmette_distances(MPI_COMM_WORLD, 65536, seconds);
 *     palmette_reorder(MPI_COMM_WORLD, "ring", seconds, &ring);
 */
int palmette_reorder(MPI_Comm comm, const char* order, const double* distances, MPI_Comm* reordered);
/* Measures how far ranks are from each other: seconds of half a round trip of `bytes` (0 to 2^31 - 1), the median of
 * 20, for each pair of ranks. `seconds`: at rank 0 the size of `comm` squared, row by row, symmetric, with zeros on the
 * diagonal; not looked at on other ranks. As many rounds as ranks, in each of which disjoint pairs measure at once, so
 * that times include what pairs take from each other. */
int palmette_distances(MPI_Comm comm, int64_t bytes, double* seconds);

/* Regions of the program, whose calls and times `palmette run --profile` and `--trace` record, exactly and as often as
 * there are any, in one tree with MPI calls and samples. Local, before MPI_Init and after MPI_Finalize, too. A region
 * belongs to its thread; those within it end before it.
 *
 *     palmette_region_begin("solve");
 *     for (...) MPI_Allreduce(...);
 *     palmette_region_end("solve");
 *
 * `name`: at least one character; what is behind the 255th isn't told apart. MPI_ERR_ARG: no name, or an end whose
 * region hasn't begun in this thread; NULL there is the innermost one. An end that isn't the innermost's ends those
 * inside, too. Whatever was wrong, the report tells, too. One that calls itself counts as often as it begins, and its
 * time once. Cost of both, without a recorder: 2 ns; with one: docs/guide/record.md. C++: palmette::Region; Fortran:
 * palmette.f90; Python: palmette.region. */
int palmette_region_begin(const char* name);
int palmette_region_end(const char* name);

/* How many bytes this rank has in a buffer, and in the plan's own scratch. */
int palmette_plan_buffer_bytes(const palmette_plan* plan, int buffer, int64_t* bytes);
int palmette_plan_scratch_bytes(const palmette_plan* plan, int64_t* bytes);
/* How many of this rank's messages are read in the sender's memory: those of levels with @copy, of 4 KiB and more,
 * between ranks of one host; none where the system forbids it. */
int palmette_plan_single_copies(const palmette_plan* plan, int64_t* messages);
/* How many go from device to device: those of levels with @ipc, of 4 KiB and more, between ranks of a host, where both
 * ends have them there; and those of levels with @nccl, 0 where some rank has no NCCL. */
int palmette_plan_device_messages(const palmette_plan* plan, int64_t* messages);
/* Local; runs keep what they need. */
void palmette_plan_free(palmette_plan* plan);

/* Local, in the same order on all ranks, as is palmette_run_free. A rank's blocks lie in each buffer in ascending order
 * without gaps. Each may be in device memory of CUDA or HIP, whatever the others and other ranks have. MPI orders
 * nothing with a device's streams: the program's work on the buffers is done before palmette_start. */
int palmette_bind(const palmette_plan* plan, void* const* buffers, int count, palmette_run** out);
/* Starts the run. Any number may be in flight; MPI_ERR_PENDING where this one is. Runs with @nccl are started in the
 * same order on all ranks, and complete when all ranks' have. */
int palmette_start(palmette_run* run);
int palmette_test(palmette_run* run, int* done);
int palmette_wait(palmette_run* run);
/* Waits for it first. */
void palmette_run_free(palmette_run* run);

#ifdef __cplusplus
}
#endif

#endif
