#include "palmette/aggregate/sharp/pool.hpp"

#include "palmette/aggregate/sharp/api.hpp"

namespace palmette::aggregate::sharp {

Pool::Pool(Registrar& registrar, std::size_t count, std::size_t slot_bytes)
    : registrar_(registrar), slot_bytes_(slot_bytes) {
    constexpr std::size_t page = 4096;
    data_.reset(static_cast<char*>(std::aligned_alloc(page, 2 * count * slot_bytes)));
    error_ = data_ ? registrar_.add(data_.get(), 2 * count * slot_bytes, handle_) : int{error_memory};
}

void Pool::release() noexcept {
    if (handle_) registrar_.remove(handle_);
    handle_ = nullptr;
}

}  // namespace palmette::aggregate::sharp
