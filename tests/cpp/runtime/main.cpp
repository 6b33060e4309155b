// These tests run as one process of an MPI, which needs no launcher.
#include <gtest/gtest.h>
#include <mpi.h>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    MPI_Init(&argc, &argv);
    const int status = RUN_ALL_TESTS();
    MPI_Finalize();
    return status;
}
