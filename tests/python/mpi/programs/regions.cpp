// The guard, left by an exception, too.
#include <palmette.hpp>

#include <cstdio>
#include <stdexcept>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 5; ++i) {
        const palmette::Region whole("whole");
        try {
            const palmette::Region part("part");
            if (i % 2 == 0) throw std::runtime_error("out of it");
        } catch (const std::runtime_error&) {
            const palmette::Region mended("mended");
        }
    }
    MPI_Finalize();
    std::puts("right");
    return 0;
}
