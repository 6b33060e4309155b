#include "palmette/aggregate/sharp/pool.hpp"

namespace palmette::aggregate::sharp {

Pool::Pool(Registrar& registrar, std::size_t count, std::size_t slot_bytes)
    : registrar_(registrar), slot_bytes_(slot_bytes) {
    constexpr std::size_t page = 4096;
    data_.reset(static_cast<char*>(std::aligned_alloc(page, 2 * count * slot_bytes)));
    if (data_) handle_ = registrar_.register_memory(data_.get(), 2 * count * slot_bytes);
}

void Pool::release() noexcept {
    if (handle_ != 0) registrar_.unregister_memory(handle_);
    handle_ = 0;
}

}  // namespace palmette::aggregate::sharp
