#include "palmette/runtime/nccl/nccl_ranks.hpp"

#include <string_view>

#include "palmette/runtime/nccl/nccl_meeting.hpp"
#include "palmette/runtime/transport/agreement.hpp"

namespace palmette::runtime {

void NcclRanks::give_up(const std::string& why) {
    in_service_ = false;
    why_ = why;
    if (nccl_) nccl_->abort();
    nccl_.reset();
}

bool NcclRanks::has_communicator(const Part& part) {
    if (nccl_) return true;
    std::string why;
    nccl_ = make_nccl({comm_, rank_, size_}, part.place, limit_, device::Nccl::Order::with_program, why);
    if (!nccl_) give_up(why);
    return nccl_ != nullptr;
}

NcclRanks::Outcome NcclRanks::run(const Part* part) {
    // A thread that doesn't get it has its rank say no.
    device::NcclTurn turn;
    const bool mine = part && turn.try_take() && part->scratch <= device::Nccl::most_scratch && part->place.context &&
                      part->place.driver->name() == std::string_view("cuda") &&
                      (!nccl_ || same_queue(nccl_->place(), part->place));
    if (!all_true(comm_, mine).value_or(false)) return Outcome::not_tried;
    if (!has_communicator(*part)) return Outcome::not_tried;
    void* const scratch = part->scratch > 0 ? nccl_->scratch(part->scratch) : nullptr;
    if (part->scratch > 0 && !scratch) {
        nccl_->fail("no device memory for a result");
    } else {
        nccl_->begin();
        part->add(*nccl_, scratch);
        nccl_->commit(part->bytes, limit_);
    }
    if (!all_succeed({comm_, rank_, size_}, [&] { return nccl_->poll(); })) {
        give_up(nccl_->why());
        return Outcome::failed;
    }
    if (part->scratch > 0 && nccl_->copy(part->result, scratch, part->scratch)) return Outcome::not_copied_back;
    return Outcome::done;
}

}  // namespace palmette::runtime
