#include "palmette/record/blocks.hpp"

#include "palmette/runtime/data/plausible_handle.hpp"

namespace palmette::record {

std::uint64_t bytes_of(std::int64_t count, MPI_Datatype type) {
    // Programs pass MPI_DATATYPE_NULL beside a count of 0, which the MPI's error handler would get.
    if (count <= 0 || !runtime::is_plausible(type)) return 0;
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
    return size > 0 ? static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(size) : 0;
}

MPI_Datatype Blocks::type_of(std::size_t block) const {
#if defined(PALMETTE_HAS_FORTRAN_TYPES)
    if (is_fortran_) return fortran_types_[block];
#endif
    return types_ ? types_[block] : type_;
}

std::uint64_t Blocks::bytes(std::size_t block) const {
    if (alike()) return alike_;
    const std::int64_t count = counts_ ? counts_[block] : large_counts_[block];
    return count > 0 ? bytes_of(count, type_of(block)) : 0;
}

#if defined(PALMETTE_ABI_SMPI)
// SimGrid has neither neighbourhood collectives nor errors that are returned.
std::vector<int> destinations_of(MPI_Comm) { return {}; }
bool is_refusal(int) { return false; }
bool has_received(int code) { return code == MPI_SUCCESS; }
#else
std::vector<int> destinations_of(MPI_Comm comm) {
    int kind = MPI_UNDEFINED;
    PMPI_Topo_test(comm, &kind);
    std::vector<int> found;
    if (kind == MPI_CART) {
        int dimensions = 0;
        PMPI_Cartdim_get(comm, &dimensions);
        for (int d = 0; d < dimensions; ++d) {
            int lower = MPI_PROC_NULL;
            int upper = MPI_PROC_NULL;
            PMPI_Cart_shift(comm, d, 1, &lower, &upper);
            found.insert(found.end(), {lower, upper});
        }
    } else if (kind == MPI_GRAPH) {
        int rank = 0;
        int count = 0;
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, &count);
        found.resize(static_cast<std::size_t>(count));
        PMPI_Graph_neighbors(comm, rank, count, found.data());
    } else if (kind == MPI_DIST_GRAPH) {
        int in = 0;
        int out = 0;
        int weighted = 0;
        PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
        std::vector<int> sources(static_cast<std::size_t>(in));
        std::vector<int> source_weights(sources.size());
        found.resize(static_cast<std::size_t>(out));
        std::vector<int> weights(found.size());
        PMPI_Dist_graph_neighbors(comm, in, sources.data(), source_weights.data(), out, found.data(), weights.data());
    }
    return found;
}

bool is_refusal(int code) {
    int error_class = MPI_SUCCESS;
    if (PMPI_Error_class(code, &error_class) != MPI_SUCCESS) return false;
    for (const int one :
         {MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_ERR_TAG, MPI_ERR_COMM, MPI_ERR_RANK, MPI_ERR_REQUEST,
          MPI_ERR_ROOT, MPI_ERR_GROUP, MPI_ERR_OP, MPI_ERR_TOPOLOGY, MPI_ERR_ARG, MPI_ERR_UNSUPPORTED_OPERATION})
        if (error_class == one) return true;
    return false;
}

bool has_received(int code) {
    if (code == MPI_SUCCESS) return true;
    int error_class = MPI_SUCCESS;
    return PMPI_Error_class(code, &error_class) == MPI_SUCCESS && error_class == MPI_ERR_TRUNCATE;
}
#endif

}  // namespace palmette::record
