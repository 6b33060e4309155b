#include "palmette/matrix/matrix_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "palmette/base/shell.hpp"

/// The interposing library looks for it, to report where PALMETTE_MATRIX is set and no library counts.
extern "C" __attribute__((visibility("default"))) const char palmette_counts_messages = 1;

namespace palmette::matrix {
namespace {

constexpr std::uint64_t piece = std::uint64_t{1} << 20;
constexpr int tag = 0;

/// Header that a rank sends before its text; on rank 0 the sum over all.
struct Header {
    std::uint64_t length = 0, pairs = 0, messages = 0, bytes = 0, exchanging = 0, exchanged = 0, outside = 0,
                  one_sided = 0;

    static constexpr int words = 8;
    void add(const Header& other) {
        length += other.length;
        pairs += other.pairs;
        messages += other.messages;
        bytes += other.bytes;
        exchanging += other.exchanging;
        exchanged += other.exchanged;
        outside += other.outside;
        one_sided += other.one_sided;
    }
};

std::string file_name() {
    const char* const path = std::getenv("PALMETTE_MATRIX");
    return path ? path : "";
}

std::string host_name() {
    std::array<char, MPI_MAX_PROCESSOR_NAME + 1> name{};
    int length = 0;
    PMPI_Get_processor_name(name.data(), &length);
    std::string out(name.data());
    // One word a field.
    std::replace_if(out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) <= ' '; }, '_');
    return out.empty() ? "unknown" : out;
}

std::string line_of(const char* kind, const std::string& from, int to, const Cell& cell) {
    return kind + (" " + from) + " " + std::to_string(to) + " " + std::to_string(cell.bytes) + " " +
           std::to_string(cell.messages) + "\n";
}

std::string part_of(int rank, const Counters& counters, Header& head) {
    const std::string number = std::to_string(rank);
    std::string text = "host " + number + " " + host_name() + "\n";
    for (const auto& [peer, cell] : counters.by_world_rank()) {
        // Neighbours that nothing was ever sent to.
        if (cell.messages == 0) continue;
        text += line_of("sent", number, peer, cell);
        ++head.pairs;
        head.messages += cell.messages;
        head.bytes += cell.bytes;
    }
    for (const auto& [peer, cell] : counters.exchanged_by_world_rank()) {
        // Of a persistent request that was never started.
        if (cell.messages == 0) continue;
        text += line_of("exchanged", number, peer, cell);
        ++head.exchanging;
        head.exchanged += cell.bytes;
    }
    head.outside = counters.outside().messages;
    if (head.outside > 0)
        text += "outside " + number + " " + std::to_string(counters.outside().bytes) + " " +
                std::to_string(head.outside) + "\n";
    head.one_sided = counters.one_sided_calls();
    if (head.one_sided > 0) text += "one-sided " + number + " " + std::to_string(head.one_sided) + "\n";
    head.length = text.size();
    return text;
}

/// A file that is renamed to its final name when it is complete.
class AtomicFile {
  public:
    explicit AtomicFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
        file_ = std::fopen(part_.c_str(), "w");
        error_ = file_ ? 0 : errno;
    }
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile() {
        if (file_) std::fclose(file_);
    }
    int error() const { return error_; }
    void write(std::string_view text) {
        if (error_ == 0 && std::fwrite(text.data(), 1, text.size(), file_) != text.size()) error_ = errno;
    }
    void close() {
        if (!file_) return;
        if (std::fclose(file_) != 0 && error_ == 0) error_ = errno;
        file_ = nullptr;
        if (error_ == 0 && std::rename(part_.c_str(), path_.c_str()) != 0) error_ = errno;
        if (error_ != 0) std::remove(part_.c_str());
    }

  private:
    std::string path_, part_;
    std::FILE* file_ = nullptr;
    int error_ = 0;
};

