// Tells what a program can see of its MPI: error handlers, names, attributes, tags, and what becomes of mistakes. Rank
// 0 prints it, the same with and without the preload library.
//
//     traces [--mistakes 1]

#include <mpi.h>

#include <cstdio>

#include "support/outcome.hpp"

using namespace test;

namespace {

template <class... Values>
void tell(const char* format, Values... values) {
    if (world_rank != 0) return;
    std::printf(format, values...);
    std::printf("\n");
    std::fflush(stdout);
}

void handler_of(const char* name, MPI_Comm comm) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(comm, &handler);
    tell("handler of %s: %s", name,
         handler == MPI_ERRORS_RETURN      ? "return"
         : handler == MPI_ERRORS_ARE_FATAL ? "fatal"
                                           : "another");
    MPI_Errhandler_free(&handler);
}

void mistake_on(const char* name, MPI_Comm comm) {
    int nothing = 0;
    int error_class = MPI_SUCCESS;
    MPI_Error_class(MPI_Bcast(&nothing, -1, MPI_INT, 0, comm), &error_class);
    tell("mistake on %s: %s", name, error_class == MPI_ERR_COUNT ? "count" : "another");
}

int copies = 0;
int copy(MPI_Comm, int, void*, void* value, void* out, int* flag) {
    ++copies;
    *static_cast<void**>(out) = value;
    *flag = 1;
    return MPI_SUCCESS;
}

void info_of(const char* name, MPI_Comm comm) {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm_get_info(comm, &info);
    int keys = 0;
    MPI_Info_get_nkeys(info, &keys);
    tell("info of %s: %d keys", name, keys);
    MPI_Info_free(&info);
}

void sum(MPI_Comm comm) {
    int all = 0;
    MPI_Allreduce(&world_rank, &all, 1, MPI_INT, MPI_SUM, comm);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    watch(60);
    int key = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &copies);
    MPI_Comm early = MPI_COMM_NULL, split = MPI_COMM_NULL, late = MPI_COMM_NULL, cart = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &early);
    MPI_Comm_split(MPI_COMM_WORLD, 0, world_rank, &split);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    // Row by row of two, so that neighbours pay to be brought together.
    const int extents[2] = {size / 2, 2}, periods[2] = {1, 0};
    MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 1, &cart);
    // So that all have been served.
    const MPI_Comm all[] = {MPI_COMM_WORLD, early, split, cart};
    for (const MPI_Comm comm : all)
        if (comm != MPI_COMM_NULL) sum(comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &late);
    sum(late);
    const char* const names[] = {"world", "early", "split", "cart"};
    for (int c = 0; c < 4; ++c) {
        handler_of(names[c], all[c]);
        info_of(names[c], all[c]);
    }
    handler_of("late", late);
    tell("copies of the attribute: %d", copies);
    int* most = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
    tell("largest tag: %d", found ? *most : -1);
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    tell("name of the world: %s", name);
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_get_parent(&parent);
    tell("parent: %s", parent == MPI_COMM_NULL ? "none" : "one");
    if (option(argc, argv, "--mistakes", 1) != 0) {
        mistake_on("late", late);
        mistake_on("world", MPI_COMM_WORLD);
        mistake_on("early", early);
        mistake_on("split", split);
        mistake_on("cart", cart);
    }
    MPI_Comm_free(&early);
    MPI_Comm_free(&split);
    MPI_Comm_free(&late);
    if (cart != MPI_COMM_NULL) MPI_Comm_free(&cart);
    MPI_Finalize();
    return 0;
}
