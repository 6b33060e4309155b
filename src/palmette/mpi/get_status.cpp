#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "palmette/mpi/library.hpp"

namespace palmette::mpi {

using Word = std::uintptr_t;

namespace {

/// How a process's MPI lays out what these functions take.
struct Forms {
    std::size_t request_bytes, status_bytes, error_at;  ///< error_at: MPI_ERROR's place in a status
    Word null_request;
};

Forms forms_of(Abi abi) {
    switch (abi) {
        case Abi::ompi:
            return {sizeof(void*), 24, 8, reinterpret_cast<Word>(find("ompi_request_null"))};
        case Abi::standard:
            return {sizeof(void*), 32, 8, 0x180};
        default:
            return {sizeof(int), 20, 16, 0x2c000000};
    }
}

constexpr int undefined = -32766;  ///< MPI_UNDEFINED, the same in the three ABIs

}  // namespace

bool is_get_status_of_several(const char* name) {
    return std::string_view(name).starts_with("MPI_Request_get_status_");
}

int get_status_of_several(const char* name, std::span<const Word> words) {
    const Forms forms = forms_of(abi_of_process());
    const auto ask = reinterpret_cast<int (*)(Word, int*, Word)>(first("MPI_Request_get_status"));
    if (!ask) return undefined;
    const auto count = static_cast<int>(words[0]);
    const auto request = [&](int i) {
        Word handle = 0;
        std::memcpy(&handle,
                    reinterpret_cast<const char*>(words[1]) + static_cast<std::size_t>(i) * forms.request_bytes,
                    forms.request_bytes);
        return handle;
    };
    // MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE are 0 or 1; both stand for one another here.
    const auto status_at = [&](Word statuses, int i) {
        return statuses <= 1 ? statuses : statuses + static_cast<Word>(i) * forms.status_bytes;
    };
    const std::string_view which = std::string_view(name).substr(std::string_view("MPI_Request_get_status_").size());
    const Word statuses = words[words.size() - 1];
    int active = 0, done = 0, out = 0;
    for (int i = 0; i < count; ++i) {
        if (which != "all" && request(i) == forms.null_request) continue;
        ++active;
        int flag = 0;
        const Word status = which == "all"    ? status_at(statuses, i)
                            : which == "some" ? status_at(statuses, out)
                                              : statuses;
        if (const int error = ask(request(i), &flag, status); error != 0) return error;
        if (!flag) continue;
        ++done;
        if (which == "some") reinterpret_cast<int*>(words[3])[out++] = i;
        if (which == "any") {
            *reinterpret_cast<int*>(words[2]) = i;
            *reinterpret_cast<int*>(words[3]) = 1;
            return 0;
        }
    }
    if (which == "all") {
        *reinterpret_cast<int*>(words[2]) = done == count;
    } else if (which == "some") {
        *reinterpret_cast<int*>(words[2]) = active == 0 ? undefined : out;
    } else {
        *reinterpret_cast<int*>(words[2]) = undefined;
        *reinterpret_cast<int*>(words[3]) = active == 0;
        if (active > 0) return 0;
        // An empty status, of which a question about one request leaves the error as it is.
        if (statuses > 1) std::memset(reinterpret_cast<char*>(statuses) + forms.error_at, 0, sizeof(int));
        int flag = 0;
        return ask(forms.null_request, &flag, statuses);
    }
    return 0;
}

}  // namespace palmette::mpi