void send_part(MPI_Comm comm, const std::string& text, const Header& head) {
    // One rank at a time: else rank 0 would buffer the unexpected messages of all.
    PMPI_Recv(nullptr, 0, MPI_CHAR, 0, tag, comm, MPI_STATUS_IGNORE);
    PMPI_Send(&head, Header::words, MPI_UINT64_T, 0, tag, comm);
    for (std::uint64_t at = 0; at < head.length; at += piece)
        PMPI_Send(text.data() + at, static_cast<int>(std::min(piece, head.length - at)), MPI_CHAR, 0, tag, comm);
}

void collect(MPI_Comm comm, int ranks, AtomicFile& file, Header& total) {
    std::string buffer;
    for (int rank = 1; rank < ranks; ++rank) {
        PMPI_Send(nullptr, 0, MPI_CHAR, rank, tag, comm);
        Header head;
        if (PMPI_Recv(&head, Header::words, MPI_UINT64_T, rank, tag, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
        for (std::uint64_t at = 0; at < head.length; at += piece) {
            buffer.resize(std::min(piece, head.length - at));
            if (PMPI_Recv(buffer.data(), static_cast<int>(buffer.size()), MPI_CHAR, rank, tag, comm,
                          MPI_STATUS_IGNORE) != MPI_SUCCESS)
                return;
            file.write(buffer);
        }
        total.add(head);
    }
}

void print_summary(const std::string& path, int error, const Header& total) {
    if (error != 0) {
        std::fprintf(stderr,
                     "palmette run: can't write the matrix %s: %s; choose a folder that rank 0 can write to with "
                     "--matrix\n",
                     path.c_str(), std::strerror(error));
        return;
    }
    std::fprintf(stderr, "palmette run: %llu messages, %llu bytes between %llu pairs of ranks: %s\n",
                 static_cast<unsigned long long>(total.messages), static_cast<unsigned long long>(total.bytes),
                 static_cast<unsigned long long>(total.pairs), path.c_str());
    if (total.exchanging > 0)
        std::fprintf(stderr, "  and %llu bytes between %llu pairs of ranks in all-to-all exchanges\n",
                     static_cast<unsigned long long>(total.exchanged),
                     static_cast<unsigned long long>(total.exchanging));
    if (total.outside > 0)
        std::fprintf(stderr, "  not among them: %llu messages to processes outside of MPI_COMM_WORLD\n",
                     static_cast<unsigned long long>(total.outside));
    if (total.one_sided > 0)
        std::fprintf(stderr, "  not among them: %llu one-sided calls\n",
                     static_cast<unsigned long long>(total.one_sided));
    std::fprintf(stderr, "  next: palmette map --matrix %s --topology FILE\n", base::shell_word(path).c_str());
}

}  // namespace

void write_file(const std::string& path, const Counters& counters) {
    MPI_Comm comm = MPI_COMM_NULL;
    if (PMPI_Comm_dup(MPI_COMM_WORLD, &comm) != MPI_SUCCESS) return;
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int rank = 0;
    int ranks = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    Header head;
    const std::string text = part_of(rank, counters, head);
    if (rank == 0) {
        AtomicFile file(path);
        int error = file.error();
        PMPI_Bcast(&error, 1, MPI_INT, 0, comm);
        if (error == 0) {
            file.write(
                "palmette-matrix 2\n"
                "# By ranks of MPI_COMM_WORLD: sent FROM TO BYTES MESSAGES, exchanged FROM TO BYTES CALLS\n");
            file.write("ranks " + std::to_string(ranks) + "\n");
            file.write(text);
            collect(comm, ranks, file, head);
            file.close();
        }
        print_summary(path, file.error(), head);
    } else {
        int error = 0;
        if (PMPI_Bcast(&error, 1, MPI_INT, 0, comm) == MPI_SUCCESS && error == 0) send_part(comm, text, head);
    }
    PMPI_Comm_free(&comm);
}

void start() {
    if (!file_name().empty()) Counters::instance().start();
}

void finish() {
    Counters& counters = Counters::instance();
    if (!counters.counting()) return;
    counters.stop();
    write_file(file_name(), counters);
}

}  // namespace palmette::matrix
